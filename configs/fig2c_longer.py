"""Figure 2C, trained four times as long: is it the short training?

Latents are inferred by Adam, as published, with three of the continuous
families. After 1,500 outer steps, students of the connected one (three triples)
have a lower alignment than those of the other two, which contradicts claim
2C-c-adam.

  python -m modular_hyperteacher.main --config=configs/fig2c_longer.py
  python figures/make_all.py --only=longer
"""

from configs import fig2c
from configs.blocks import experiment

_FAMILIES = ['triangles', 'chained_triples', 'halves_triangles']


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = fig2c.get_config(preset)
  (grid,) = (
      grid
      for grid in config.sweep
      if grid['model'] == ['adam'] and grid['latent_type'] == ['continuous']
  )
  return experiment.longer(config, grid | {'task_support': _FAMILIES})
