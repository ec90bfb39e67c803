"""Figure 3E: OOD accuracy over the number of modules and of those combined.

Four models on the hyperteacher, M modules, up to K of them combined in each
layer of a task. In the paper, hypernetworks solve combinations that they never
saw if K > 1, and fail for K = 1, where no two tasks share part of a
combination. The same runs make Figures A6 and A7 and Tables A2 to A8.

'laptop' has a smaller teacher and is thinned: M of 4 and 8; K of 1, 2 and M for
the hypernetworks; ANIL for M = 8 and K = 2 alone, and no MAML, so its
verdict on 3E compares with ANIL in one cell only.

  python -m modular_hyperteacher.main --config=configs/fig3e.py
  python figures/make_all.py --only=fig3e,fig_a6,fig_a7,table_a6
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.experiments import sweeps


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  cells = {4: (1, 2, 4), 6: (1, 2, 4, 6), 8: (1, 2, 4, 6, 8)}
  if preset != 'paper':
    cells = {4: (1, 2, 4), 8: (1, 2, 8)}
  # Where K = M, most seeds train on the only combination of all M modules, so
  # that none is left for OOD(K=M). Tables A4 and A8 have values there all the
  # same: the released code then repeats one OOD combination.
  repeats = {'repeat_ood': [True]} if preset == 'paper' else {}
  sweep = [
      sweeps.grid(
          {'task.num_modules': [num_modules]},
          max_active=[max_active],
          model=_models(preset, num_modules, max_active),
          **(repeats if max_active == num_modules else {}),
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


def _models(preset: str, num_modules: int, max_active: int) -> tuple[str, ...]:
  """Returns the models of a cell: all, or as many as there is time for."""
  if preset == 'paper':
    return models.MODELS
  if (num_modules, max_active) == (8, 2):
    return models.HYPERNETWORKS + ('anil',)
  return models.HYPERNETWORKS
