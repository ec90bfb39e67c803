"""Section 4.1: combinations of more modules than training ever combined.

Tasks of many modules differ in difficulty from those of few. So each
hypernetwork is trained twice: on combinations of few modules, as in Figure 3B,
and, as a control, on combinations of up to all. Whether accuracy falls with the
number of modules is asked of the one minus the other.

OOD(K=8) is a single combination, on which the control trained in most seeds, so
that there is none held out: it is evaluated on it all the same
(`repeat_empty`).

  python -m modular_hyperteacher.main --config=configs/more_modules.py
  python figures/make_all.py --only=more_modules
"""

import ml_collections

from configs.blocks import common


def get_config(preset: str = 'laptop') -> ml_collections.ConfigDict:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = common.experiment(
      'more_modules',
      preset,
      task=common.hyperteacher_task(),
      models=common.hyperteacher_models(),
      training=common.training(num_outer_steps=200_000),
  )
  config.task.num_modules = 8
  common.scale_hyperteacher(config)
  config.task.repeat_empty = True
  if preset == 'laptop':
    config.training.seeds = tuple(range(2020, 2032))
  few, all_modules = config.task.max_active, config.task.num_modules
  config.sweep = (
      (
          ('task.max_active', (few, all_modules)),
          ('model', common.HYPERNETWORKS),
      ),
  )
  return config
