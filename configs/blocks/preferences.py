"""The blocks of compositional preferences (Section 4.2, Appendix C.3).

'laptop' keeps the world, the tasks, the models' kinds and their inner loops
(but ANIL takes the whole support set at each of its steps, in place of 64
examples), and uses narrower students, higher outer learning rates that
decay, and fewer and smaller outer steps.
"""

from typing import Any

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.configs.blocks import presets


def blocks(preset: str, num_seeds: int = 3, **fields: Any) -> experiment.Block:
  """Returns the task, models and training of a preset.

  `num_seeds` is for the published scale; fields replace the task's.
  """
  task = {
      'name': 'preferences',
      # M, and K: how many of them a task mixes at most.
      'num_modules': 8,
      'max_active': 3,
      # 'random', 'non_compositional', 'connected' or 'disconnected'.
      'task_support': 'random',
      # Share of the combinations that 'random' holds out.
      'fraction_ood': 0.25,
      # 'released' as in the authors' code, or 'paper' as in its text.
      'sampler': 'released',
      # Instances per task, each of eight steps; in training and at evaluation.
      'num_support': 16,
      'num_query': 16,
      'num_query_evaluation': 1,
  }
  table_a11: dict[str, Any] = {
      'num_hidden': (4, 3, 3, 2),
      'hidden_dim': (512, 368, 64, 64),
      'num_modules': (None, None, 32, 32),
      'num_steps': (100, 10, 10, 10),
      'inner_rate': (0.01, 0.01, 0.1, 0.1),
      'batch_size': (64, None, None, None),
      'outer_rate': (3e-4, 1e-3, 3e-4, 3e-4),
      'clip_norm': (2.0, 2.0, 1.0, 2.0),
      'weight_decay': (1e-2, 1e-2, 1e-2, 1e-2),
  }
  if preset != 'paper':
    table_a11 |= models.SMALL_GRIDWORLD | {
        'num_modules': (None, None, 16, 16),
        'batch_size': (None, None, None, None),
        'outer_rate': (1e-3, 1e-3, 3e-3, 3e-3),
    }
  training = presets.choose(
      preset,
      smoke=experiment.SMOKE,
      laptop=experiment.LAPTOP_GRIDWORLD,
      paper={
          'seeds': tuple(range(2020, 2020 + num_seeds)),
          'num_outer_steps': 100_000,
      },
  )
  return {
      'task': task | fields,
      'models': models.make_all(**table_a11),
      'training': experiment.training(**training),
  }
