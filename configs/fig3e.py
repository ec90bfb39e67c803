"""Figure 3E: OOD accuracy over the number of modules and of those combined.

Four models on the hyperteacher, M modules, up to K of them combined in each
layer of a task. Hypernetworks solve combinations that they never saw if K > 1,
and fail for K = 1, where no two tasks share part of a combination. The same
runs make Figures A6 and A7 and Tables A2 to A8.

'laptop' has a smaller teacher and is thinned: M of 4 and 8; K of 1, 2, 4 and 8
for the hypernetworks; M = 8 and K = 2 alone for ANIL and MAML, which take twice
as long and which no claim on the grid is about.

  python -m modular_hyperteacher.main --config=configs/fig3e.py
  python figures/make_all.py --only=fig3e,fig_a6,fig_a7,table_a6
"""

import ml_collections

from configs import common


def get_config(preset: str = 'laptop') -> ml_collections.ConfigDict:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = common.experiment(
      'fig3e',
      preset,
      task=common.hyperteacher_task(),
      models=common.hyperteacher_models(),
      training=common.training(num_outer_steps=100_000),
  )
  common.scale_hyperteacher(config)
  all_modules, all_active = (4, 6, 8), (1, 2, 4, 6, 8)
  if preset != 'paper':
    common.generate_two_layers(config)
    all_modules, all_active = (4, 8), (1, 2, 4, 8)
  everywhere = common.MODELS if preset == 'paper' else common.HYPERNETWORKS
  config.sweep = tuple(
      _grid(
          num_modules,
          # More modules than there are cannot be combined.
          tuple(k for k in all_active if k <= num_modules),
          everywhere,
      )
      for num_modules in all_modules
  )
  if preset != 'paper':
    config.sweep += (_grid(8, (2,), ('anil', 'maml')),)
  return config


def _grid(num_modules, max_active, models):
  return (
      ('task.num_modules', (num_modules,)),
      ('task.max_active', max_active),
      ('model', models),
  )
