"""Figure 3D with two generated layers at laptop scale.

With one generated layer, connected and disconnected support have almost as many
combinations of modules, and the effect of Figure 3D only just shows. Here,
teachers have two generated layers, as published, and six modules; at the
published scale six or eight.

  python -m modular_hyperteacher.main --config=configs/two_layers.py
  python figures/make_all.py --only=two_layers
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import models


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  sweep = dict(
      {'task.num_modules': [6, 8] if preset == 'paper' else [6]},
      task_support=['connected', 'disconnected'],
      model=models.HYPERNETWORKS,
  )
  # Connected support is of pairs.
  blocks = hyperteacher.blocks(preset, two_layers=True, max_active=2)
  return experiment.make('two_layers', preset, sweep, **blocks)
