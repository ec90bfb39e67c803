"""Panels of points, or of paths through them, with an error bar each."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.figures.plotting import layout


class Points(NamedTuple):
  """Points of one colour."""

  name: str  # In the legend, once for all panels.
  colour: str
  # Columns 'x', 'y', 'error' (NaN for none) and 'label'; may be empty.
  table: pd.DataFrame
  symbol: str = 'circle'  # Plotly's name.
  path: bool = False  # Whether a line joins them.


def draw(
    panels: Mapping[str, Sequence[Points]],
    *,
    x_title: str,
    y_title: str,
    caption: Sequence[str],
) -> go.Figure:
  """Returns a figure of panels side by side, with logarithmic axes."""
  figure = layout.make_row(panels)
  named = set()
  for column, groups in enumerate(panels.values(), start=1):
    for group in groups:
      figure.add_trace(_trace(group, group.name not in named), 1, column)
      named.add(group.name)
    if all(group.table.empty for group in groups):
      layout.name_empty(figure, 'no finished run', 1, column)
  figure.update_xaxes(type='log', title_text=x_title, exponentformat='power')
  figure.update_yaxes(type='log', exponentformat='power')
  figure.update_yaxes(title_text=y_title, col=1)
  layout.finish(figure, caption=caption, plot_height=480)
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
      },
      line={'color': group.colour, 'width': 1.5},
      error_y={'array': group.table['error']},
      name=group.name,
      legendgroup=group.name,
      showlegend=in_legend,
      hovertemplate='%{customdata}<br>%{x:.3g}: %{y:.3g}<extra></extra>',
  )
