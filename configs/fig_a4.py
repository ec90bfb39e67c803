"""Figure A4: OOD accuracy over the number of examples per task.

Hypernetworks on the hyperteacher, with fewer and fewer support examples. The
number of query examples is fixed, as in the authors' released sweep; the paper
says that both vary. Fewer shots lower OOD accuracy. 'laptop' is thinned to
M = 8, K of 2 and 3, and three numbers of shots.

  python -m modular_hyperteacher.main --config=configs/fig_a4.py
  python figures/make_all.py --only=fig_a4
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import models


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  num_modules, max_active, num_support = (8,), (2, 3), (8, 16, 32)
  if preset == 'paper':
    num_modules, max_active = (4, 8), (2, 4)
    num_support = (16, 32, 64, 128, 256)
  sweep = dict(
      {'task.num_modules': num_modules},
      max_active=max_active,
      num_support=num_support,
      model=models.HYPERNETWORKS,
  )
  blocks = hyperteacher.blocks(preset)
  return experiment.make('fig_a4', preset, sweep, **blocks)
