"""Figure 4C: modular students recompose preferences, monolithic ones do not.

Four models meta-learn preferences that mix up to K = 3 of M = 8 templates.
In the paper, the OOD loss of the hypernetworks is lower than that of ANIL and
MAML with compositional support, and rises markedly with non-compositional
support (the last template held out). At laptop scale ANIL's is lower.
'workstation' adds ANIL and MAML 326 wide, as large as the linear hypernetwork:
a seed of MAML takes three hours of a core.

  python -m modular_hyperteacher.main --config=configs/fig4c.py
  python -m modular_hyperteacher.main --config=configs/fig4c.py:longer
  python figures/make_all.py --only=fig4c,longer
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.configs.blocks import preferences
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.configs.blocks import variants

WORKSTATION = presets.WORKSTATION

_COMPOSITIONAL = dict(
    task_support=['random'], model=models.HYPERNETWORKS + ('anil',)
)


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of a preset, or of a variant; see `VARIANTS`."""
  sweep = models.recomposition_sweep(preset, matched_width=326)
  preset = presets.scale(preset)
  blocks = preferences.blocks(preset, num_seeds=6)
  return experiment.make('fig4c', preset, sweep, **blocks)


def _anil(preset: str) -> experiment.Config:
  """Takes ANIL's published inner steps: are they why ANIL leads?

  Compositional support. Each of ANIL's inner steps sees 64 examples of the
  support set, as published; in Figure 4C at laptop scale it sees all 128, as
  the other models do. The hypernetworks' runs are those of Figure 4C.
  """
  config = get_config(preset)
  config.models.anil.inner.batch_size = 64
  config.sweep = (_COMPOSITIONAL,)
  return config


def _longer(preset: str) -> experiment.Config:
  """Trains four times as long, with compositional support: does ANIL lead?"""
  return variants.longer(get_config(preset), _COMPOSITIONAL)


VARIANTS = {'anil': _anil, 'longer': _longer}
get_config = variants.add('fig4c', get_config, VARIANTS)
