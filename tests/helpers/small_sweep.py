"""A config of the smallest runs, for launchers: one model, one seed per run."""

from typing import Any

import ml_collections

from configs.blocks import common

_TINY = {
    'num_modules': 3,
    'max_active': 2,
    'fraction_ood': 0.34,
    'input_dim': 3,
    'output_dim': 4,
    'teacher_hidden_dim': 4,
    'teacher_num_hidden': 2,
    'num_support': 6,
    'num_query': 5,
    'num_standardisation': 20,
}


def get_config(preset: str = 'smoke') -> ml_collections.ConfigDict:
  """Returns four runs that differ in their seeds; 1,500 for 'paper'."""
  config: Any = common.experiment(
      'small',
      preset,
      task=common.hyperteacher_task(),
      models=common.hyperteacher_models(),
      training=common.training(num_outer_steps=40),
  )
  config.task.update(_TINY)
  config.models.maml.update({'num_hidden': 2, 'hidden_dim': 4})
  config.models.maml.inner.num_steps = 2
  config.training.update({
      'meta_batch_size': 8,
      'evaluate_every': 20,
      'num_evaluation_tasks': 8,
  })
  config.execution.update({'log_every': 10, 'checkpoint_every_s': 0.0})
  number = 1500 if preset == 'paper' else 4
  seeds = tuple((seed,) for seed in range(number))
  config.sweep = ((('model', ('maml',)), ('training.seeds', seeds)),)
  return config
