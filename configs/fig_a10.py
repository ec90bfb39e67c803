"""Figure A10: wider students with more modules do not lose on goals.

The OOD accuracy of both hypernetworks on goals, random support, over hidden
units, modules and outer learning rates. 'laptop' is thinned to two widths, two
numbers of modules and, for the linear one, two learning rates. 'workstation'
adds the second rate for the nonlinear one, which is unstable at it.

  python -m modular_hyperteacher.main --config=configs/fig_a10.py
  python -m modular_hyperteacher.main --config=configs/fig_a10.py:longer
  python figures/make_all.py --only=fig_a10,longer
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import goals
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.configs.blocks import variants

WORKSTATION = presets.WORKSTATION


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of a preset, or of a variant; see `VARIANTS`."""
  is_thinned = preset == 'laptop'
  preset = presets.scale(preset)
  widths, modules, rates = (32, 64), (8, 32), (3e-3, 1e-2)
  if preset == 'paper':
    widths, modules, rates = (32, 64, 128, 256), (8, 16, 32), (3e-4, 1e-3, 3e-3)
  sweep = [
      {
          'model': [model],
          'hidden_dim': widths,
          'num_modules': modules,
          'outer.learning_rate': model_rates,
      }
      for model, model_rates in zip(
          models.HYPERNETWORKS, (rates, rates[:1] if is_thinned else rates)
      )
  ]
  return experiment.make('fig_a10', preset, sweep, **goals.blocks(preset))


def _longer(preset: str) -> experiment.Config:
  """Trains four times as long: does size stop mattering?

  The linear hypernetwork, with 8 and 32 modules, at a learning rate of 0.003.
  """
  config = get_config(preset)
  grid, _ = config.sweep
  modules = grid['num_modules']
  grid = grid | {
      'hidden_dim': [64],
      'num_modules': [modules[0], modules[-1]],
      'outer.learning_rate': [3e-3],
  }
  return variants.longer(config, grid)


VARIANTS = {'longer': _longer}
get_config = variants.add('fig_a10', get_config, VARIANTS)
