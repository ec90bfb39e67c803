"""Figures 3C and 3D: adapted parameters say which modules a task combines.

Hypernetworks on the hyperteacher with M = 8 modules, up to K = 2 of them
combined in each layer of a task. From their adapted parameters the modules of
a task that combines them anew can be decoded linearly: with compositional
support (R2 close to one) better than with non-compositional support (3C), and
with connected better than with disconnected support (3D). At the published
scale, half of the runs are Figure 3B's. At laptop scale, both show with one
generated layer; with two, R² is higher with connected support, but about zero.

  python -m modular_hyperteacher.main --config=configs/fig3c.py
  python figures/make_all.py --only=fig3c,fig3d
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.configs.blocks import presets

DESKTOP = presets.DESKTOP


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of a preset; see `presets`."""
  sweep = [
      dict(
          task_support=['random', 'non_compositional'],
          model=models.HYPERNETWORKS,
      ),
      dict(
          task_support=['connected', 'disconnected'],
          model=models.HYPERNETWORKS,
          **hyperteacher.fewer_steps(preset),
      ),
  ]
  # Connected support is of pairs.
  blocks = hyperteacher.blocks(preset, num_modules=8, max_active=2)
  return experiment.make('fig3c', preset, sweep, **blocks)
