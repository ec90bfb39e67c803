"""The block of the network that is given the task (Redhardt et al., 2025)."""

from ml_collections import config_dict

from configs.blocks import experiment
from configs.blocks import presets

NAME = 'multitask_mlp'


def model(preset: str) -> experiment.Block:
  """Returns the network's block at a preset.

  At laptop scale a few thousand steps take the place of 300,000: the rate is
  higher, and decays.
  """
  return {
      'name': NAME,
      'num_hidden': presets.choose(preset, smoke=2, laptop=3, paper=4),
      'hidden_dim': presets.choose(preset, smoke=8, laptop=128, paper=1024),
      # There is nothing to infer.
      'inner': {'num_steps': 0},
      'outer': {
          'learning_rate': 3e-4 if preset == 'paper' else 1e-3,
          'final_fraction': 1.0 if preset == 'paper' else 0.01,
          'weight_decay': 3e-3,
          'decay_vectors': False,
          'clip_norm': config_dict.placeholder(float),
          'max_consecutive_skips': 0,
      },
  }
