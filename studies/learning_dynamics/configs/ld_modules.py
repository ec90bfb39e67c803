"""Ours: does training take longer for more modules, as an eigenvalue says?

The hyperteacher of Figure A3, up to three of M modules combined, and the linear
hypernetwork, evaluated often. The smallest eigenvalue of E[z z'] predicts how
the steps to a given loss on seen combinations grow with M. At laptop scale, one
seed of one of the five runs takes about a minute of one core.

  python -m modular_hyperteacher.main --config=ld_modules
  python figures/make_all.py --only=ld_modules
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import presets


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  blocks = hyperteacher.blocks(preset, max_active=3)
  blocks['training'] |= presets.choose(
      preset,
      smoke={},
      laptop={
          'seeds': tuple(range(2040, 2045)),
          'evaluate_every': 50,
          'num_evaluation_tasks': 128,
      },
      paper={'seeds': tuple(range(2020, 2025)), 'evaluate_every': 500},
  )
  num_modules = presets.choose(
      preset,
      smoke=(4, 6),
      laptop=(4, 6, 8, 10, 12),
      paper=(4, 6, 8, 10, 12, 14, 16),
  )
  sweep = dict({'task.num_modules': num_modules}, model=['linear_hypernetwork'])
  return experiment.make('ld_modules', preset, sweep, **blocks)
