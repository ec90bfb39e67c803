"""Figure 3E, trained four times as long: does ANIL stay ahead?

Three models in the one cell where ANIL is trained at laptop scale: M = 8
modules, K = 2 of them combined. After 3,000 outer steps, ANIL beats both
hypernetworks there, which contradicts claim 3E.

  python -m modular_hyperteacher.main --config=configs/fig3e_longer.py
  python figures/make_all.py --only=longer
"""

from modular_hyperteacher.configs import fig3e
from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.experiments import sweeps


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  grid = sweeps.grid(
      {'task.num_modules': [8]},
      max_active=[2],
      model=models.HYPERNETWORKS + ('anil',),
  )
  return experiment.longer(fig3e.get_config(preset), grid)
