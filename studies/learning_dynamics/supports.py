"""Families with weights: E[z z'] is varied, which modules are joined is not.

A family that is listed n times is drawn n times as often. By the theory of
`theory.py`, the speed of learning depends on the eigenvalues of E[z z'] alone,
while connectivity decides whether new combinations are learned, too. So some
supports here share their families, and differ in eigenvalues; others share
their eigenvalues, and differ in connectivity.
"""

from collections.abc import Mapping

import numpy as np

from modular_hyperteacher.studies.learning_dynamics import theory
from modular_hyperteacher.tasks.supports import families

_NAMED = families.FAMILIES
# Two graphs of five pairs whose adjacency matrices have equal eigenvalues, 2,
# 1, 0, 0, -1 and -2: a tree, and a cycle beside a pair.
_TREE = families.parse('01 04 05 12 13')
_CYCLE_AND_PAIR = families.parse('04 05 14 15 23')


def _singles(*weights: int) -> families.Families:
  """Returns the families {0}, {1}, ..., each as often as its weight."""
  return tuple((module,) for module, n in enumerate(weights) for _ in range(n))


def _cospectral(
    pairs: families.Families, pair_weight: int, single_weight: int
) -> families.Families:
  """Returns pairs and singles such that E[z_m^2] is the same for all modules.

  E[z z'] is then the identity and the adjacency matrix, each times a constant.
  Every module occurs in at most three pairs. A pair is listed `pair_weight`
  times, a single that stands for one pair `single_weight` times.
  """
  degrees = families.masks(pairs).sum(0)
  singles = _singles(*(single_weight * (4 - degree) for degree in degrees))
  return pairs * pair_weight + singles


# Name -> families. Names of `families.FAMILIES` may be used beside these.
WEIGHTED: Mapping[str, families.Families] = {
    'singles_3_ring': _NAMED['singles'] * 3 + _NAMED['ring'],
    'singles_ring_3': _NAMED['singles'] + _NAMED['ring'] * 3,
    'singles_ring_7': _NAMED['singles'] + _NAMED['ring'] * 7,
    # Modules of unequal eigenvalues.
    'graded_singles_ring': _singles(1, 1, 3, 3, 9, 9) + _NAMED['ring'],
    # Discrete latents: a pair adds 1/2 to E[z_m^2] where a single adds 1.
    'discrete_tree': _cospectral(_TREE, 2, 1),
    'discrete_cycle_and_pair': _cospectral(_CYCLE_AND_PAIR, 2, 1),
    # Continuous latents of the paper's Algorithm 1: 7/12, and 1.
    'continuous_tree': _cospectral(_TREE, 12, 7),
    'continuous_cycle_and_pair': _cospectral(_CYCLE_AND_PAIR, 12, 7),
}
NAMES = (*_NAMED, *WEIGHTED)
# Latents -> (connected, disconnected), with equal eigenvalues.
COSPECTRAL = {
    kind: (f'{kind}_tree', f'{kind}_cycle_and_pair')
    for kind in ('discrete', 'continuous')
}
_TABLE_A9 = tuple(families.TABLE_A9.values())
# (Kind of latents, support) of all runs.
RUNS = (
    *_TABLE_A9,
    *(
        ('discrete', name)
        for name in (
            *('singles_3_ring', 'singles_ring_3', 'singles_ring_7'),
            'graded_singles_ring',
        )
    ),
    *(('continuous', f'triangles_{count}_bridges') for count in (1, 6, 9)),
    *((kind, name) for kind, pair in COSPECTRAL.items() for name in pair),
)


def family_split(mask: np.ndarray) -> str:
  """Returns the name of a family's split, such as 'ood_family_01'."""
  return 'ood_family_' + ''.join(map(str, np.flatnonzero(mask)))


def masks(name: str) -> np.ndarray:
  """Returns the masks of a support, as often as they are listed, [C, M]."""
  return families.masks(WEIGHTED.get(name) or _NAMED[name])


def is_connected(name: str) -> bool:
  """Returns whether the families of a support are connected."""
  return families.is_connected(np.unique(masks(name), axis=0))


def sampler(name: str) -> str:
  """Returns the sampler of continuous latents that a support is meant for."""
  return 'paper' if name in COSPECTRAL['continuous'] else 'released'


def moment(latent_type: str, name: str) -> np.ndarray:
  """Returns E[z z'] of a run, [M, M]."""
  return theory.second_moment(masks(name), latent_type, sampler(name))


def smallest_eigenvalue(latent_type: str, name: str) -> float:
  """Returns the smallest eigenvalue of E[z z'] of a run; 0 if singular."""
  return max(float(np.linalg.eigvalsh(moment(latent_type, name))[0]), 0.0)


def modules_differ(latent_type: str, name: str) -> bool:
  """Returns whether the modules of a run have different eigenvalues."""
  second = moment(latent_type, name)
  times = np.array([theory.mean_time(unit, second) for unit in np.eye(6)])
  return bool(np.ptp(times) >= 1e-6 * times.mean())
