"""A config of the smallest runs, for launchers: one model, one seed per run."""

import ml_collections

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import presets

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
  number = 1500 if preset == 'paper' else 4
  blocks = hyperteacher.blocks('paper')
  tiny = {'num_hidden': 2, 'hidden_dim': 4, 'inner': {'num_steps': 2}}
  config = experiment.make(
      'small',
      preset,
      dict(model=['maml'], seeds=[(seed,) for seed in range(number)]),
      task=blocks['task'] | _TINY,
      models=presets.merge(blocks['models'], {'maml': tiny}),
      training=experiment.training(
          num_outer_steps=40,
          meta_batch_size=8,
          evaluate_every=20,
          num_evaluation_tasks=8,
      ),
      log_every=10,
  )
  config.execution.checkpoint_every_s = 0.0
  return config
