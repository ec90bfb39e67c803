"""Panels of heat maps: the mean over seeds in every cell of a grid."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style


class Cell(NamedTuple):
  """One cell of a grid."""

  seeds: pd.Series  # Values by seed; may be empty.
  missing: str = ''  # Why there are none; empty if none can exist.
  note: str = ''  # Shown on hover.
  below: str = ''  # Shown below the value.


Point = tuple[Any, Any]  # (x, y)
Grid = Mapping[Point, Cell]


def draw(
    panels: Mapping[str, Grid],
    *,
    x_title: str,
    y_title: str,
    z_title: str,
    caption: Sequence[str],
    num_columns: int = 4,
    z_range: tuple[float, float] | None = None,
    higher_is_better: bool = True,
) -> go.Figure:
  """Returns a figure of panels, by title; each cell shows its value.

  Axes are numbers, evenly spaced. A range of colours of None fits the data.
  Bright colours mark high values, or low ones if these are better.
  """
  figure, num_rows, num_columns = layout.make_grid(list(panels), num_columns)
  # Panels share axes, so each has the rows and columns of all.
  points = {point for grid in panels.values() for point in grid}
  xs, ys = (sorted(set(numbers)) for numbers in zip(*points))
  for index, grid in enumerate(panels.values()):
    row, column = index // num_columns + 1, index % num_columns + 1
    _add_grid(figure, grid, xs, ys, row, column)
    if not grid:
      layout.name_empty(figure, 'not run', row, column)
  figure.update_xaxes(showgrid=False, ticks='')
  figure.update_yaxes(showgrid=False, ticks='')
  if num_columns > 3:  # Titles of neighbours would touch.
    x_title = x_title.replace(', ', ',<br>')
  figure.update_xaxes(title_text=x_title, row=num_rows)
  figure.update_yaxes(title_text=y_title, col=1)
  low, high = z_range or (None, None)
  figure.update_layout(
      coloraxis={
          'colorscale': 'Cividis' if higher_is_better else 'Cividis_r',
          'cmin': low,
          'cmax': high,
          'colorbar': {'title': {'text': z_title, 'side': 'right'}},
      }
  )
  layout.finish(figure, caption=caption, plot_height=120 + 270 * num_rows)
  return figure


def _add_grid(
    figure: go.Figure,
    grid: Grid,
    xs: Sequence[Any],
    ys: Sequence[Any],
    row: int,
    column: int,
) -> None:
  nothing = Cell(pd.Series(dtype=float))

  def table(show: Callable[[Cell, Any, Any], Any]) -> list[list[Any]]:
    return [[show(grid.get((x, y), nothing), x, y) for x in xs] for y in ys]

  def describe(cell: Cell, x: Any, y: Any) -> str:
    mean = stats.mean(cell.seeds)
    error = mean.standard_error
    text = f'± {error:.3f}, ' if error >= 0 else ''  # Not NaN.
    return f'{text}seeds: {mean.num_seeds}<br>at {x}, {y} {cell.note}'

  figure.add_trace(
      go.Heatmap(
          z=table(
              lambda cell, *_: cell.seeds.mean() if len(cell.seeds) else None
          ),
          customdata=table(describe),
          text=table(lambda cell, *_: cell.below and f'<br>{cell.below}'),
          texttemplate='%{z:.2f}%{text}',
          textfont={'size': 12},
          hovertemplate='%{z:.3f} %{customdata}<extra></extra>',
          hoverongaps=False,
          coloraxis='coloraxis',
          xgap=1,
          ygap=1,
      ),
      row=row,
      col=column,
  )
  # By index: an annotation would read the tick '4' as position 4.
  for axis, names in (('xaxis', xs), ('yaxis', ys)):
    getattr(figure.get_subplot(row, column), axis).update(
        tickvals=list(range(len(names))),
        ticktext=[f'{name:g}' for name in names],
        range=[-0.5, len(names) - 0.5],
    )
  for (x, y), cell in grid.items():
    if cell.seeds.empty and cell.missing:
      figure.add_annotation(
          x=xs.index(x),
          y=ys.index(y),
          text=cell.missing.replace(' ', '<br>'),
          showarrow=False,
          font={'color': style.MUTED, 'size': 11},
          row=row,
          col=column,
      )
