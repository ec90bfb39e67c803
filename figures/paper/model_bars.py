"""What figures share that show models over supports: cells and bars."""

from collections.abc import Sequence

import plotly.graph_objects as go

from figures.library import cells
from figures.library import data
from figures.plotting import bars
from figures.plotting import stats
from figures.plotting import style

CELL = ('model.name', 'task.task_support')


def cell(model: str, support: str) -> cells.Cell:
  """Returns the cell of a model and a support."""
  return dict(zip(CELL, (model, support)))


def draw_bars(
    found: cells.Cells,
    metric: str,
    *,
    supports: Sequence[str],
    title: str,
    y_title: str,
    caption: Sequence[str],
    y_range: tuple[float, float] | None = None,
) -> go.Figure:
  """Returns bars of a metric of OOD tasks: a panel per support.

  Beside each bar stands the metric on new tasks of seen combinations.

  Args:
    found: of CELL.
    metric: such as 'loss'.
    supports: one panel each.
    title: of the figure.
    y_title: with the unit.
    caption: lines below.
    y_range: fits the values, from zero on, if None.
  """

  def bar(model: str, support: str) -> bars.Bar:
    bar_cell = cell(model, support)
    seen = stats.mean(data.values(found.frame, bar_cell, 'test', metric=metric))
    return bars.Bar(
        label=label(model),
        colour=style.COLOURS[model],
        seeds=data.values(found.frame, bar_cell, 'ood', metric=metric),
        missing=found.missing(bar_cell),
        beside=(seen.value, seen.standard_error) if seen.num_seeds else None,
    )

  return bars.draw(
      {
          style.SUPPORT_NAMES[support]: [
              bar(model, support)
              for model in found.models
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
  """Returns the label below a model's bar."""
  return style.MODEL_NAMES[model].replace(' ', '<br>')
