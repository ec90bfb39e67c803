"""Theorem 1 as an experiment: no error in training, no error anywhere.

Students of exactly the teacher's size are trained from many starts, on
connected families (the ring) and on disconnected ones (two triangles). Not
every start reaches an error near zero. Those that do fit every combination of
modules if the families are connected, and are identified; if they are not, they
need not.

  python -m modular_hyperteacher.main --config=configs/theorem.py
  python figures/make_all.py --only=theorem
"""

import ml_collections

from configs import theory

_LAPTOP = {'levenberg_marquardt': (8000, 1)}


def get_config(preset: str = 'laptop') -> ml_collections.ConfigDict:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = theory.experiment('theorem', preset)
  config.task.update({'teacher_hidden_dim': 4, 'latent_type': 'continuous'})
  if preset != 'smoke':
    config.training.seeds = tuple(range(100, 112))
  config.sweep = (
      theory.solver_axes('levenberg_marquardt', preset, _LAPTOP)
      + theory.size_axes(config, 1, 1)
      + (('task.task_support', ('ring', 'triangles')),),
  )
  return config
