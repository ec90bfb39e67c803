"""Beyond the paper: how many families repair a disconnected support?

Two triangles have no module in common (Figure 2C). This sweep adds one pair at
a time that bridges them. The first already connects the graph of families, as
Theorem 1 requires. A single wider family connects as many pairs of modules as
two, four or all nine bridges.

  python -m modular_hyperteacher.main --config=configs/bridges.py
  python figures/make_all.py --only=bridges
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import theory


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  suffixes = ['', '_1_bridges']
  if preset != 'smoke':
    suffixes += [f'_{count}_bridges' for count in range(2, 10)]
    suffixes += [f'_bridge_of_{pairs}_pairs' for pairs in (2, 4, 9)]
  sweep = [
      theory.grid(
          preset,
          'levenberg_marquardt',
          4000,
          latent_type=[latent_type],
          task_support=[base + suffix for suffix in suffixes],
      )
      for latent_type, base in (
          ('continuous', 'triangles'),
          ('discrete', 'singles_triangles'),
      )
  ]
  return experiment.make('bridges', preset, sweep, **theory.blocks(preset))
