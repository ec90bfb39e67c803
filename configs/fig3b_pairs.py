"""Figure 3B at laptop scale with pairs of modules: is K = 3 what makes it hold?

The paper combines up to K = 2 modules in each of two generated layers. With one
layer, Figure 3B's laptop preset combines up to three: of pairs, training sees
far fewer combinations. Here K is 2 and all else equal. The hypernetworks' runs
are Figure 3C's; at the published scale, all runs are Figure 3B's.

  python -m modular_hyperteacher.main --config=configs/fig3b_pairs.py
  python figures/make_all.py --only=fig3b_pairs
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.experiments import sweeps


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  sweep = sweeps.grid(
      task_support=['random', 'non_compositional'], model=models.MODELS
  )
  blocks = hyperteacher.blocks(preset, num_modules=8, max_active=2)
  return experiment.make('fig3b_pairs', preset, sweep, **blocks)
