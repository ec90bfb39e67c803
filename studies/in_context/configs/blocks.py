"""Blocks of the in-context learners, a transformer with and without bottleneck.

Values are those of Kobayashi et al. (2024), Tables 2 and 3, and where the paper
says nothing, of the released code of Schug et al. (2025). 'laptop' keeps the
teacher and the supports. It halves sequences and batches, gives both models the
same width, and takes fewer steps. A step of the bottleneck, which learns more
slowly, is no more expensive, so it takes more of them. 'smoke' takes a few
steps of tiny models.
"""

from typing import Any

from ml_collections import config_dict

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.experiments import sweeps

VANILLA, BOTTLENECK = MODELS = ('transformer', 'hypernetwork_transformer')


def models(preset: str, **bottleneck: Any) -> dict[str, Any]:
  """Returns the blocks of both models, given more fields of the bottleneck."""
  width = presets.choose(preset, smoke=8, laptop=64, paper=128)
  narrow = presets.choose(preset, smoke=8, laptop=64, paper=64)
  return {
      VANILLA: _model(preset, VANILLA, width, 0.1),
      BOTTLENECK: _model(preset, BOTTLENECK, narrow, 0.0) | bottleneck,
  }


def attention_model(
    preset: str, warmup_fraction: float, **body: int
) -> experiment.Block:
  """Returns the transformer of Schug et al. (2025), given fields of its body.

  The warm-up is that of the published scale.
  """
  model = models(preset)[VANILLA]
  model['body'] |= {
      **body,
      'feedforward_dim': 2 * model['body']['embedding_dim'],
      # Not in the paper, but active in the released code.
      'attention_dropout': 0.1,
  }
  model['outer']['clip_norm'] = config_dict.placeholder(float)
  if preset == 'paper':
    model['outer']['warmup_fraction'] = warmup_fraction
  return model


def grids(
    preset: str, laptop_steps: tuple[int, int], **axes: list[Any]
) -> list[sweeps.Grid]:
  """Returns a grid of runs per model, given field -> values.

  At laptop scale, the transformer and the bottleneck take different numbers of
  steps.
  """
  if preset != 'laptop':
    return [dict(model=list(MODELS), **axes)]
  return [
      dict(model=[model], num_outer_steps=[number], **axes)
      for model, number in zip(MODELS, laptop_steps)
  ]


def training(preset: str) -> experiment.Block:
  """Returns the training block."""
  scale = presets.choose(
      preset,
      smoke=experiment.SMOKE | {'num_evaluation_tasks': 32},
      laptop={'meta_batch_size': 64, 'num_evaluation_tasks': 2048},
      paper={'num_outer_steps': 100_000, 'num_evaluation_tasks': 16_000},
  )
  return experiment.training(**scale)


def _model(
    preset: str, name: str, width: int, weight_decay: float
) -> experiment.Block:
  return {
      'name': name,
      'body': {
          'embedding_dim': width,
          'num_layers': 2,
          'num_heads': 4,
          # Width of queries, keys and values, over all heads; None: as tokens.
          'qkv_dim': config_dict.placeholder(int),
          'feedforward_dim': 4 * width,
          # See `attention.KINDS`.
          'attention': 'softmax',
          # Share of pairs of tokens whose scores are dropped in training.
          'attention_dropout': 0.0,
      },
      'outer': {
          'learning_rate': 1e-3,
          # Share of the steps over which the rate rises.
          'warmup_fraction': 0.01 if preset == 'paper' else 0.02,
          # Share of the rate at the end of the cosine.
          'final_fraction': 0.1,
          'weight_decay': weight_decay,
          'clip_norm': 1.0,
      },
  }
