"""What the figures of the two grid worlds share: cells and bars."""

from typing import Sequence

import plotly.graph_objects as go

from figures import bars
from figures import cells
from figures import data
from figures import stats
from figures import style

CELL = ('model.name', 'task.task_support')


def cell(model: str, support: str) -> cells.Cell:
  """Returns the cell of a model and a support."""
  return dict(zip(CELL, (model, support)))


def draw_bars(
    found: cells.Cells,
    metric: str,
    *,
    supports: Sequence[str],
    models: Sequence[str],
    title: str,
    y_title: str,
    caption: Sequence[str],
    y_range: tuple[float, float] | None = None,
) -> go.Figure:
  """Returns bars of a metric of OOD tasks: a panel per support.

  Beside each bar stands the metric of tasks like those of training.

  Args:
    found: of CELL.
    metric: such as 'loss'.
    supports: one panel each.
    models: one bar each, where there should be a run.
    title: of the figure.
    y_title: with the unit.
    caption: lines below.
    y_range: what fits, from zero on, if None.
  """

  def bar(model, support):
    of_cell = cell(model, support)
    seen = stats.mean(data.values(found.frame, of_cell, 'test', metric=metric))
    return bars.Bar(
        label=label(model),
        colour=style.COLOURS[model],
        seeds=data.values(found.frame, of_cell, 'ood', metric=metric),
        missing=found.missing(of_cell),
        beside=(seen.value, seen.standard_error) if seen.num_seeds else None,
    )

  return bars.draw(
      {
          style.SUPPORT_NAMES[support]: [
              bar(model, support)
              for model in models
              if cell(model, support) in found.cells
          ]
          for support in supports
      },
      title=title,
      y_title=y_title,
      y_range=y_range,
      caption=caption,
      beside_name='new tasks of seen combinations, whisker: standard error',
  )


def label(model: str) -> str:
  """Returns what is written below a model's bar."""
  return style.MODEL_NAMES[model].replace(' ', '<br>')
