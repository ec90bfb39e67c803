"""Figure 2D, trained four times as long: is it the short training?

Latents are inferred by Adam, as published, and tasks are discrete. Students
have two or eight times the teacher's hidden units and modules. After 1,500
outer steps, alignment rises with the number of modules, which contradicts claim
2D-d-adam.

  python -m modular_hyperteacher.main --config=configs/fig2d_longer.py
  python figures/make_all.py --only=longer
"""

from modular_hyperteacher.configs import fig2d
from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.experiments import sweeps


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = fig2d.get_config(sweeps.full_preset('fig2d', preset))
  *_, grid = (grid for grid in config.sweep if grid['model'] == ['adam'])
  sizes = ('hidden_dim', 'modules_per_teacher_module')
  ends = {size: sorted({grid[size][0], grid[size][-1]}) for size in sizes}
  grid |= ends | {'latent_type': ['discrete']}
  return experiment.longer(config, grid)
