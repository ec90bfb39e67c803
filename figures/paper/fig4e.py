"""Figures 4E, 4F and A9: which models reach goals never seen in training?

Accuracy is the fraction of a demonstration's actions that a model predicts; in
Figure A9, the fraction of demonstrations predicted without a single mistake.
Figure 4F is what non-compositional support costs, seed by seed. If Figure 4E's
hypernetworks have more modules than published, those of Figure A10 that have as
many are drawn beside them.
"""

from typing import Any

import pandas as pd

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import fig3f
from modular_hyperteacher.figures.paper import fig_a8
from modular_hyperteacher.figures.paper import model_bars
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'fig4e'
TITLE_4E = 'Figure 4E: which models reach new goals?'
TITLE_4F = 'Figure 4F: what does it cost to leave a quadrant out of training?'
SUPPORTS = model_bars.COMPOSITIONAL
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
  small = [model_bars.ood_bar(fewer, cell) for cell in fewer.cells]
  more, notes = {}, []
  if small:
    more = {f'{_PUBLISHED_MODULES} modules': small}
    rows = [pick.rows(fewer.frame, cell) for cell in fewer.cells]
    scale = style.scale_note(pd.concat(rows), fig_a8.CELL)
    right = 'Right: hypernetworks of as few modules as published'
    if scale != style.scale_note(grid.frame, model_bars.CELL):
      right += f' ({scale})'
    if len(pick.distinct(fewer.frame, [fig_a8.CELL[-1]])) > 1:
      right += ', at the learning rate of the lowest validation loss'
    notes = [f'{right}.', *cells.excluded(fewer.frame, fewer.left_out)]
  figure = bars.draw(
      model_bars.panels(grid, ('random',), model_bars.ood_bar) | more,
      title=TITLE_4E,
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
  grid = cells.read(library, 'fig_a10', fig_a8.CELL)
  own = wide.frame.get('model.num_modules', pd.Series(dtype=float))
  kept = [
      cell
      for model in grid.models
      for cell in fig3f.best_rates(grid, model, fig_a8.SIZE)
      if cell['model.num_modules'] == _PUBLISHED_MODULES
      and {name: cell[name] for name in model_bars.STUDENT}
      in model_bars.students(wide)
      and not pick.rows(grid.frame, cell).empty
      and not (own == _PUBLISHED_MODULES).any()
  ]
  return grid._replace(cells=kept)


def draw_4f(library: data.Library) -> cells.Drawn:
  """Returns Figure 4F and the table of what it shows."""
  grid = cells.read(library, EXPERIMENT, model_bars.CELL)
  students = model_bars.students(grid)
  figure = bars.draw(
      {
          'Compositional - non-compositional support': [
              model_bars.bar(
                  grid,
                  student,
                  seeds=_cost(grid, student),
                  missing=_missing(grid, student),
              )
              for student in students
          ]
      },
      title=TITLE_4F,
      y_title='fall of OOD accuracy (fraction of actions)',
      caption=grid.caption('Differences are taken seed by seed.'),
  )
  return figure, pd.DataFrame([_row(grid, s) for s in students])


def _cost(grid: cells.Cells, student: cells.Cell) -> pd.Series:
  """Returns random - non-compositional, by seed; empty if one is missing."""
  compositional, other = (_accuracy(grid, student, s) for s in SUPPORTS)
  return (compositional - other).dropna()


def _accuracy(
    grid: cells.Cells, student: cells.Cell, support: str
) -> pd.Series:
  return grid.values({**student, model_bars.SUPPORT: support})


def _missing(grid: cells.Cells, student: cells.Cell) -> str:
  reasons = [
      grid.missing({**student, model_bars.SUPPORT: support})
      for support in SUPPORTS
      if _accuracy(grid, student, support).empty
  ]
  return reasons[0] if reasons else 'no seed in common'


def _row(grid: cells.Cells, student: cells.Cell) -> dict[str, Any]:
  row: dict[str, Any] = {
      style.column_name(column): value for column, value in student.items()
  }
  for support in SUPPORTS:
    row[f'{support}_mean'] = stats.mean(_accuracy(grid, student, support)).value
  cost = stats.mean(_cost(grid, student))
  row |= cost.columns('fall')
  row['num_seeds'] = cost.num_seeds
  runs = pick.rows(grid.frame, student)
  row['preset'] = ', '.join(runs['preset'].unique())
  return row


FIGURE_A9 = model_bars.describe_ood(
    'accuracy_all',
    SUPPORTS,
    title='Figure A9: how often is a new goal predicted without a mistake?',
    experiment=EXPERIMENT,
    measures={
        f'{split}_all': (split, 'accuracy_all') for split in ('test', 'ood')
    },
    y_title='without a mistake (fraction of OOD tasks)',
    y_range=(0, 1),
)
