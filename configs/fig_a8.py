"""Figure A8: wider students with more modules do not lose on preferences.

The OOD loss of both hypernetworks on up to K = 3 of M = 8 preferences, random
support, over hidden units, modules and outer learning rates. 'laptop' is
thinned to the smallest student, one that is wider, one of more modules, and two
learning rates: with the higher one, three of five seeds of the linear one with
64 modules are unstable.

  python -m modular_hyperteacher.main --config=configs/fig_a8.py
  python figures/make_all.py --only=fig_a8
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.configs.blocks import preferences


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  # Every width with every number of modules, of one grid or more.
  sizes, rates = [((32, 64), (16,)), ((32,), (64,))], (1e-3, 3e-3)
  if preset == 'paper':
    sizes, rates = [((32, 64, 128), (16, 32, 64, 128))], (1e-4, 3e-4, 1e-3)
  sweep = [
      {
          'model': models.HYPERNETWORKS,
          'hidden_dim': widths,
          'model.num_modules': modules,
          'outer.learning_rate': rates,
      }
      for widths, modules in sizes
  ]
  blocks = preferences.blocks(preset)
  return experiment.make('fig_a8', preset, sweep, **blocks)
