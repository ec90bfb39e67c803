"""Figure 3F, trained four times as long: do large students fall behind?

The linear hypernetwork of four sizes: the smallest, the largest, and the two
that are best in between. After 3,000 outer steps the largest is the best on
average.

  python -m modular_hyperteacher.main --config=configs/fig3f_longer.py
  python figures/make_all.py --only=longer
"""

from modular_hyperteacher.configs import fig3f
from modular_hyperteacher.configs.blocks import experiment


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = fig3f.get_config(preset)
  (grid,) = config.sweep
  grid = grid | {'model': ['linear_hypernetwork']}
  sizes = ('modules_per_teacher_module', 'hidden_dim')
  sweep = [
      grid | {size: [grid[size][i]] for size, i in zip(sizes, indices)}
      for indices in ((0, 0), (1, 1), (-1, 1), (-1, -1))
  ]
  return experiment.longer(config, *sweep)
