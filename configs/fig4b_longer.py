"""Figure 4B, trained four times as long: does connected support help then?

After 3,000 outer steps of 16 tasks, students have learned too little to
recompose anything, and the supports hardly differ: claim 4B is undecided.

  python -m modular_hyperteacher.main --config=configs/fig4b_longer.py
  python figures/make_all.py --only=longer
"""

from modular_hyperteacher.configs import fig4b
from modular_hyperteacher.configs.blocks import experiment


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = fig4b.get_config(preset)
  return experiment.longer(config, *config.sweep)
