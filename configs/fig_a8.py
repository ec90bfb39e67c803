"""Figure A8: wider students with more modules do not lose on preferences.

The OOD loss of both hypernetworks on up to K = 3 of M = 8 preferences, random
support, over hidden units, modules and outer learning rates. 'laptop' is
thinned to the smallest student, one that is wider, and one of more modules, all
of one learning rate.

  python -m modular_hyperteacher.main --config=configs/fig_a8.py
  python figures/make_all.py --only=fig_a8
"""

import ml_collections

from configs.blocks import common


def get_config(preset: str = 'laptop') -> ml_collections.ConfigDict:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = common.experiment(
      'fig_a8',
      preset,
      task=common.preferences_task(),
      models=common.preferences_models(),
      training=common.training(num_outer_steps=100_000),
  )
  common.scale_preferences(config)
  # Every width with every number of modules, of one grid or more.
  grids = [((32, 64, 128), (16, 32, 64, 128))]
  rates = (1e-4, 3e-4, 1e-3)
  if preset != 'paper':
    grids, rates = [((32, 64), (16,)), ((32,), (64,))], (3e-3,)
  config.sweep = tuple(
      (
          ('model', common.HYPERNETWORKS),
          ('model.hidden_dim', widths),
          ('model.num_modules', modules),
          ('model.outer.learning_rate', rates),
      )
      for widths, modules in grids
  )
  return config
