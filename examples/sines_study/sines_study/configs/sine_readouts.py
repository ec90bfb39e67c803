"""Readouts of 4 and of 32 units."""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.experiments import sweeps


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset."""
  readout = {
      'name': 'sines_study.model:make',
      'width': 32,
      'with_bias': False,
      'inner': {'num_steps': 10, 'learning_rate': 0.03, 'eps_root': 1e-8},
      'outer': {
          'learning_rate': 0.003,
          'weight_decay': 0.0,
          'clip_norm': 1.0,
          'max_consecutive_skips': 0,
      },
  }
  return experiment.make(
      'sine_readouts',
      preset,
      sweeps.grid(width=[4, 32], model=['readout']),
      task={'name': 'sines_study.task:make', 'num_examples': 16},
      models={'readout': readout},
      training=experiment.training(
          num_outer_steps=60,
          meta_batch_size=8,
          evaluate_every=30,
          num_evaluation_tasks=64,
      ),
  )
