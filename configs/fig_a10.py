"""Figure A10: wider students with more modules do not lose on goals.

The OOD accuracy of both hypernetworks on goals, random support, over hidden
units, modules and outer learning rates. 'laptop' is thinned to two widths, two
numbers of modules and two learning rates. (Bundled: both for the linear
hypernetwork, 3e-3 for the nonlinear one.)

  python -m modular_hyperteacher.main --config=configs/fig_a10.py
  python figures/make_all.py --only=fig_a10
"""

from configs.blocks import experiment
from configs.blocks import goals
from configs.blocks import models
from modular_hyperteacher.experiments import sweeps


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  widths, modules, rates = (32, 64), (8, 32), (3e-3, 1e-2)
  if preset == 'paper':
    widths, modules, rates = (32, 64, 128, 256), (8, 16, 32), (3e-4, 1e-3, 3e-3)
  sweep = {
      'model': models.HYPERNETWORKS,
      'hidden_dim': widths,
      'num_modules': modules,
      'outer.learning_rate': rates,
  }
  blocks = goals.blocks(preset)
  return experiment.make('fig_a10', preset, sweeps.grid(sweep), **blocks)
