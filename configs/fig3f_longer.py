"""Figure 3F, trained four times as long: do large students fall behind?

Three sizes: the smallest of Figure 3F at laptop scale, its largest, and one in
between. After 3,000 outer steps the largest is best, which contradicts claim
3F.

  python -m modular_hyperteacher.main --config=configs/fig3f_longer.py
  python figures/make_all.py --only=longer
"""

from configs import fig3f
from configs.blocks import experiment


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = fig3f.get_config(preset)
  (grid,) = config.sweep
  sizes = ('modules_per_teacher_module', 'hidden_dim')
  sweep = [
      grid | {size: [grid[size][index]] for size in sizes}
      for index in (0, 1, -1)
  ]
  return experiment.longer(config, sweep)
