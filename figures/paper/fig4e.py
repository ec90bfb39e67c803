"""Figures 4E and 4F: which models reach goals never seen in training?

Accuracy is the fraction of a demonstration's actions that a model predicts.
Figure 4F is what non-compositional support costs, seed by seed. If Figure 4E's
hypernetworks have more modules than published, those of Figure A10 that have as
many are drawn beside them.
"""

from typing import Any

import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import model_bars
from modular_hyperteacher.figures.paper import student_size
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'fig4e'
_SUPPORTS = model_bars.COMPOSITIONAL
_PUBLISHED_MODULES = 8  # Table A12.
_MEASURES = {
    'test': ('test', 'accuracy'),
    'ood': ('ood', 'accuracy'),
    'ood_first': ('ood', 'accuracy_first'),
    'ood_last': ('ood', 'accuracy_last'),
    'r2': ('ood', 'r2'),
    'success': ('ood', 'success'),
    'path_ratio': ('ood', 'path_ratio'),
}


def draw_4e(library: data.Library) -> cells.Drawn:
  """Returns Figure 4E and the table of what it shows."""
  grid = cells.read(library, EXPERIMENT, model_bars.CELL)
  fewer = _of_published_modules(library, grid)
  panels = model_bars.panels(grid, 'accuracy', ('random',))
  notes = []
  if fewer.cells:
    panels[f'{_PUBLISHED_MODULES} modules'] = [
        model_bars.ood_bar(fewer, cell) for cell in fewer.cells
    ]
    rows = [pick.rows(fewer.frame, cell) for cell in fewer.cells]
    scale = style.scale_note(pd.concat(rows), student_size.CELL_GRIDWORLDS)
    right = 'Right: hypernetworks of as few modules as published'
    if scale != style.scale_note(grid.frame, model_bars.CELL):
      right += f' ({scale})'
    if fewer.frame[student_size.CELL_GRIDWORLDS[-1]].nunique() > 1:
      right += ', at the learning rate of the lowest validation loss'
    notes = [f'{right}.', *cells.excluded(fewer.frame, fewer.left_out)]
  figure = bars.draw(
      panels,
      y_title='OOD accuracy (fraction of actions)',
      y_range=(0, 1),
      caption=grid.caption(*notes),
      beside_name=model_bars.SEEN,
  )
  shown = grid._replace(cells=grid.find(task_support='random'))
  tables = [cells.make_table(part, _MEASURES) for part in (shown, fewer)]
  return figure, pd.concat(tables, ignore_index=True)


def _of_published_modules(
    library: data.Library, wide: cells.Cells
) -> cells.Cells:
  """Returns Figure A10's students of Figure 4E's width and published modules.

  There are none if Figure 4E's own students have as many.
  """
  grid = cells.read(library, 'fig_a10', student_size.CELL_GRIDWORLDS)
  own = wide.frame.get('model.num_modules', pd.Series(dtype=float))
  kept = [
      cell
      for model in grid.models
      for cell in student_size.best_rates(grid, model)
      if cell['model.num_modules'] == _PUBLISHED_MODULES
      and any(cell.items() >= s.items() for s in model_bars.students(wide))
      and pick.has_rows(grid.frame, cell)
      and not (own == _PUBLISHED_MODULES).any()
  ]
  return grid._replace(cells=kept)


def _costs(grid: cells.Cells) -> dict[str, Any]:
  """Returns Figure 4F's bars: random - non-compositional support, by seed."""
  return {
      'Compositional - non-compositional support': [
          model_bars.bar(
              grid, student, _cost(grid, student), _why(grid, student)
          )
          for student in model_bars.students(grid)
      ]
  }


def _accuracies(grid: cells.Cells, student: cells.Cell) -> list[pd.Series]:
  return [
      grid.values({**student, model_bars.SUPPORT: support})
      for support in _SUPPORTS
  ]


def _cost(grid: cells.Cells, student: cells.Cell) -> pd.Series:
  compositional, other = _accuracies(grid, student)
  return (compositional - other).dropna()


def _why(grid: cells.Cells, student: cells.Cell) -> str:
  """Returns why a student has no bar."""
  for support, seeds in zip(_SUPPORTS, _accuracies(grid, student)):
    if seeds.empty:
      return grid.missing({**student, model_bars.SUPPORT: support})
  return 'no seed in common'


def _table_4f(grid: cells.Cells) -> pd.DataFrame:
  rows = []
  for student in model_bars.students(grid):
    row = {
        style.column_name(column): value for column, value in student.items()
    }
    for support, seeds in zip(_SUPPORTS, _accuracies(grid, student)):
      row[f'{support}_mean'] = stats.mean(seeds).value
    cost = stats.mean(_cost(grid, student))
    presets = pick.runs(grid.frame, student)['preset'].unique()
    rows.append({
        **row,
        **cost.columns('fall'),
        'num_seeds': cost.num_seeds,
        'preset': ', '.join(presets),
    })
  return pd.DataFrame(rows)


FIG_4E = described.Figure(
    'Figure 4E: which models reach new goals?',
    (EXPERIMENT, 'fig_a10'),
    draw_4e,
)
FIG_4F = described.bar_grid(
    title='Figure 4F: what does it cost to leave a quadrant out of training?',
    experiment=EXPERIMENT,
    cell=model_bars.CELL,
    panels=_costs,
    measures=_table_4f,
    notes=('Differences are taken seed by seed.',),
    y_title='fall of OOD accuracy (fraction of actions)',
)
