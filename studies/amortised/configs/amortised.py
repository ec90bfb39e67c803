"""Beyond the paper: can a forward pass take the place of gradient descent?

The hypernetworks of Figure 3B infer a task's embeddings by ten gradient steps.
Here a set encoder predicts them from the support set (*amortised*), or predicts
them and takes a few gradient steps more (*combined*). The teacher, the tasks
and the gradient-adapted runs are those of Figure 3B. At laptop scale each of
the eight other runs takes about three minutes of one core.

  python -m modular_hyperteacher.main --config=amortised
  python figures/make_all.py --only=amortised
"""

from typing import Any

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.configs.blocks import presets

# Inference -> the inner loop after the prediction. Three steps at the published
# rate of 0.3 are too coarse: training collapsed in one of three seeds.
_INFERENCE: dict[str, dict[str, Any]] = {
    'amortised': {'num_steps': 0},
    'combined': {'num_steps': 3, 'learning_rate': 0.03},
}
# The set encoder's width, layers per example and queries per embedding.
_ENCODER = {
    'encoder_hidden_dim': 128,
    'encoder_num_hidden': 2,
    'encoder_num_queries': 4,
}


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  blocks = hyperteacher.blocks(preset, num_modules=8)
  for inference, inner in _INFERENCE.items():
    # New blocks, so that they share no field with those above.
    adapted = hyperteacher.blocks(preset)['models']
    for name in models.HYPERNETWORKS:
      predicting = {'name': f'amortised_{name}', 'inner': inner, **_ENCODER}
      blocks['models'][f'{inference}_{name}'] = presets.merge(
          adapted[name], predicting
      )
  sweep = dict(
      task_support=['random', 'non_compositional'],
      model=[name for name in blocks['models'] if name not in ('anil', 'maml')],
  )
  return experiment.make('amortised', preset, sweep, **blocks)
