"""What all figures share around their panels: title, caption, size."""

from typing import Sequence

import plotly.graph_objects as go

from figures import style

CAPTION = 'caption'  # Name of the annotation that holds it.


def finish(
    figure: go.Figure,
    *,
    title: str,
    caption: Sequence[str],
    plot_height: int = 390,
    width: int = 920,
) -> None:
  """Sets the template, and text above and below the panels.

  The page of all figures sets title and caption in type of its own, and finds
  the caption in `layout.meta`.

  Args:
    figure: panels and their axes.
    title: what is shown.
    caption: lines; scale, and whatever is missing.
    plot_height: of everything but the caption, in pixels.
    width: of the whole, in pixels.
  """
  figure.add_annotation(
      name=CAPTION,
      x=0,
      y=0,
      xref='paper',
      yref='paper',
      yshift=-56,
      yanchor='top',
      text='<br>'.join(caption),
      align='left',
      showarrow=False,
      font={'size': 12, 'color': style.MUTED},
  )
  figure.update_yaxes(automargin=True)
  bottom = 80 + 17 * len(caption)
  figure.update_layout(
      template=style.TEMPLATE,
      title={'text': title, 'y': 1, 'yanchor': 'top', 'pad': {'t': 18}},
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


def name_missing(
    figure: go.Figure, reason: str, x: float, row: int, column: int
) -> None:
  """Writes upright, at the foot of a panel, why there is nothing at x."""
  x_axis, y_axis = _axes(figure, row, column)
  figure.add_annotation(
      x=x,
      xref=x_axis,
      y=0.02,
      yref=f'{y_axis} domain',
      text=reason,
      textangle=-90,
      yanchor='bottom',
      showarrow=False,
      font={'color': style.MUTED},
  )


def name_empty(figure: go.Figure, reason: str, row: int, column: int) -> None:
  """Writes into a panel why there is nothing in it."""
  x_axis, y_axis = _axes(figure, row, column)
  keep_empty(figure, row, column)
  figure.add_annotation(
      x=0.5,
      xref=f'{x_axis} domain',
      y=0.5,
      yref=f'{y_axis} domain',
      text=reason,
      showarrow=False,
      font={'color': style.MUTED},
  )


def keep_empty(figure: go.Figure, row: int, column: int) -> None:
  """Makes a panel be drawn that has no trace."""
  figure.add_trace(
      go.Scatter(x=[None], y=[None], showlegend=False), row=row, col=column
  )


def _axes(figure, row, column):
  panel = figure.get_subplot(row, column)
  axes = panel.xaxis, panel.yaxis
  return [axis.plotly_name.replace('axis', '') for axis in axes]


def explain(
    figure: go.Figure, entries: Sequence[tuple[str, str, str, dict]]
) -> None:
  """Adds marks to the legend: (name, symbol, colour, line) each."""
  for name, symbol, colour, line in entries:
    marker = {'symbol': symbol, 'size': 9, 'color': colour, 'line': line}
    figure.add_trace(
        go.Scatter(x=[None], y=[None], mode='markers', marker=marker, name=name)
    )
