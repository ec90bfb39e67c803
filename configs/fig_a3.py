"""Figure A3: how many training tasks a given OOD accuracy takes.

Models on the hyperteacher with M modules, up to K of them combined. The number
of training tasks (outer steps times tasks per step) until OOD accuracy reaches
a given level grows with M, the paper finds; at laptop scale, four modules take
most. 'laptop' is thinned to the hypernetworks, K = 3 and four values of M, and
evaluated more often.

  python -m modular_hyperteacher.main --config=configs/fig_a3.py
  python figures/make_all.py --only=fig_a3
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.experiments import sweeps


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  num_modules, max_active, students = (4, 6, 8, 10), (3,), models.HYPERNETWORKS
  if preset == 'paper':
    num_modules, max_active = (4, 6, 8, 10, 12, 14, 16), (2, 3, 4)
    students = models.MODELS
  sweep = sweeps.grid(
      {'task.num_modules': num_modules}, max_active=max_active, model=students
  )
  blocks = hyperteacher.blocks(preset, evaluate_every=250)
  return experiment.make('fig_a3', preset, sweep, **blocks)
