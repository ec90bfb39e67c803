"""Pictures of grid worlds: walls, objects, the agent, its path, and values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import style

# One colour, of Okabe and Ito's, and one symbol per type of object.
COLOURS = (
    *('#E69F00', '#56B4E9', '#009E73', '#F0E442'),
    *('#0072B2', '#D55E00', '#CC79A7', '#999999'),
)
SYMBOLS = (
    *('square', 'diamond', 'triangle-up', 'star'),
    *('pentagon', 'cross', 'hourglass', 'hexagram'),
)
_WALL = '#4A4A4A'
_CELL_SIZE = 34  # Pixels.
_AFTER_OTHERS = 1001  # Rank in the legend; plotly's default is 1000.
# Action -> symbol of its value, and its offset in a cell, (right, down).
_VALUE_MARKS = {
    'stay': ('circle', (0, 0)),
    'up': ('triangle-up', (0, -0.34)),
    'right': ('triangle-right', (0.34, 0)),
    'down': ('triangle-down', (0, 0.34)),
    'left': ('triangle-left', (-0.34, 0)),
}


class Picture(NamedTuple):
  """A grid at the start of an episode; cells are numbered row by row."""

  title: str
  walls: np.ndarray  # [rows, columns] bool
  object_cells: Sequence[int] | np.ndarray
  object_types: Sequence[int] | np.ndarray
  type_names: Sequence[str]
  path: Sequence[int] | np.ndarray  # The agent's cells, from its current one.
  goal: int | None = None  # Its cell, if there is one.
  # Action ('stay', 'up', ...) -> value in every cell, [cells], NaN for none.
  values: dict[str, np.ndarray] | None = None
  path_name: str = 'optimal path'
  path_colour: str = style.INK


def draw(pictures: Sequence[Picture], *, caption: Sequence[str]) -> go.Figure:
  """Returns a figure of pictures side by side, of equal size."""
  rows, columns = pictures[0].walls.shape
  width = len(pictures) * (_CELL_SIZE * columns + 70) + 270
  figure = layout.make_row(
      [picture.title for picture in pictures], horizontal_spacing=0.05
  )
  figure.update_annotations(font={'size': 13})
  named = set()
  for column, picture in enumerate(pictures, start=1):
    for trace in _traces(picture):
      # The legend lists every name once.
      trace.showlegend = bool(trace.name) and trace.name not in named
      named.add(trace.name)
      figure.add_trace(trace, row=1, col=column)
    panel: Any = figure.get_subplot(1, column)
    figure.update_yaxes(
        range=[rows - 0.5, -0.5],
        scaleanchor=panel.xaxis.plotly_name.replace('axis', ''),
        col=column,
    )
  blank = {'showgrid': False, 'showticklabels': False, 'ticks': ''}
  blank['mirror'] = True  # A line on all four sides.
  figure.update_xaxes(range=[-0.5, columns - 0.5], constrain='domain', **blank)
  figure.update_yaxes(constrain='domain', **blank)
  layout.finish(
      figure,
      caption=caption,
      plot_height=_CELL_SIZE * rows + 190,
      width=width,
  )
  figure.update_layout(
      legend={'orientation': 'v', 'x': 1.02, 'y': 1, 'yanchor': 'top'},
      coloraxis={
          'colorscale': 'Cividis',
          'colorbar': {
              'title': 'value',
              'x': 1.02,
              'xanchor': 'left',
              'y': 0,
              'yanchor': 'bottom',
              'len': 0.45,
              'thickness': 12,
          },
      },
  )
  return figure


def _traces(picture: Picture) -> Iterator[go.Heatmap | go.Scatter]:
  """Yields traces from back to front."""
  yield go.Heatmap(
      z=np.where(picture.walls, 1.0, 0.0),
      colorscale=[[0, 'white'], [1, _WALL]],
      zmin=0,
      zmax=1,
      showscale=False,
      hoverinfo='skip',
      xgap=1,
      ygap=1,
  )
  yield from _value_traces(picture)
  x, y = _coordinates(picture, picture.path)
  yield go.Scatter(
      x=x,
      y=y,
      mode='lines',
      line={'color': picture.path_colour, 'width': 3, 'dash': 'dot'},
      name=picture.path_name,
      hoverinfo='skip',
  )
  if picture.goal is not None:
    marker = {
        'symbol': 'circle-open',
        'size': 27,
        'color': style.INK,
        'line': {'width': 2},
    }
    yield _points(picture, [picture.goal], marker, 'goal')
  for object_type, name in enumerate(picture.type_names):
    cells = [
        cell
        for cell, type_ in zip(picture.object_cells, picture.object_types)
        if type_ == object_type
    ]
    marker = {
        'symbol': SYMBOLS[object_type],
        'size': 16,
        'color': COLOURS[object_type],
        'line': {'color': style.INK, 'width': 1},
    }
    if cells:
      trace = _points(picture, cells, marker, name)
      yield trace.update(legendrank=_AFTER_OTHERS + object_type)
  agent = {'symbol': 'circle', 'size': 17, 'color': style.INK}
  trace = _points(picture, picture.path[:1], agent, 'agent')
  yield trace.update(
      mode='markers+text', text='A', textfont={'color': 'white', 'size': 11}
  )


def _value_traces(picture: Picture) -> Iterator[go.Scatter]:
  for action, values in (picture.values or {}).items():
    cells = np.flatnonzero(~np.isnan(values))
    symbol, (right, down) = _VALUE_MARKS[action]
    x, y = _coordinates(picture, cells)
    yield go.Scatter(
        x=x + right,
        y=y + down,
        mode='markers',
        marker={
            'symbol': symbol,
            'size': 5 if action == 'stay' else 9,
            'color': values[cells],
            'coloraxis': 'coloraxis',
        },
        hovertemplate=f'{action}: %{{marker.color:.2f}}<extra></extra>',
    )


def _points(
    picture: Picture,
    cells: Sequence[int] | np.ndarray,
    marker: Mapping[str, Any],
    name: str,
) -> go.Scatter:
  x, y = _coordinates(picture, cells)
  return go.Scatter(
      x=x,
      y=y,
      mode='markers',
      marker=marker,
      name=name,
      hovertemplate=f'{name}<extra></extra>',
  )


def _coordinates(
    picture: Picture, cells: Sequence[int] | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the columns and the rows of cells, as x and y."""
  row, column = np.divmod(np.asarray(cells, int), picture.walls.shape[1])
  return column, row
