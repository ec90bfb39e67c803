"""Panels of heat maps: a mean over seeds per cell of a grid."""

import math
from typing import Any, Mapping, NamedTuple, Sequence

import pandas as pd
import plotly.graph_objects as go
from plotly import subplots

from figures import layout
from figures import stats
from figures import style


class Cell(NamedTuple):
  """One cell of a grid."""

  seeds: pd.Series  # Values by seed; may be empty.
  missing: str = ''  # Why there are none; empty where none are possible.
  note: str = ''  # Shown when pointed at.
  below: str = ''  # Shown below the value.


Grid = Mapping[tuple[Any, Any], Cell]  # (x, y) -> cell


def draw(
    panels: Mapping[str, Grid],
    *,
    title: str,
    x_title: str,
    y_title: str,
    z_title: str,
    caption: Sequence[str],
    num_columns: int = 4,
    z_range: tuple[float, float] | None = None,
    higher_is_better: bool = True,
) -> go.Figure:
  """Returns the figure of some panels; each cell says its value.

  Args:
    panels: title -> cells; axes are numbers, in steps of equal width.
    title: of the figure.
    x_title: with the unit.
    y_title: with the unit.
    z_title: with the unit.
    caption: lines below.
    num_columns: panels side by side.
    z_range: of the colours; what fits if None.
    higher_is_better: bright colours are for the better values.
  """
  num_columns = min(num_columns, len(panels))
  num_rows = math.ceil(len(panels) / num_columns)
  figure = subplots.make_subplots(
      rows=num_rows,
      cols=num_columns,
      shared_yaxes=True,
      horizontal_spacing=0.03,
      vertical_spacing=0.18 / num_rows,
      subplot_titles=list(panels),
  )
  figure.update_annotations(font={'size': 14})
  # As panels share an axis, all have the rows and columns of any.
  points = {point for grid in panels.values() for point in grid}
  xs, ys = (sorted(set(numbers)) for numbers in zip(*points))
  for index, grid in enumerate(panels.values()):
    place = {'row': index // num_columns + 1, 'col': index % num_columns + 1}
    _add_grid(figure, grid, xs, ys, place)
    if not grid:
      layout.name_empty(figure, 'not run', place['row'], place['col'])
  figure.update_xaxes(showgrid=False, ticks='')
  figure.update_yaxes(showgrid=False, ticks='')
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
  layout.finish(
      figure, title=title, caption=caption, plot_height=120 + 270 * num_rows
  )
  return figure


def _add_grid(figure, grid, xs, ys, place):
  means = {point: stats.mean(cell.seeds) for point, cell in grid.items()}
  nothing = stats.mean(pd.Series(dtype=float))

  def table(function):
    return [[function((x, y)) for x in xs] for y in ys]

  def describe(point):
    mean = means.get(point, nothing)
    note = grid[point].note if point in grid else ''
    error = f'± {mean.standard_error:.3f}, seeds: {mean.num_seeds}'
    return f'{error}<br>at {point[0]}, {point[1]} {note}'

  def below(point):
    text = grid[point].below if point in grid else ''
    return f'<br>{text}' if text else ''

  figure.add_trace(
      go.Heatmap(
          z=table(lambda point: _or_none(means.get(point, nothing).value)),
          customdata=table(describe),
          text=table(below),
          texttemplate='%{z:.2f}%{text}',
          textfont={'size': 12},
          hovertemplate='%{z:.3f} %{customdata}<extra></extra>',
          hoverongaps=False,
          coloraxis='coloraxis',
          xgap=1,
          ygap=1,
      ),
      **place,
  )
  # By place, not by name: an annotation would take '4' for a place.
  for axis, names in (('xaxis', xs), ('yaxis', ys)):
    getattr(figure.get_subplot(place['row'], place['col']), axis).update(
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
          **place,
      )


def _or_none(value):
  return None if math.isnan(value) else value
