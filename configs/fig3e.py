"""Figure 3E: OOD accuracy over the number of modules and of those combined.

Four models on the hyperteacher, M modules, up to K of them combined in each
layer of a task. Hypernetworks solve combinations that they never saw if K > 1,
and fail for K = 1, where no two tasks share part of a combination. The same
runs make Figures A6 and A7 and Tables A2 to A8.

'laptop' has a smaller teacher and is thinned: M of 4 and 8; K of 1, 2 and M for
the hypernetworks; ANIL for M = 8 and K = 2 alone, and no MAML: no claim on the
grid is about them.

  python -m modular_hyperteacher.main --config=configs/fig3e.py
  python figures/make_all.py --only=fig3e,fig_a6,fig_a7,table_a6
"""

import ml_collections

from configs.blocks import common


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
  grid = {4: (1, 2, 4), 6: (1, 2, 4, 6), 8: (1, 2, 4, 6, 8)}
  if preset != 'paper':
    common.generate_two_layers(config)
    grid = {4: (1, 2, 4), 8: (1, 2, 8)}
  config.sweep = tuple(
      cells
      for num_modules, all_active in grid.items()
      for max_active in all_active
      for cells in common.model_grids(
          preset,
          _models(preset, num_modules, max_active),
          ('task.num_modules', (num_modules,)),
          ('task.max_active', (max_active,)),
      )
  )
  return config


def _models(preset: str, num_modules: int, max_active: int) -> tuple[str, ...]:
  """Returns the models of a cell: all, or as many as there is time for."""
  if preset == 'paper':
    return common.MODELS
  if (num_modules, max_active) == (8, 2):
    return common.HYPERNETWORKS + ('anil',)
  return common.HYPERNETWORKS
