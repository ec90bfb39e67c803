"""Sample complexity, beyond the paper: examples per task against tasks.

Both hypernetworks on the hyperteacher with M = 8 modules, with more and fewer
examples to adapt on in every task. The training curve of a run gives OOD
accuracy after any number of training tasks, so a grid over shots and tasks
takes one run per number of shots. Figure A3's runs show how tasks grow with M.
Identical runs are shared with Figures 3B and A4: of the laptop preset's ten,
six are Figure A4's. The table in docs/learners.md has the cost.

  python -m modular_hyperteacher.main --config=configs/sample_complexity.py
  python figures/make_all.py --only=sample_complexity
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import models


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  num_support = (4, 8, 16, 32, 64)
  if preset == 'paper':
    num_support = (16, 32, 64, 128, 256)
  sweep = dict(num_support=num_support, model=models.HYPERNETWORKS)
  blocks = hyperteacher.blocks(preset, num_modules=8)
  return experiment.make('sample_complexity', preset, sweep, **blocks)
