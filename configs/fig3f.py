"""Figure 3F: OOD accuracy over the student's size.

Hypernetworks on the hyperteacher with M = 4 modules, K = 2 and a teacher of
half the width; the student's width and number of modules vary. The paper finds
that OOD accuracy rises with some overparameterisation and then falls; at laptop
scale the fall is undecided. At the published scale each cell has three outer
learning rates; the figure shows the one with the lowest validation loss.
'laptop' is thinned to three widths, three numbers of modules and one learning
rate, with M = 6 and K = 3: its teacher generates one layer, for which M = 4
modules make too few combinations.

  python -m modular_hyperteacher.main --config=configs/fig3f.py
  python -m modular_hyperteacher.main --config=configs/fig3f.py:longer
  python figures/make_all.py --only=fig3f,longer
"""

from typing import Any

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.configs.blocks import variants


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of a preset, or of a variant; see `VARIANTS`."""
  factors, widths, rates = (1, 4, 16), (8, 32, 64), (3e-3,)
  task: dict[str, Any] = {'num_modules': 6, 'max_active': 3}
  if preset == 'paper':
    factors, widths = (1, 2, 4, 8, 16), (16, 32, 64, 128, 256, 512)
    rates = (3e-4, 1e-3, 3e-3)
    task = {'teacher_hidden_dim': 16}
  sweep = {
      'modules_per_teacher_module': factors,  # M-hat / M
      'hidden_dim': widths,
      'outer.learning_rate': rates,
      'model': models.HYPERNETWORKS,
  }
  blocks = hyperteacher.blocks(preset, **task)
  return experiment.make('fig3f', preset, sweep, **blocks)


def _longer(preset: str) -> experiment.Config:
  """Trains four times as long: do large students fall behind?

  The linear hypernetwork of four sizes: the smallest, the largest, and the two
  that are best in between.
  """
  config = get_config(preset)
  (grid,) = config.sweep
  grid = grid | {'model': ['linear_hypernetwork']}
  sizes = ('modules_per_teacher_module', 'hidden_dim')
  sweep = [
      grid | {size: [grid[size][i]] for size, i in zip(sizes, indices)}
      for indices in ((0, 0), (1, 1), (-1, 1), (-1, -1))
  ]
  return variants.longer(config, *sweep)


def _wider(preset: str) -> experiment.Config:
  """Trains wider students: does accuracy fall beyond the laptop's sizes?

  Of both hypernetworks, the students that have four times (linear) and 16 times
  (nonlinear) the teacher's modules, up to 16 times its width in place of 8
  times. (The published grid goes to 32 times.)
  """
  config = get_config(preset)
  (grid,) = config.sweep
  if preset != 'paper':
    grid = grid | {'hidden_dim': [*grid['hidden_dim'], 128]}
  config.sweep = tuple(
      grid | {'model': [model], 'modules_per_teacher_module': [factor]}
      for model, factor in (
          ('linear_hypernetwork', 4),
          ('nonlinear_hypernetwork', 16),
      )
  )
  return config


VARIANTS = {'longer': _longer, 'wider': _wider}
get_config = variants.add('fig3f', get_config, VARIANTS)
