"""Figure 2C, trained four times as long: is it the short training?

Latents are inferred by Adam, as published, with three of the continuous
families. After 1,500 outer steps, students of the connected one (three triples)
have a lower alignment than those of the other two, which contradicts claim
2C-c-adam.

  python -m modular_hyperteacher.main --config=configs/fig2c_longer.py
  python figures/make_all.py --only=longer
"""

from modular_hyperteacher.configs import fig2c
from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.tasks.supports import families


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = fig2c.get_config(sweeps.full_preset('fig2c', preset))
  (grid,) = (
      grid
      for grid in config.sweep
      if grid['model'] == ['adam'] and grid['latent_type'] == ['continuous']
  )
  supports = [families.TRIPLES, *families.WITH_TRIANGLES]
  return experiment.longer(config, grid | {'task_support': supports})
