"""Panels of bars: the mean over seeds, every seed, and the standard error."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style

# Positions, in units of the distance between two bars.
_WIDTH = 0.56
_SEEDS = -0.12  # From the middle of the bar.
_WHISKER = 0.12
_BESIDE = 0.42
_SHIFT = -0.12  # Moves a bar off its tick if a value stands beside it.
_RING = {'color': style.INK, 'width': 1.2}


class Bar(NamedTuple):
  """One bar, and a value beside it."""

  label: str  # Below the bar; may hold <br>.
  colour: str
  seeds: pd.Series  # Values by seed; may be empty.
  missing: str = ''  # Why there are none.
  # A value and its whisker, such as the published ones.
  beside: tuple[float, float] | None = None

  @property
  def name(self) -> str:
    """The label on one line."""
    return self.label.replace('<br>', ' ')


def draw(
    panels: Mapping[str, Sequence[Bar]],
    *,
    y_title: str,
    caption: Sequence[str],
    y_range: tuple[float, float] | None = None,
    beside_name: str = 'published, whisker: dispersion as printed',
    tick_angle: int = 0,
) -> go.Figure:
  """Returns a figure of panels side by side, by title.

  All panels have one range of y; None fits it to the data. `beside_name` is the
  diamonds' entry in the legend, `tick_angle` that of the labels, in degrees.
  """
  figure = layout.make_row(panels, shared_yaxes=True, horizontal_spacing=0.04)
  for column, bars in enumerate(panels.values(), start=1):
    shift = _SHIFT if any(bar.beside for bar in bars) else 0
    for tick, bar in enumerate(bars):
      for trace in _traces(tick + shift, bar, beside_name):
        figure.add_trace(trace, row=1, col=column)
      if bar.missing and bar.seeds.empty:
        layout.name_missing(figure, bar.missing, tick + shift, column)
    if all(bar.seeds.empty for bar in bars):
      layout.keep_empty(figure, 1, column)
    figure.update_xaxes(
        tickvals=list(range(len(bars))),
        ticktext=[bar.label for bar in bars],
        range=[-0.6, len(bars) - 0.4],
        tickangle=tick_angle,
        tickfont={'size': 11},
        showgrid=False,
        ticks='',
        col=column,
    )
  # Titles of panels: above the marks at a value of 1.
  figure.update_annotations(font={'size': 14}, yshift=6)
  figure.update_yaxes(range=y_range, rangemode='tozero')
  if y_range == (0, 1):
    figure.update_yaxes(dtick=0.2)
  for column in range(2, len(panels) + 1):
    figure.update_yaxes(ticks='', col=column)
  figure.update_yaxes(title_text=y_title, col=1)
  _explain(figure, panels, beside_name)
  layout.finish(figure, caption=caption)
  if tick_angle:
    rows = (
        row
        for bars in panels.values()
        for bar in bars
        for row in bar.label.split('<br>')
    )
    layout.add_room_for_labels(figure, max(0, 6 * max(map(len, rows)) - 45))
  figure.update_layout(barmode='overlay')
  return figure


def _traces(
    x: float, bar: Bar, beside_name: str
) -> Iterator[go.Bar | go.Scatter]:
  """Yields a bar, its seeds, its whisker, and the diamond beside it."""
  mean = stats.mean(bar.seeds)
  if len(bar.seeds):
    yield go.Bar(
        x=[x],
        y=[mean.value],
        width=_WIDTH,
        marker={'color': bar.colour},
        hovertemplate=f'{bar.name}<br>mean %{{y:.3f}}<extra></extra>',
        showlegend=False,
    )
    yield _points(  # In a zigzag, so that equal values can be told apart.
        [x + _SEEDS + 0.05 * (-1) ** i for i in range(len(bar.seeds))],
        bar.seeds,
        {'size': 6, 'color': 'white', 'line': _RING},
        f'{bar.name}<br>seed %{{customdata}}: %{{y:.3f}}',
        customdata=bar.seeds.index,
    )
  if mean.standard_error >= 0:  # Not NaN: there is more than one seed.
    yield _points(
        [x + _WHISKER],
        [mean.value],
        {'size': 1, 'color': style.INK},
        f'{bar.name}<br>%{{y:.3f}} ± {mean.standard_error:.3f}',
        error_y=_whisker(mean.standard_error, style.INK),
    )
  if bar.beside:
    value, whisker = bar.beside
    error = f' ± {whisker:.4f}' if whisker >= 0 else ''  # Not NaN.
    line = {'color': bar.colour, 'width': 2}
    yield _points(
        [x + _BESIDE],
        [value],
        {'symbol': 'diamond', 'size': 8, 'color': 'white', 'line': line},
        f'{bar.name}<br>{beside_name}: %{{y:.4f}}{error}',
        error_y=_whisker(whisker, bar.colour) | {'width': 0},
    )


def _points(
    x: Sequence[float],
    y: Iterable[float],
    marker: Mapping[str, Any],
    hover: str,
    **options: Any,
) -> go.Scatter:
  return go.Scatter(
      x=x,
      y=y,
      mode='markers',
      marker=marker,
      hovertemplate=f'{hover}<extra></extra>',
      showlegend=False,
      cliponaxis=False,
      **options,
  )


def _whisker(size: float, colour: str) -> dict[str, Any]:
  return {'array': [size], 'color': colour, 'thickness': 1.5, 'width': 5}


def _explain(
    figure: go.Figure, panels: Mapping[str, Sequence[Bar]], beside_name: str
) -> None:
  mean = 'mean over seeds, whisker: standard error'
  entries = [
      (mean, 'square', '#AAAAAA', {}),
      ('one seed', 'circle', 'white', _RING),
  ]
  if any(bar.beside for bars in panels.values() for bar in bars):
    line = {'color': style.MUTED, 'width': 2}
    entries.append((beside_name, 'diamond', 'white', line))
  layout.explain(figure, entries)
