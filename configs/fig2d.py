"""Figure 2D: how large may the student be?

The student of Figure 2C, grown in hidden units, in modules, and in both, on
connected families (singles and ring), with discrete and with continuous
latents. The paper finds that beyond twice the teacher's size alignment falls
for discrete tasks, and stays for continuous ones. Figure A2 shows the OOD loss
of the same runs.

Expected at laptop scale, converged inference: 0.98 to 1.00 from twice the
teacher's size on, with discrete latents, too. 'workstation' adds the published
solver, Adam.

  python -m modular_hyperteacher.main --config=configs/fig2d.py
  python figures/make_all.py --only=fig2d,fig_a2
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.configs.blocks import theory

WORKSTATION = presets.WORKSTATION


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns a config: 'smoke', 'laptop', 'workstation' or 'paper'."""
  solvers = theory.solvers(preset, 2000, 1500)
  preset = presets.scale(preset)
  # Hidden units and modules, as multiples of the teacher's: every one of these
  # with every one of those.
  sizes = presets.choose(
      preset,
      smoke=[((1,), (1,)), ((2,), (4,))],
      laptop=[((1,), (1,)), (theory.FACTORS[:3], theory.FACTORS[:3])],
      paper=[(theory.FACTORS, theory.FACTORS)],
  )
  sweep = [
      theory.grid(
          preset,
          solver,
          steps,
          **theory.size(*factors),
          latent_type=['discrete', 'continuous'],
      )
      for solver, steps in solvers.items()
      for factors in sizes
  ]
  return experiment.make(
      'fig2d', preset, sweep, **theory.blocks(preset, chunk_size=1)
  )
