"""Beyond the paper: do more starts find the modules at matched size?

A student of exactly its teacher's size often stops at an error above zero,
aligned only in part (Figure 2D). Here each of three teachers is learned from
many starts, that is, seeds: `task.teacher_seed` keeps the teacher.

  python -m modular_hyperteacher.main --config=configs/restarts.py
  python figures/make_all.py --only=restarts
"""

from configs.blocks import experiment
from configs.blocks import theory


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  grid = theory.grid(
      preset,
      'levenberg_marquardt',
      4000,
      hidden_dim=[16],
      modules_per_teacher_module=[1],
      teacher_seed=[0] if preset == 'smoke' else [0, 1, 2],
  )
  blocks = theory.blocks(preset, num_seeds=8, teacher_seed=0)
  return experiment.make('restarts', preset, grid, **blocks)
