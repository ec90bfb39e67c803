"""Beyond the paper: do more starts find the modules at matched size?

A student of exactly its teacher's size often stops at an error above zero,
aligned only in part (Figure 2D). Here each of three teachers is learned from
many starts, that is, seeds: `task.teacher_seed` keeps the teacher.

  python -m modular_hyperteacher.main --config=configs/restarts.py
  python figures/make_all.py --only=restarts
"""

import ml_collections

from configs.blocks import theory

_LAPTOP = {'levenberg_marquardt': (4000, 2)}


def get_config(preset: str = 'laptop') -> ml_collections.ConfigDict:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = theory.experiment('restarts', preset)
  config.task.update({
      'task_support': 'singles_ring',
      'latent_type': 'discrete',
      # Of the teacher that all seeds share.
      'teacher_seed': 0,
  })
  if preset != 'smoke':
    config.training.seeds = tuple(range(100, 108))
  teachers = (0,) if preset == 'smoke' else (0, 1, 2)
  config.sweep = (
      theory.solver_axes('levenberg_marquardt', preset, _LAPTOP)
      + theory.size_axes(config, 1, 1)
      + (('task.teacher_seed', teachers),),
  )
  return config
