"""Figure 4C with ANIL's published inner steps: is that why ANIL leads?

Compositional support. Each of ANIL's inner steps sees 64 examples of the
support set, as published; in Figure 4C at laptop scale it sees all 128, as the
other models do. The hypernetworks' runs are those of Figure 4C.

  python -m modular_hyperteacher.main --config=configs/fig4c_anil.py
  python figures/make_all.py --only=longer
"""

from modular_hyperteacher.configs import fig4c
from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.experiments import sweeps


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = fig4c.get_config(preset)
  config.experiment = 'fig4c_anil'
  config.models.anil.inner.batch_size = 64
  config.sweep = (
      sweeps.grid(
          task_support=['random'], model=models.HYPERNETWORKS + ('anil',)
      ),
  )
  return config
