"""Figure 4B: preferences are recomposed if their combinations are connected.

Both hypernetworks meta-learn preferences that mix up to K = 2 of M = 8
templates. With connected support the OOD loss is lower than with disconnected
support; the held-out combinations are the same ten pairs. At laptop scale,
where students are far from trained, supports hardly differ.

  python -m modular_hyperteacher.main --config=configs/fig4b.py
  python figures/make_all.py --only=fig4b
"""

import ml_collections

from configs.blocks import models
from configs.blocks import preferences
from modular_hyperteacher.experiments import sweeps


def get_config(preset: str = 'laptop') -> ml_collections.ConfigDict:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  return preferences.make(
      'fig4b',
      preset,
      sweeps.grid(
          task_support=['connected', 'disconnected'],
          model=models.HYPERNETWORKS,
      ),
      num_seeds=6,
      max_active=2,
  )
