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
  python figures/make_all.py --only=fig3f
"""

from typing import Any

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.experiments import sweeps


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
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
  return experiment.make('fig3f', preset, sweeps.grid(sweep), **blocks)
