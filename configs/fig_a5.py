"""Figure A5: OOD accuracy over the share of combinations held out.

Models on the hyperteacher with K = 2 of M modules. For larger M, OOD accuracy
stays robust while more and more combinations are held out; training accuracy
stays stable. 'laptop' is thinned to the hypernetworks, M of 6 and 10 with
K = 3, and three shares.

  python -m modular_hyperteacher.main --config=configs/fig_a5.py
  python figures/make_all.py --only=fig_a5
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import models


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  num_modules, fractions = (6, 10), (0.1, 0.5, 0.8)
  students = models.HYPERNETWORKS
  if preset == 'paper':
    num_modules, fractions = (4, 8, 16), (0.1, 0.3, 0.5, 0.7, 0.9)
    students = models.MODELS
  sweep = dict(
      {'task.num_modules': num_modules}, fraction_ood=fractions, model=students
  )
  blocks = hyperteacher.blocks(preset)
  return experiment.make('fig_a5', preset, sweep, **blocks)
