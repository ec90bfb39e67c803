"""Beyond the paper: how many families repair a disconnected support?

Two triangles of modules have nothing in common (Figure 2C). Pairs that bridge
them are added one at a time: the first connects the graph of families, which is
all that Theorem 1 asks for. A single wider family connects as many pairs of
modules as two, four or all nine of them do.

  python -m modular_hyperteacher.main --config=configs/bridges.py
  python figures/make_all.py --only=bridges
"""

import ml_collections

from configs.blocks import theory

_LAPTOP = {'levenberg_marquardt': (4000, 2)}


def get_config(preset: str = 'laptop') -> ml_collections.ConfigDict:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = theory.experiment('bridges', preset)
  suffixes = ('', '_1_bridges')
  if preset != 'smoke':
    suffixes += tuple(f'_{count}_bridges' for count in range(2, 10))
    suffixes += tuple(f'_bridge_of_{pairs}_pairs' for pairs in (2, 4, 9))
  if preset == 'laptop':
    config.training.seeds = (100, 101, 102)
  config.sweep = tuple(
      theory.solver_axes('levenberg_marquardt', preset, _LAPTOP)
      + (
          ('task.latent_type', (latent_type,)),
          ('task.task_support', tuple(base + suffix for suffix in suffixes)),
      )
      for latent_type, base in (
          ('continuous', 'triangles'),
          ('discrete', 'singles_triangles'),
      )
  )
  return config
