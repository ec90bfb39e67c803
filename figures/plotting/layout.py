"""Title, caption, size and legend of all figures."""

from collections.abc import Iterable, Sequence
import math
import textwrap
from typing import Any

from plotly import subplots
import plotly.graph_objects as go

from modular_hyperteacher.figures.plotting import style

CAPTION = 'caption'  # Name of its annotation.
_LEGEND_ROW = 32  # Pixels.
_LINE = 110  # Characters on a line of a caption.


def make_grid(
    titles: Sequence[str], most_columns: int
) -> tuple[go.Figure, int, int]:
  """Returns a figure with a panel per title, its rows and its columns."""
  num_columns = min(most_columns, len(titles))
  num_rows = math.ceil(len(titles) / num_columns)
  figure = subplots.make_subplots(
      rows=num_rows,
      cols=num_columns,
      shared_yaxes=True,
      horizontal_spacing=0.03,
      vertical_spacing=0.18 / num_rows,
      subplot_titles=titles,
  )
  figure.update_annotations(font={'size': 14})
  return figure, num_rows, num_columns


def make_row(titles: Iterable[str], **options: Any) -> go.Figure:
  """Returns panels side by side; options are those of `make_subplots`."""
  titles = list(titles)
  return subplots.make_subplots(
      rows=1, cols=len(titles), subplot_titles=titles, **options
  )


def finish(
    figure: go.Figure,
    *,
    caption: Sequence[str],
    plot_height: int = 390,
    width: int = 920,
) -> None:
  """Sets the template, the caption and the size, in pixels.

  `described.Figure` sets the title. The report sets title and caption itself,
  and breaks lines to its own width; it reads the caption from `layout.meta`.
  The height is that without caption.
  """
  lines = [part for line in caption for part in textwrap.wrap(line, _LINE)]
  figure.add_annotation(
      name=CAPTION,
      x=0,
      y=0,
      xref='paper',
      yref='paper',
      yshift=-56,
      yanchor='top',
      text='<br>'.join(lines),
      align='left',
      showarrow=False,
      font={'size': 12, 'color': style.MUTED},
  )
  figure.update_yaxes(automargin=True)
  bottom = 80 + 17 * len(lines)
  figure.update_layout(
      template=style.TEMPLATE,
      title={'y': 1, 'yanchor': 'top', 'pad': {'t': 18}},
      legend={
          'orientation': 'h',
          'x': 0,
          'y': 1 + 30 / (plot_height - 95),
          'yanchor': 'bottom',
      },
      width=width,
      height=plot_height + bottom,
      margin={'l': 80, 'r': 30, 't': 95, 'b': bottom},
      meta={CAPTION: list(caption)},
  )


def add_legend_row(figure: go.Figure) -> None:
  """Makes room for one more row of the legend, below the title."""
  layout: Any = figure.layout
  figure.update_layout(
      height=layout.height + _LEGEND_ROW,
      margin={'t': layout.margin.t + _LEGEND_ROW},
  )


def add_room_for_labels(figure: go.Figure, pixels: int) -> None:
  """Moves the caption down, below labels that are higher than two lines."""
  layout: Any = figure.layout
  figure.update_annotations(selector={'name': CAPTION}, yshift=-56 - pixels)
  figure.update_layout(
      height=layout.height + pixels,
      margin={'b': layout.margin.b + pixels},
  )


def vertical_line(x: float, panel: int, **line: Any) -> dict[str, Any]:
  """Returns a shape; `add_vline` takes a second for each of many panels."""
  number = '' if panel == 1 else str(panel)
  return {
      'type': 'line',
      **{'xref': f'x{number}', 'x0': x, 'x1': x},
      **{'yref': f'y{number} domain', 'y0': 0, 'y1': 1},
      'line': {'color': style.MUTED, **line},
  }


def name_missing(figure: go.Figure, reason: str, x: float, column: int) -> None:
  """Writes why x has no value, vertically at the bottom of a panel."""
  figure.add_annotation(
      row=1,
      col=column,
      x=x,
      y=0.02,
      yref='y domain',
      text=reason,
      textangle=-90,
      yanchor='bottom',
      showarrow=False,
      font={'color': style.MUTED},
  )


def name_empty(figure: go.Figure, reason: str, row: int, column: int) -> None:
  """Writes into a panel why it is empty."""
  keep_empty(figure, row, column)
  figure.add_annotation(
      row=row,
      col=column,
      x=0.5,
      xref='x domain',
      y=0.5,
      yref='y domain',
      text=reason,
      showarrow=False,
      font={'color': style.MUTED},
  )


def keep_empty(figure: go.Figure, row: int, column: int) -> None:
  """Makes plotly draw a panel that has no trace."""
  figure.add_trace(
      go.Scatter(x=[None], y=[None], showlegend=False), row=row, col=column
  )


def explain(
    figure: go.Figure, entries: Sequence[tuple[str, str, str, dict[str, Any]]]
) -> None:
  """Adds markers to the legend: (name, symbol, colour, outline) each."""
  for name, symbol, colour, line in entries:
    marker = {'symbol': symbol, 'size': 9, 'color': colour, 'line': line}
    figure.add_trace(
        go.Scatter(x=[None], y=[None], mode='markers', marker=marker, name=name)
    )
