"""Figure 3E with a larger teacher: is it the size that makes ANIL better?

Three models in the one cell where ANIL is trained at laptop scale: M = 8
modules, K = 2 of them combined, in two generated layers. There the teacher has
4 inputs, 6 units per layer and 4 outputs, fewer than modules, and ANIL beats
both hypernetworks. Here it has 8 of each, as in Figure 3B's laptop preset (the
paper: 16, 32 and 8), and all else is equal.

  python -m modular_hyperteacher.main --config=configs/fig3e_teacher.py
  python figures/make_all.py --only=longer
"""

from modular_hyperteacher.configs import fig3e_longer
from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  blocks = hyperteacher.blocks(preset, two_layers=True, num_outer_steps=100_000)
  if preset != 'paper':
    blocks['task'] |= {'input_dim': 8, 'output_dim': 8, 'teacher_hidden_dim': 8}
  sweep = fig3e_longer.get_config(preset).sweep
  return experiment.make('fig3e_teacher', preset, sweep, **blocks)
