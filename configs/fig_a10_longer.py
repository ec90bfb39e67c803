"""Figure A10, trained four times as long: does size stop to matter?

The linear hypernetwork on goals, with 8 and 32 modules, at a learning rate of
0.003. After 3,000 outer steps, the larger one is better by more than claim A10
allows.

  python -m modular_hyperteacher.main --config=configs/fig_a10_longer.py
  python figures/make_all.py --only=longer
"""

from modular_hyperteacher.configs import fig_a10
from modular_hyperteacher.configs.blocks import experiment


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = fig_a10.get_config(preset)
  grid, _ = config.sweep
  modules = grid['num_modules']
  grid = grid | {
      'hidden_dim': [64],
      'num_modules': [modules[0], modules[-1]],
      'outer.learning_rate': [3e-3],
  }
  return experiment.longer(config, grid)
