"""Bars of figures that compare models over supports.

Monolithic models can have a second width, at which they have as many
meta-parameters as the hypernetworks.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import style

SUPPORT = 'task.task_support'
STUDENT = ('model.name', 'model.hidden_dim')
CELL = (*STUDENT, SUPPORT)
# Supports to compare.
COMPOSITIONAL = ('random', 'non_compositional')
CONNECTED = ('connected', 'disconnected')
SEEN = 'seen combinations, whisker: standard error'  # Beside a bar.
_Beside = Callable[[cells.Cells, cells.Cell], tuple[float, float] | None]


def students(grid: cells.Cells) -> list[cells.Cell]:
  """Returns models and widths, in the order of every figure."""
  every = {tuple(cell[column] for column in STUDENT) for cell in grid.cells}
  in_order = sorted(every, key=lambda s: (grid.models.index(s[0]), s[1] or 0))
  return [dict(zip(STUDENT, student)) for student in in_order]


def bar(
    grid: cells.Cells,
    student: cells.Cell,
    seeds: pd.Series,
    missing: str,
    beside: tuple[float, float] | None = None,
) -> bars.Bar:
  """Returns a bar; its label has the student's width if there are several."""
  name, width = (student[column] for column in STUDENT)
  names = [s['model.name'] for s in students(grid)]
  label = style.MODEL_NAMES[name].replace(' ', '<br>')
  if len(names) > len(style.MODELS):  # Bars are close together.
    label = label.replace('hyper', 'hyper-<br>')
  if width is not None and names.count(name) > 1:
    label += f'<br>{width:g} wide'
  return bars.Bar(label, style.COLOURS[name], seeds, missing, beside)


def ood_bar(
    grid: cells.Cells,
    cell: cells.Cell,
    metric: str = 'accuracy',
    beside: _Beside | None = None,
) -> bars.Bar:
  """Returns a bar of OOD tasks; by default, tasks of seen ones beside it."""
  value = beside(grid, cell) if beside else grid.seen(cell, metric)
  seeds = grid.values(cell, metric=metric)
  return bar(grid, cell, seeds, grid.missing(cell), value)


def panels(
    grid: cells.Cells,
    metric: str,
    supports: Sequence[str],
    beside: _Beside | None = None,
) -> dict[str, list[bars.Bar]]:
  """Returns a panel per support, each with a bar of OOD tasks per student."""
  return {
      style.SUPPORT_NAMES[support]: [
          ood_bar(grid, {**student, SUPPORT: support}, metric, beside)
          for student in students(grid)
      ]
      for support in supports
  }


def describe(
    title: str,
    experiment: str,
    metric: str,
    supports: Sequence[str],
    beside: _Beside | None = None,
    **fields: Any,
) -> described.Figure:
  """Returns the figure of `panels`; fields are those of `bar_grid`.

  By default, the table has the metric on both kinds of tasks.
  """
  both = {split: (split, metric) for split in ('test', 'ood')}
  return described.bar_grid(
      title=title,
      experiment=experiment,
      cell=CELL,
      panels=lambda grid: panels(grid, metric, supports, beside),
      **{'measures': both, 'beside_name': SEEN, **fields},
  )
