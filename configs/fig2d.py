"""Figure 2D: how large may the student be?

The student of Figure 2C, grown in hidden units, in modules, and in both, on
connected families (singles and ring), with discrete and with continuous
latents. The paper finds that beyond slight overparameterisation alignment falls
for discrete tasks, and stays for continuous ones. Figure A2 shows the OOD loss
of the same runs.

Expected at laptop scale, converged inference: 0.98 to 1.00 from twice the
teacher's size on, with discrete latents, too. 'workstation' adds the published
solver, Adam.

  python -m modular_hyperteacher.main --config=configs/fig2d.py
  python -m modular_hyperteacher.main --config=configs/fig2d.py:longer
  python figures/make_all.py --only=fig2d,fig_a2,longer
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.configs.blocks import theory
from modular_hyperteacher.configs.blocks import variants

WORKSTATION = presets.WORKSTATION


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of a preset, or of a variant; see `VARIANTS`."""
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


def _longer(preset: str) -> experiment.Config:
  """Trains four times as long: is it the short training?

  Latents are inferred by Adam, as published, and tasks are discrete. Students
  have two or eight times the teacher's hidden units and modules.
  """
  config = get_config(WORKSTATION if preset == 'laptop' else preset)
  *_, grid = (grid for grid in config.sweep if grid['model'] == ['adam'])
  sizes = ('hidden_dim', 'modules_per_teacher_module')
  ends = {size: sorted({grid[size][0], grid[size][-1]}) for size in sizes}
  grid |= ends | {'latent_type': ['discrete']}
  return variants.longer(config, grid)


VARIANTS = {'longer': _longer}
get_config = variants.add('fig2d', get_config, VARIANTS)
