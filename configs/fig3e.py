"""Figure 3E: OOD accuracy over the number of modules and of those combined.

Four models on the hyperteacher, M modules, up to K of them combined in each
layer of a task. In the paper, hypernetworks solve combinations that they never
saw if K > 1, and fail for K = 1, where each layer of a task has one module. The
same runs make Figures A6 and A7 and Tables A2 to A8.

'laptop' has a smaller teacher and is thinned: M of 4 and 8; K of 1, 2 and M for
the hypernetworks; ANIL for M = 8 and K = 2 alone, and no MAML, so its
verdict on 3E compares with ANIL in one cell only. 'desktop' has hypernetworks
alone, M = 8, and K of 1, 2 and 4.

  python -m modular_hyperteacher.main --config=configs/fig3e.py
  python -m modular_hyperteacher.main --config=configs/fig3e.py:desktop
  python -m modular_hyperteacher.main --config=configs/fig3e.py:teacher_longer
  python figures/make_all.py --only=fig3e,fig3e_desktop,fig_a6,fig_a7,longer
"""

from collections.abc import Sequence
from typing import Any

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.configs.blocks import variants

DESKTOP = presets.DESKTOP
# Where ANIL is trained at laptop scale.
_ANIL_CELL: dict[str, Any] = dict(
    {'task.num_modules': [8]},
    max_active=[2],
    model=models.HYPERNETWORKS + ('anil',),
)


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of a preset, or of a variant; see `VARIANTS`."""
  cells = {4: (1, 2, 4), 6: (1, 2, 4, 6), 8: (1, 2, 4, 6, 8)}
  if preset == DESKTOP:
    cells = {8: (1, 2, 4)}
  elif preset != 'paper':
    cells = {4: (1, 2, 4), 8: (1, 2, 8)}
  # Where K = M, most seeds train on the only combination of all M modules, so
  # that none is left for OOD(K=M). Tables A4 and A8 have values there all the
  # same: the released code then repeats one OOD combination.
  repeats = {'repeat_ood': [True]} if preset == 'paper' else {}
  sweep = [
      dict(
          {'task.num_modules': [num_modules]},
          max_active=[max_active],
          model=_models(preset, num_modules, max_active),
          **(repeats if max_active == num_modules else {}),
          **hyperteacher.fewer_steps(preset),
      )
      for num_modules, all_active in cells.items()
      for max_active in all_active
  ]
  blocks = hyperteacher.blocks(
      preset,
      two_layers=True,
      num_outer_steps=100_000,
      repeat_ood=False,
  )
  return experiment.make('fig3e', preset, sweep, **blocks)


def _models(preset: str, num_modules: int, max_active: int) -> Sequence[str]:
  """Returns the models of a cell: all, or as many as there is time for."""
  if preset == 'paper':
    return models.MODELS
  if preset == DESKTOP or (num_modules, max_active) != (8, 2):
    return models.HYPERNETWORKS
  return _ANIL_CELL['model']


def _longer(preset: str) -> experiment.Config:
  """Trains four times as long: does ANIL stay ahead?

  Three models in the one cell where ANIL is trained at laptop scale.
  """
  return variants.longer(get_config(preset), _ANIL_CELL)


def _teacher(preset: str) -> experiment.Config:
  """Takes a larger teacher: is it the size that makes ANIL better?

  In the cell of `_longer`, the teacher has 4 inputs, 6 units per layer and 4
  outputs, fewer than modules. Here it has 8 of each, as in Figure 3B's laptop
  preset (the paper: 16, 32 and 8), and all else is equal.
  """
  blocks = hyperteacher.blocks(preset, two_layers=True, num_outer_steps=100_000)
  if preset != 'paper':
    blocks['task'] |= {'input_dim': 8, 'output_dim': 8, 'teacher_hidden_dim': 8}
  return experiment.make('fig3e', preset, _ANIL_CELL, **blocks)


def teacher_longer(preset: str) -> experiment.Config:
  """Takes a larger teacher, and trains four times as long."""
  return variants.longer(_teacher(preset))


VARIANTS = {
    'longer': _longer,
    'teacher': _teacher,
    'teacher_longer': teacher_longer,
}
get_config = variants.add('fig3e', get_config, VARIANTS)
