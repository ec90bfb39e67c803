"""Figure 4C, trained four times as long: does ANIL stay ahead?

Compositional support. After 3,000 outer steps of 16 tasks, the loss of ANIL on
new combinations is below that of both hypernetworks, which contradicts claim
4C-1.

  python -m modular_hyperteacher.main --config=configs/fig4c_longer.py
  python figures/make_all.py --only=longer
"""

from modular_hyperteacher.configs import fig4c
from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.experiments import sweeps


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  grid = sweeps.grid(
      task_support=['random'], model=models.HYPERNETWORKS + ('anil',)
  )
  return experiment.longer(fig4c.get_config(preset), grid)
