"""Panels of points, with or without error bars, or of paths through them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.figures.plotting import layout


class Points(NamedTuple):
  """Points of one colour."""

  name: str  # In the legend, once for all panels.
  colour: str
  # Columns 'x', 'y', 'label' and, if points have error bars, 'error' (NaN for
  # none); may be empty.
  table: pd.DataFrame
  symbol: str | Sequence[str] = 'circle'  # Plotly's names; one, or of each.
  path: bool = False  # Whether a line joins them.


def draw(
    panels: Mapping[str, Sequence[Points]],
    *,
    x_title: str,
    y_title: str,
    caption: Sequence[str],
    x_type: str = 'log',
    y_type: str = 'log',
    empty: str = 'no finished run',
    plot_height: int = 480,
    **row: Any,
) -> go.Figure:
  """Returns a figure of panels side by side, by title.

  Without a title of x, titles of panels stand below their axes instead. Types
  of axes are those of plotly; `row` has options of `layout.make_row`.
  """
  figure = layout.make_row(panels if x_title else [''] * len(panels), **row)
  named = set()
  for column, (name, groups) in enumerate(panels.items(), start=1):
    for group in groups:
      figure.add_trace(_trace(group, group.name not in named), 1, column)
      named.add(group.name)
    if all(group.table.empty for group in groups):
      layout.name_empty(figure, empty, 1, column)
    figure.update_xaxes(title_text=x_title or name, col=column)
  figure.update_xaxes(type=x_type, exponentformat='power')
  figure.update_yaxes(type=y_type, exponentformat='power')
  figure.update_yaxes(title_text=y_title, col=1)
  layout.finish(figure, caption=caption, plot_height=plot_height)
  return figure


def _trace(group: Points, in_legend: bool) -> go.Scatter:
  return go.Scatter(
      x=group.table['x'],
      y=group.table['y'],
      customdata=group.table['label'],
      mode='lines+markers' if group.path else 'markers',
      marker={
          'color': group.colour,
          'symbol': group.symbol,
          'size': 4 if group.path else 9,
          'opacity': 1.0 if group.path else 0.7,  # Points may hide others.
      },
      line={'color': group.colour, 'width': 1.5},
      error_y={'array': group.table.get('error')},
      name=group.name,
      legendgroup=group.name,
      showlegend=in_legend,
      hovertemplate='%{customdata}<br>%{x:.3g}: %{y:.3g}<extra></extra>',
  )
