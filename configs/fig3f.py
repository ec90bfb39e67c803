"""Figure 3F: OOD accuracy over the student's size.

Hypernetworks on the hyperteacher with M = 4 modules, K = 2 and a teacher of
half the width; the student's width and number of modules vary. OOD accuracy
rises with some overparameterisation and then falls. At the published scale each
cell has three outer learning rates; the figure shows the one with the lowest
validation loss. 'laptop' is thinned to three widths, three numbers of modules
and one learning rate, with M = 6 and K = 3: its teacher generates one layer,
for which M = 4 modules make too few combinations.

  python -m modular_hyperteacher.main --config=configs/fig3f.py
  python figures/make_all.py --only=fig3f
"""

import ml_collections

from configs.blocks import common

_FACTORS = (1, 2, 4, 8, 16)  # M-hat / M
_WIDTHS = (16, 32, 64, 128, 256, 512)
_LEARNING_RATES = (3e-4, 1e-3, 3e-3)
_MODELS = ('linear_hypernetwork', 'nonlinear_hypernetwork')


def get_config(preset: str = 'laptop') -> ml_collections.ConfigDict:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = common.experiment(
      'fig3f',
      preset,
      task=common.hyperteacher_task(),
      models=common.hyperteacher_models(),
      training=common.training(num_outer_steps=200_000),
  )
  config.task.teacher_hidden_dim = 16
  common.scale_hyperteacher(config)
  factors, widths, rates = _FACTORS, _WIDTHS, _LEARNING_RATES
  if preset != 'paper':
    config.task.update({'num_modules': 6, 'max_active': 3})
    factors, widths, rates = (1, 4, 16), (8, 32, 64), (3e-3,)
  config.sweep = (
      (
          ('model.modules_per_teacher_module', factors),
          ('model.hidden_dim', widths),
          ('model.outer.learning_rate', rates),
          ('model', _MODELS),
      ),
  )
  return config
