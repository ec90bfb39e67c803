"""Panels of lines: means over seeds, in bands of one standard error."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import style

_BAND_OPACITY = 0.2


class Line(NamedTuple):
  """One line."""

  name: str  # In the legend, once for all panels.
  colour: str
  seeds: pd.DataFrame  # Index: x; one column per seed; may be empty.
  dash: str = 'solid'
  dash_name: str = ''  # Meaning of the dash, for the legend.
  bars: bool = False  # Draws standard errors as bars, not as a band.

  @property
  def summary(self) -> pd.DataFrame:
    """Returns 'mean' and 'error' by x; the error is NaN for a single seed."""
    means, errors = self.seeds.mean(axis=1), self.seeds.sem(axis=1)
    return pd.DataFrame({'mean': means, 'error': errors})


def by_x(values: Mapping[Any, pd.Series]) -> pd.DataFrame:
  """Returns values by seed at each x as `Line.seeds`, without empty ones."""
  return pd.DataFrame(dict(values)).T.dropna(how='all')


def draw(
    panels: Mapping[str, Sequence[Line]],
    *,
    x_title: str,
    y_title: str,
    caption: Sequence[str],
    num_columns: int = 4,
    x_type: str = 'linear',
    same_x: bool = False,
    y_type: str = 'linear',
    y_range: tuple[float, float] | None = None,
    markers: bool = True,
    empty: str = 'no finished run',
) -> go.Figure:
  """Returns a figure of panels, by title.

  Types of axes are those of plotly. With `same_x`, all panels have one range of
  x. A range of y of None fits the data.
  """
  figure, num_rows, num_columns = layout.make_grid(list(panels), num_columns)
  for index, lines in enumerate(panels.values()):
    row, column = index // num_columns + 1, index % num_columns + 1
    for line in lines:
      for trace in _traces(line, markers):
        figure.add_trace(trace, row=row, col=column)
    if all(line.seeds.empty for line in lines):
      layout.name_empty(figure, empty, row, column)
    if index + num_columns >= len(panels):  # The lowest of its column.
      figure.update_xaxes(
          title={
              'text': x_title,
              'font': {'size': 12 if num_columns > 2 else 14},
          },
          row=row,
          col=column,
      )
  all_lines = [line for lines in panels.values() for line in lines]
  _explain(figure, all_lines)
  figure.update_xaxes(type=x_type)
  if same_x:
    figure.update_xaxes(matches='x')
    figure.update_layout(
        xaxis={'matches': None}
    )  # It is the one that others match.
  figure.update_yaxes(type=y_type, range=y_range)
  if y_type == 'log':
    figure.update_yaxes(exponentformat='power')
  figure.update_yaxes(title_text=y_title, col=1)
  if any(
      not line.bars and line.summary['error'].notna().any()
      for line in all_lines
  ):
    caption = [*caption, 'Bands: one standard error over seeds, up and down.']
  layout.finish(figure, caption=caption, plot_height=120 + 270 * num_rows)
  return figure


def band(
    x: list[Any],
    low: pd.Series,
    high: pd.Series,
    colour: str,
    **options: Any,
) -> go.Scatter:
  """Returns the area between two lines; options are of the trace."""
  return go.Scatter(
      x=x + x[::-1],
      y=np.concatenate([high, low[::-1]]),
      fill='toself',
      fillcolor=colour,
      opacity=_BAND_OPACITY,
      line={'width': 0},
      mode='lines',
      hoverinfo='skip',
      showlegend=False,
      **options,
  )


def _traces(line: Line, markers: bool) -> Iterator[go.Scatter]:
  """Yields the band and the line; nothing if there are no values."""
  summary = line.summary
  if summary.empty:
    return
  x = list(summary.index)
  error = summary['error'].fillna(0.0)
  low, high = summary['mean'] - error, summary['mean'] + error
  if not line.bars:
    yield band(x, low, high, line.colour, legendgroup=line.name)
  yield go.Scatter(
      x=x,
      y=summary['mean'],
      customdata=summary['error'],
      mode='lines+markers' if markers else 'lines',
      line={'color': line.colour, 'dash': line.dash, 'width': 2},
      marker={'size': 6},
      error_y={'array': error, 'visible': line.bars},
      name=line.name,
      legendgroup=line.name,
      showlegend=False,
      hovertemplate=(
          f'{line.name} {line.dash_name}<br>%{{x}}: %{{y:.3f}}'
          ' ± %{customdata:.3f}<extra></extra>'
      ),
  )


def _explain(figure: go.Figure, lines: Sequence[Line]) -> None:
  """Adds a legend entry per colour, and one per dash in grey."""
  by_name: dict[str, dict[str, Any]] = {
      line.name: {
          'color': line.colour,
          # Otherwise the dash has a meaning, and an entry, of its own.
          **({} if line.dash_name else {'dash': line.dash}),
      }
      for line in lines
  }
  by_dash = {
      line.dash_name: {'color': style.MUTED, 'dash': line.dash}
      for line in lines
      if line.dash_name
  }
  for name, options in {**by_name, **by_dash}.items():
    figure.add_trace(
        go.Scatter(
            x=[None],
            y=[None],
            mode='lines',
            line={'width': 2, **options},
            name=name,
            legendgroup=name,
        )
    )
