"""What an analysis is given: which seed's parameters, and which split's."""

import jax
import numpy as np

from modular_hyperteacher import randomness
from modular_hyperteacher.analysis import base
from modular_hyperteacher.learning import programs

_LEVELS = {'valid': 1.0, 'test': 2.0, 'ood': 3.0}  # Splits of evaluation.
_SPLITS = ('ood', 'test')  # Those that are analysed, in another order.
_NUM_TASKS = 4


def _constant(array: np.ndarray | jax.Array) -> float:
  (value,) = np.unique(np.asarray(array))
  return float(value)


def _report(adapted: base.Adapted) -> base.Metrics:
  """Returns what was given, all of which is constant over tasks."""
  return {
      split: {
          'latent': _constant(adapted.latents[split]),
          'fast': _constant(adapted.fast_params[split]),
          'meta': _constant(adapted.meta_params),
          'task': _constant(adapted.task_params),
          'key': _constant(jax.random.bits(adapted.key)),
      }
      for split in adapted.latents
  }


def test_every_seed_and_split_has_its_own_latents_and_parameters() -> None:
  levels = np.array(list(_LEVELS.values()))
  analysed = np.array([_LEVELS[split] for split in _SPLITS])
  seeds = np.array([[0.0], [10.0]])
  # [R, splits, tasks, ...]
  latents = np.broadcast_to(
      (seeds + levels)[:, :, None, None, None], (2, 3, _NUM_TASKS, 1, 6)
  )
  kept = np.broadcast_to(
      -(seeds + analysed)[:, :, None, None], (2, 2, _NUM_TASKS, 5)
  )
  roots = [randomness.root_key(seed) for seed in range(2)]
  analyse = programs.over_seeds(
      base.of_seed(base.Analysis(_SPLITS, _report), tuple(_LEVELS)),
      [programs.SeedTasks(np.float32(20 + s), latents[s]) for s in range(2)],
      roots,
  )
  assert analyse is not None
  measured = analyse(np.array([30.0, 31.0]), kept)
  keys = [randomness.stream(root, 'analysis') for root in roots]
  assert measured.keys() == set(_SPLITS)
  for split, metrics in measured.items():
    assert {name: values.tolist() for name, values in metrics.items()} == {
        'latent': [_LEVELS[split], 10 + _LEVELS[split]],
        'fast': [-_LEVELS[split], -10 - _LEVELS[split]],
        'meta': [30, 31],
        'task': [20, 21],
        'key': [float(jax.random.bits(key)) for key in keys],
    }
