"""Figure 4B: preferences are recomposed if their combinations are connected.

Both hypernetworks meta-learn preferences that mix up to K = 2 of M = 8
templates. With connected support the OOD loss is lower than with disconnected
support; both hold out the same ten pairs. At laptop scale, where training is
far from converged, the supports hardly differ.

  python -m modular_hyperteacher.main --config=configs/fig4b.py
  python -m modular_hyperteacher.main --config=configs/fig4b.py:longer
  python figures/make_all.py --only=fig4b,longer
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.configs.blocks import preferences
from modular_hyperteacher.configs.blocks import variants


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of a preset, or of a variant; see `VARIANTS`."""
  supports = ['connected', 'disconnected']
  sweep = dict(task_support=supports, model=models.HYPERNETWORKS)
  blocks = preferences.blocks(preset, num_seeds=6, max_active=2)
  return experiment.make('fig4b', preset, sweep, **blocks)


def _longer(preset: str) -> experiment.Config:
  """Trains four times as long: does connected support help then?"""
  return variants.longer(get_config(preset))


VARIANTS = {'longer': _longer}
get_config = variants.add('fig4b', get_config, VARIANTS)
