"""Figures 4E, 4F and A9: modular students recompose goals.

Four models imitate demonstrations of goals that combine a quadrant, an
interaction, a maze and an object. With compositional support (a random quarter
of the 200 goals held out) the OOD accuracy of the hypernetworks is higher than
that of ANIL and MAML (4E); non-compositional support (the last quadrant held
out) costs the hypernetworks more than them (4F). The fraction of
demonstrations that are predicted without a single mistake shows the same (A9).
'laptop' has mazes of 7 x 7 cells in place of 11 x 11, and hypernetworks of 32
modules in place of 8. At this learning rate (0.003), the linear one then learns
faster. Figure 4E draws those of 8 modules at the better rate, 0.01, too.
'workstation' adds ANIL and MAML 480 wide, as large as the hypernetworks: a seed
of MAML takes three hours of a core.

  python -m modular_hyperteacher.main --config=configs/fig4e.py
  python figures/make_all.py --only=fig4e,fig4f,fig_a9
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import goals
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.configs.blocks import presets

WORKSTATION = presets.WORKSTATION


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns a config: 'smoke', 'laptop', 'workstation' or 'paper'."""
  sweep = models.recomposition_sweep(preset, matched_width=480)
  preset = presets.scale(preset)
  return experiment.make('fig4e', preset, sweep, **goals.blocks(preset))
