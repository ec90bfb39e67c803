"""Beyond the paper: how many families repair a disconnected support?

Two triangles of modules have nothing in common (Figure 2C). Pairs that bridge
them are added one at a time: the first connects the graph of families, which is
all that Theorem 1 asks for.

  python -m modular_hyperteacher.main --config=configs/bridges.py
  python figures/make_all.py --only=bridges
"""

import ml_collections

from configs import theory

_LAPTOP = {'levenberg_marquardt': (4000, 2)}


def get_config(preset: str = 'laptop') -> ml_collections.ConfigDict:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = theory.experiment('bridges', preset)
  counts = (0, 1) if preset == 'smoke' else (0, 1, 2, 3, 5, 9)
  if preset == 'laptop':
    config.training.seeds = (100, 101, 102)
  config.sweep = tuple(
      theory.solver_axes('levenberg_marquardt', preset, _LAPTOP)
      + (
          ('task.latent_type', (latent_type,)),
          ('task.task_support', tuple(_bridged(base, n) for n in counts)),
      )
      for latent_type, base in (
          ('continuous', 'triangles'),
          ('discrete', 'singles_triangles'),
      )
  )
  return config


def _bridged(support, num_bridges):
  return f'{support}_{num_bridges}_bridges' if num_bridges else support
