"""Figure A3 with two generated layers: do more modules take more tasks?

With one generated layer, the laptop preset of Figure A3 contradicts the paper:
four modules are learned slowest. Four modules make few combinations there.
Here, as published, two layers are generated, each combines up to K = 2 of its
own M modules, the teacher has eight inputs, units and outputs, and training is
four times as long as the preset's. The runs with eight modules are those of
`fig3e_teacher_longer`.

  python -m modular_hyperteacher.main --config=configs/fig_a3_two_layers.py
  python figures/make_all.py --only=fig_a3_two_layers
"""

from modular_hyperteacher.configs import fig3e_teacher_longer
from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.experiments import sweeps


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = fig3e_teacher_longer.get_config(preset)
  config.experiment = 'fig_a3_two_layers'
  config.sweep = (
      sweeps.grid(
          {'task.num_modules': [4, 6, 8]},
          max_active=[2],
          model=models.HYPERNETWORKS,
      ),
  )
  return config
