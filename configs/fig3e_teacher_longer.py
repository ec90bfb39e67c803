"""Figure 3E with a larger teacher, trained four times as long.

With a teacher of eight inputs, units and outputs, ANIL's OOD accuracy stops at
the published level within 3,000 outer steps, while both hypernetworks still
gain. After 12,000 steps they have nearly caught up.

  python -m modular_hyperteacher.main --config=configs/fig3e_teacher_longer.py
  python figures/make_all.py --only=longer
"""

from modular_hyperteacher.configs import fig3e_teacher
from modular_hyperteacher.configs.blocks import experiment


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = fig3e_teacher.get_config(preset)
  return experiment.longer(config, *config.sweep)
