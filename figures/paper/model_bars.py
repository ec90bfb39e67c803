"""Cells and bars of figures that compare models over supports.

Monolithic models can have a second width, at which they have as many
meta-parameters as the hypernetworks.
"""

from collections.abc import Callable, Sequence
import functools
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


def students(grid: cells.Cells) -> list[cells.Cell]:
  """Returns models and widths, in the order of every figure."""
  every = [{name: cell[name] for name in STUDENT} for cell in grid.cells]
  return [
      student
      for model in grid.models
      for student in sorted(
          (s for i, s in enumerate(every) if s not in every[:i]),
          key=lambda s: s['model.hidden_dim'] or 0,
      )
      if student['model.name'] == model
  ]


def bar(
    grid: cells.Cells,
    student: cells.Cell,
    *,
    seeds: pd.Series,
    missing: str,
    beside: tuple[float, float] | None = None,
) -> bars.Bar:
  """Returns a bar; its label has the student's width if there are several."""
  name, width = (student[column] for column in STUDENT)
  label = style.MODEL_NAMES[name].replace(' ', '<br>')
  if len(students(grid)) > len(style.MODELS):  # Bars are close together.
    label = label.replace('hyper', 'hyper-<br>')
  same = sum(s['model.name'] == name for s in students(grid))
  if width is not None and same > 1:
    label += f'<br>{width:g} wide'
  return bars.Bar(
      label=label,
      colour=style.COLOURS[name],
      seeds=seeds,
      missing=missing,
      beside=beside,
  )


def ood_bar(
    grid: cells.Cells, cell: cells.Cell, metric: str = 'accuracy'
) -> bars.Bar:
  """Returns a bar of OOD tasks; beside it, new tasks of seen combinations."""
  return bar(
      grid,
      cell,
      seeds=grid.values(cell, metric=metric),
      missing=grid.missing(cell),
      beside=grid.seen(cell, metric),
  )


def panels(
    grid: cells.Cells,
    supports: Sequence[str],
    make_bar: Callable[[cells.Cells, cells.Cell], bars.Bar],
) -> dict[str, list[bars.Bar]]:
  """Returns a panel per support, each with a bar per student."""
  return {
      style.SUPPORT_NAMES[support]: [
          make_bar(grid, {**student, SUPPORT: support})
          for student in students(grid)
      ]
      for support in supports
  }


def describe(
    supports: Sequence[str],
    make_bar: Callable[[cells.Cells, cells.Cell], bars.Bar],
    **fields: Any,
) -> described.Figure:
  """Returns a figure with a panel per support and a bar per student."""
  return described.bar_grid(
      cell=CELL,
      panels=functools.partial(panels, supports=supports, make_bar=make_bar),
      **fields,
  )


def describe_ood(
    metric: str, supports: Sequence[str], **fields: Any
) -> described.Figure:
  """Returns bars of OOD tasks; beside them, new tasks of seen combinations."""
  make_bar = functools.partial(ood_bar, metric=metric)
  return describe(supports, make_bar, beside_name=SEEN, **fields)
