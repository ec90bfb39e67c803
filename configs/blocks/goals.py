"""The blocks of compositional goals (Section 4.3, Appendix C.4).

'laptop' keeps all 200 goals, the models' kinds and their inner loops, and uses
mazes of 7 x 7 cells, narrower monolithic models, four times the modules, an
outer learning rate of 0.003 (published for the linear hypernetwork only) that
decays, and fewer and smaller steps. In the published mazes of 11 x 11,
hypernetworks are far from trained after as many minutes.
"""

from typing import Any

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.configs.blocks import presets


def blocks(preset: str) -> experiment.Block:
  """Returns the task, models and training of a preset."""
  task = {
      'name': 'goals',
      # 'random' or 'non_compositional'.
      'task_support': 'random',
      # Share of the goals that 'random' holds out.
      'fraction_ood': 0.25,
      # Cells along a side of a maze; agents start at least as many moves away
      # from their target.
      'grid_size': 11,
      # Moves of the longest demonstration that there is room for. Mazes with
      # longer shortest paths are drawn again.
      'max_path_length': 60,
  }
  table_a12: dict[str, Any] = {
      'num_hidden': (2, 2, 2, 2),
      'hidden_dim': (512, 384, 32, 32),
      'num_modules': (None, None, 8, 8),
      'num_steps': (100, 10, 10, 10),
      'inner_rate': (0.01, 0.01, 0.3, 0.1),
      'outer_rate': (1e-3, 1e-3, 3e-3, 1e-3),
      'clip_norm': (2.0, 1.0, 2.0, 2.0),
      'weight_decay': (1e-2, 1e-2, 1e-2, 1e-2),
      'max_consecutive_skips': (0, 0, 0, 0),
  }
  if preset != 'paper':
    task |= {'grid_size': 7, 'max_path_length': 24}
    table_a12 |= models.SMALL_GRIDWORLD | {
        'num_modules': (None, None, 32, 32),
        'outer_rate': (3e-3, 3e-3, 3e-3, 3e-3),
    }
  training = presets.choose(
      preset,
      smoke=experiment.SMOKE,
      laptop=experiment.LAPTOP_GRIDWORLD,
      paper={'num_outer_steps': 200_000},
  )
  return {
      'task': task,
      'models': models.make_all(**table_a12),
      'training': experiment.training(**training),
  }
