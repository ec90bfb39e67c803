"""Table A1: does weight decay restore the alignment of large students?

Students larger than their teacher on discrete tasks (Figure 2D), with and
without weight decay in the outer loop. The paper finds that it does not help.
Which sizes the four columns of the published table stand for is lost; the paper
preset runs the grid of Figure 2D.

  python -m modular_hyperteacher.main --config=configs/table_a1.py
  python figures/make_all.py --only=table_a1
"""

import itertools

import ml_collections

from configs.blocks import theory

_PAPER_FACTORS = (2, 4, 8, 16, 32)
_LAPTOP = {'levenberg_marquardt': (2000, 2), 'adam': (1500, 8)}
# 1e-3 times (60,000 steps at 1e-3) over (2,000 at 1e-2, or 1,500 at 3e-3).
_LAPTOP_DECAYS = {
    'levenberg_marquardt': (0.0, 3e-3),
    'adam': (0.0, 1.3e-2),
}


def get_config(preset: str = 'laptop') -> ml_collections.ConfigDict:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = theory.experiment('table_a1', preset)
  config.task.update(
      {'task_support': 'singles_ring', 'latent_type': 'discrete'}
  )
  if preset == 'laptop':
    config.training.seeds = (100, 101, 102)
  weight_decays = {
      'smoke': dict.fromkeys(theory.solvers(preset), (0.0, 1e-3)),
      'laptop': _LAPTOP_DECAYS,
      'paper': dict.fromkeys(theory.solvers(preset), (0.0, 1e-5, 1e-4, 1e-3)),
  }[preset]
  sizes = {
      'smoke': ((2, 2),),
      'laptop': ((2, 2), (4, 4)),
      'paper': tuple(itertools.product(_PAPER_FACTORS, repeat=2)),
  }[preset]
  config.sweep = tuple(
      theory.solver_axes(solver, preset, _LAPTOP)
      + theory.size_axes(config, *size)
      + (('model.outer.weight_decay', weight_decays[solver]),)
      for solver in theory.solvers(preset)
      for size in sizes
  )
  return config
