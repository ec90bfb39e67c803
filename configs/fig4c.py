"""Figure 4C: modular students recompose preferences, monolithic ones do not.

Four models meta-learn preferences that mix up to K = 3 of M = 8 templates.
In the paper, the OOD loss of the hypernetworks is lower than that of ANIL and
MAML with compositional support, and rises markedly with non-compositional
support (the last template held out). At laptop scale ANIL's is lower.
'workstation' adds ANIL and MAML 326 wide, as large as the linear hypernetwork:
a seed of MAML takes three hours of a core.

  python -m modular_hyperteacher.main --config=configs/fig4c.py
  python figures/make_all.py --only=fig4c
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.configs.blocks import preferences
from modular_hyperteacher.configs.blocks import presets

WORKSTATION = presets.WORKSTATION


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns a config: 'smoke', 'laptop', 'workstation' or 'paper'."""
  sweep = models.recomposition_sweep(preset, matched_width=326)
  preset = presets.scale(preset)
  blocks = preferences.blocks(preset, num_seeds=6)
  return experiment.make('fig4c', preset, sweep, **blocks)
