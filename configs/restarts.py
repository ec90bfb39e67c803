"""Beyond the paper: do more starts find the modules at matched size?

A student of its teacher's size often stops at a loss above zero and is only
partly aligned (Figure 2D). Here, students learn each of three teachers from
many starts (seeds); `task.teacher_seed` fixes the teacher.

  python -m modular_hyperteacher.main --config=configs/restarts.py
  python figures/make_all.py --only=restarts
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import theory


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  grid = theory.grid(
      preset,
      'levenberg_marquardt',
      4000,
      **theory.size((1,), (1,)),
      teacher_seed=[0] if preset == 'smoke' else [0, 1, 2],
  )
  blocks = theory.blocks(preset, num_seeds=8, teacher_seed=0)
  return experiment.make('restarts', preset, grid, **blocks)
