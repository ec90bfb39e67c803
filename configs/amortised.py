"""Beyond the paper: can a forward pass take the place of gradient descent?

The hypernetworks of Figure 3B infer a task's embeddings by ten gradient steps.
Here a set encoder predicts them from the support set (*amortised*), or predicts
them and takes a few gradient steps more (*combined*). The teacher, the tasks
and the gradient-adapted runs are those of Figure 3B. At laptop scale each of
the eight other runs takes about three minutes of one core.

  python -m modular_hyperteacher.main --config=configs/amortised.py
  python figures/make_all.py --only=amortised
"""

import copy
from typing import Any

import ml_collections

from configs.blocks import common

# How a model infers a task -> the inner loop that follows its prediction. Three
# steps at the published rate of 0.3 are too coarse: they undid what the encoder
# predicted, and training collapsed in one of three seeds.
_INFERENCE = {
    'amortised': {'num_steps': 0},
    'combined': {'num_steps': 3, 'learning_rate': 0.03},
}


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
  models: list[str] = list(common.HYPERNETWORKS)
  for inference, inner in _INFERENCE.items():
    for name in common.HYPERNETWORKS:
      models.append(f'{inference}_{name}')
      config.models[models[-1]] = _predicting(config.models[name], inner)
  config.sweep = (
      (
          ('task.task_support', ('random', 'non_compositional')),
          ('model', tuple(models)),
      ),
  )
  return config


def _predicting(
    hypernetwork: common.Config, inner: dict[str, Any]
) -> common.Config:
  """Returns the block of a hypernetwork that predicts its embeddings."""
  model = copy.deepcopy(hypernetwork)
  model.name = f'amortised_{hypernetwork.name}'
  model.inner.update(inner)
  model.update({
      # Of the set encoder: width, layers per example, questions per embedding.
      'encoder_hidden_dim': 128,
      'encoder_num_hidden': 2,
      'encoder_num_queries': 4,
  })
  return model
