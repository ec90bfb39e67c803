"""Figure 2D: how large may the student be?

The student of Figure 2C, grown in hidden units, in modules, and in both, on
connected families (singles and ring), with discrete and with continuous
latents. The paper finds that beyond twice the teacher's size alignment falls
for discrete tasks, and stays for continuous ones. Figure A2 shows the OOD loss
of the same runs.

To expect at laptop scale, converged inference: 0.98 to 1.00 from twice the
teacher's size on, with discrete latents, too.

  python -m modular_hyperteacher.main --config=configs/fig2d.py
  python figures/make_all.py --only=fig2d,fig_a2
"""

import itertools

import ml_collections

from configs.blocks import theory

_PAPER_FACTORS = (2, 4, 8, 16, 32)
# (hidden units, modules), as multiples of the teacher's.
_LAPTOP_SIZES = ((1, 1), *itertools.product((2, 4, 8), repeat=2))
# Inner loop -> outer steps and tasks computed at once.
_LAPTOP = {'levenberg_marquardt': (2000, 1), 'adam': (1500, 8)}


def get_config(preset: str = 'laptop') -> ml_collections.ConfigDict:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = theory.experiment('fig2d', preset)
  config.task.task_support = 'singles_ring'
  if preset == 'laptop':
    config.training.seeds = (100, 101, 102)
  sizes = {
      'smoke': ((1, 1), (2, 4)),
      'laptop': _LAPTOP_SIZES,
      'paper': tuple(itertools.product(_PAPER_FACTORS, repeat=2)),
  }[preset]
  config.sweep = tuple(
      theory.solver_axes(solver, preset, _LAPTOP)
      + theory.size_axes(config, *size)
      + (('task.latent_type', ('discrete', 'continuous')),)
      for solver in theory.solvers(preset)
      for size in sizes
  )
  return config
