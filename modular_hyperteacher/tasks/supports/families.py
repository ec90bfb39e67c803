"""Task families of the theory: which modules are trained on together.

A family is a set of modules that a task combines. Whether a student can
identify the modules depends on two properties: the families together contain
every module (*compositional*), and the graph that joins families with a common
module is connected (*connected*).

Source: Table A9 and the authors' released sweeps, M = 6. Worked example: the
ring 01, 12, 23, 34, 45, 50 is connected; the two triangles 01, 12, 20 and
34, 45, 53 have no common module, so they are not.
"""

from collections.abc import Mapping

import numpy as np

NUM_MODULES = 6
Families = tuple[tuple[int, ...], ...]


def parse(text: str) -> Families:
  """Returns the families in a text such as '01 12 20', a digit per module."""
  return tuple(tuple(map(int, family)) for family in text.split())


_SINGLES = parse('0 1 2 3 4 5')
_RING = parse('01 12 23 34 45 50')
_TRIANGLES = parse('01 12 20 34 45 53')
_CHAINED_TRIPLES = parse('012 234 450')
_HALVES = parse('012 345')
_ALL = parse('012345')
# Not a sliding window: the second triple is 124 in the released sweeps.
_SIX_TRIPLES = parse('012 124 234 345 450 501')
_BRIDGED = {'triangles': _TRIANGLES, 'singles_triangles': _SINGLES + _TRIANGLES}
# Pairs between the triangles. The first three have no module in common.
_BRIDGES = parse('23 04 15 03 14 25 05 13 24')
# Pairs of modules between the triangles -> the single family that has them.
_WIDE_BRIDGES = {2: '123', 4: '1234', 9: '012345'}

FAMILIES: Mapping[str, Families] = {
    'singles': _SINGLES,
    'ring': _RING,
    'triangles': _TRIANGLES,
    'chained_triples': _CHAINED_TRIPLES,
    'six_triples': _SIX_TRIPLES,
    'sliding_triples': parse('012 123 234 345 450 501'),
    'halves': _HALVES,
    'all': _ALL,
    'halves_triangles': _HALVES + _TRIANGLES,
    'singles_ring': _SINGLES + _RING,
    'singles_triangles': _SINGLES + _TRIANGLES,
    'singles_chained_triples': _SINGLES + _CHAINED_TRIPLES,
    'singles_six_triples': _SINGLES + _SIX_TRIPLES,
    'singles_all': _SINGLES + _ALL,
    # Beyond the paper: triangles connected by a growing number of bridges.
    **{
        f'{name}_{count}_bridges': base + _BRIDGES[:count]
        for name, base in _BRIDGED.items()
        for count in range(1, len(_BRIDGES) + 1)
    },
    # Beyond the paper: triangles connected by a single larger family.
    **{
        f'{name}_bridge_of_{pairs}_pairs': base + parse(bridge)
        for name, base in _BRIDGED.items()
        for pairs, bridge in _WIDE_BRIDGES.items()
    },
}

# Continuous families that Figure `longer` compares.
TRIPLES = 'chained_triples'
WITH_TRIANGLES = ('triangles', 'halves_triangles')

# Column of Table A9 -> (kind of latent, families).
TABLE_A9 = {
    'DC1': ('discrete', 'singles_ring'),
    'DD1': ('discrete', 'singles_triangles'),
    'CC1': ('continuous', 'ring'),
    'CC2': ('continuous', 'chained_triples'),
    'CD1': ('continuous', 'triangles'),
    'CD2': ('continuous', 'singles'),
    'CD3': ('continuous', 'halves_triangles'),
}


def masks(families: Families, num_modules: int = NUM_MODULES) -> np.ndarray:
  """Returns the masks of families, [C, M] bool."""
  result = np.zeros((len(families), num_modules), bool)
  for row, family in enumerate(families):
    result[row, list(family)] = True
  return result


def is_compositional(masks_: np.ndarray) -> bool:
  """Returns whether every module is in some family; masks are [C, M]."""
  return bool(masks_.any(0).all())


def is_connected(masks_: np.ndarray) -> bool:
  """Returns whether the graph that joins families [C, M] is connected."""
  # It is, if common families join all modules that are in any family.
  used = masks_[:, masks_.any(0)].astype(np.float32)
  reached = used.T @ used > 0
  for _ in range(len(reached).bit_length()):  # Doubles the paths' lengths.
    reached = reached @ reached
  return bool(reached.all())
