"""Figures 3C and 3D: can the modules of a task be decoded?

R2 of a linear map from adapted parameters to latents, fitted on test tasks and
scored on OOD tasks, for four kinds of training support.
"""

from collections.abc import Sequence
import functools

import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import decoding_targets
from modular_hyperteacher.figures.paper import model_bars
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style

CELL = model_bars.CELL
_MEASURES = {
    'r2': ('ood', 'r2'),
    'r2_exact': ('ood', 'r2_exact'),
    'ood_accuracy': ('ood', 'accuracy'),
    'test_accuracy': ('test', 'accuracy'),
}


def _bar(grid: cells.Cells, cell: cells.Cell) -> bars.Bar:
  exact = stats.mean(grid.values(cell, metric='r2_exact'))
  return model_bars.bar(
      grid,
      cell,
      seeds=grid.values(cell, metric='r2'),
      missing=grid.missing(cell),
      beside=exact.beside,
  )


def _undefined(supports: Sequence[str], grid: cells.Cells) -> list[str]:
  """Returns lines that name the targets without R2: they do not vary."""
  lines = []
  for support in supports:
    runs = pick.rows(grid.frame, {'task.task_support': support})
    num_seeds = runs['seed'].nunique()
    names = [
        f'{decoding_targets.name(metric)} ({number} of {num_seeds} seeds)'
        for metric, number in decoding_targets.undefined(runs).items()
    ]
    if names:
      lines.append(
          f'{style.SUPPORT_NAMES[support]}: without {"; ".join(names)}, which'
          ' do not vary over OOD tasks.'
      )
  return lines


def _table(supports: Sequence[str], grid: cells.Cells) -> pd.DataFrame:
  shown = [c for c in grid.cells if c['task.task_support'] in supports]
  return cells.make_table(grid._replace(cells=shown), _MEASURES)


def _describe(title: str, supports: Sequence[str]) -> described.Figure:
  return model_bars.describe(
      supports,
      _bar,
      title=title,
      experiment='fig3c',
      measures=functools.partial(_table, supports),
      notes=(functools.partial(_undefined, supports),),
      y_title='R² of decoded latents (OOD tasks, at most 1)',
      beside_name='exact ridge in place of 10 iterations',
  )


FIGURES = {
    'fig3c': _describe(
        'Figure 3C: can modules be decoded if one is left out of training?',
        model_bars.COMPOSITIONAL,
    ),
    'fig3d': _describe(
        'Figure 3D: can modules be decoded better with connected support?',
        model_bars.CONNECTED,
    ),
}
