"""Figure A5: OOD accuracy over the share of combinations held out.

Models on the hyperteacher with K = 2 of M modules. For larger M, OOD accuracy
stays robust while more and more combinations are held out; training accuracy
stays stable. 'laptop' is thinned to the hypernetworks, M of 6 and 10 with
K = 3, and three shares.

  python -m modular_hyperteacher.main --config=configs/fig_a5.py
  python figures/make_all.py --only=fig_a5
"""

import ml_collections

from configs.blocks import common


def get_config(preset: str = 'laptop') -> ml_collections.ConfigDict:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = common.experiment(
      'fig_a5',
      preset,
      task=common.hyperteacher_task(),
      models=common.hyperteacher_models(),
      training=common.training(num_outer_steps=200_000),
  )
  common.scale_hyperteacher(config)
  num_modules, fractions = (4, 8, 16), (0.1, 0.3, 0.5, 0.7, 0.9)
  models = common.MODELS
  if preset != 'paper':
    config.task.max_active = 3
    num_modules, fractions = (6, 10), (0.1, 0.5, 0.8)
    models = ('linear_hypernetwork', 'nonlinear_hypernetwork')
  config.sweep = (
      (
          ('task.num_modules', num_modules),
          ('task.fraction_ood', fractions),
          ('model', models),
      ),
  )
  return config
