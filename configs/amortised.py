"""Beyond the paper: can a forward pass take the place of gradient descent?

The hypernetworks of Figure 3B infer a task's embeddings by ten gradient steps.
Here a set encoder predicts them from the support set (*amortised*), or predicts
them and takes a few gradient steps more (*combined*). The teacher, the tasks
and the gradient-adapted runs are those of Figure 3B.

  python -m modular_hyperteacher.main --config=configs/amortised.py
  python figures/make_all.py --only=amortised
"""

import copy

import ml_collections

from configs import common

# How a model infers a task -> inner steps that follow its prediction.
_INFERENCE = {'amortised': 0, 'combined': 3}


def get_config(preset: str = 'laptop') -> ml_collections.ConfigDict:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = common.experiment(
      'amortised',
      preset,
      task=common.hyperteacher_task(),
      models=common.hyperteacher_models(),
      training=common.training(num_outer_steps=200_000),
  )
  config.task.num_modules = 8
  common.scale_hyperteacher(config)
  models = list(common.HYPERNETWORKS)
  for inference, num_steps in _INFERENCE.items():
    for name in common.HYPERNETWORKS:
      models.append(f'{inference}_{name}')
      config.models[models[-1]] = _predicting(config.models[name], num_steps)
  config.sweep = (
      (
          ('task.task_support', ('random', 'non_compositional')),
          ('model', tuple(models)),
      ),
  )
  return config


def _predicting(hypernetwork, num_steps):
  """Returns the block of a hypernetwork that predicts its embeddings."""
  model = copy.deepcopy(hypernetwork)
  model.name = f'amortised_{hypernetwork.name}'
  model.inner.num_steps = num_steps
  model.update({
      # Of the set encoder: width, layers per example, questions per embedding.
      'encoder_hidden_dim': 128,
      'encoder_num_hidden': 2,
      'encoder_num_queries': 4,
  })
  return model
