"""Blocks of networks that are given the task (Redhardt et al., 2025)."""

from ml_collections import config_dict

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import presets

NAME = 'multitask_mlp'
TRANSFORMER = 'multitask_transformer'


def model(preset: str) -> experiment.Block:
  """Returns the MLP's block at a preset."""
  return {
      'name': NAME,
      'num_hidden': presets.choose(preset, smoke=2, laptop=3, paper=4),
      'hidden_dim': presets.choose(preset, smoke=8, laptop=128, paper=1024),
      **_training(preset, 1e-3),
  }


def transformer(preset: str, example_dim: int) -> experiment.Block:
  """Returns the transformer's block, for tasks with inputs [example_dim].

  At laptop scale it has 26,000 parameters, the MLP 36,000.
  """
  return {
      'name': TRANSFORMER,
      'example_dim': example_dim,
      'embedding_dim': presets.choose(preset, smoke=8, laptop=32, paper=256),
      'num_layers': presets.choose(preset, smoke=1, laptop=2, paper=4),
      'num_heads': presets.choose(preset, smoke=2, laptop=4, paper=4),
      'feedforward_dim': presets.choose(
          preset, smoke=16, laptop=128, paper=1024
      ),
      # At laptop scale, the better of 1e-3 and 3e-3 on seen combinations.
      **_training(preset, 3e-3),
  }


def _training(preset: str, learning_rate: float) -> experiment.Block:
  """Returns the loops' blocks.

  At laptop scale a few thousand steps take the place of 300,000: the rate is
  higher, and decays.
  """
  return {
      # There is nothing to infer.
      'inner': {'num_steps': 0},
      'outer': {
          'learning_rate': 3e-4 if preset == 'paper' else learning_rate,
          'final_fraction': 1.0 if preset == 'paper' else 0.01,
          'weight_decay': 3e-3,
          'decay_vectors': False,
          'clip_norm': config_dict.placeholder(float),
          'max_consecutive_skips': 0,
      },
  }
