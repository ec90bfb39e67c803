"""How every figure looks: one colour per model, one dash per split.

Colours are from Okabe and Ito's palette, which colour-blind readers can tell
apart. Monolithic models are warm, modular models are cool.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
import zlib

import pandas as pd
import plotly.graph_objects as go

# The only list of models that figures know; its order is theirs.
_STYLES = {
    'anil': ('ANIL', '#E69F00'),
    'maml': ('MAML', '#D55E00'),
    'linear_hypernetwork': ('Linear hypernetwork', '#56B4E9'),
    'nonlinear_hypernetwork': ('Nonlinear hypernetwork', '#0072B2'),
}
MODELS = tuple(_STYLES)
MONOLITHIC = ('anil', 'maml')
HYPERNETWORKS = ('linear_hypernetwork', 'nonlinear_hypernetwork')
# For models that are not listed: what the listed ones leave unused.
_SPARE_COLOURS = ('#009E73', '#CC79A7', '#F0E442', '#000000')


def model_style(model: str) -> tuple[str, str]:
  """Returns the label and the colour of a model, which need not be listed.

  The style of an unlisted model depends on its name alone, so it is the same in
  every figure.
  """
  if model in _STYLES:
    return _STYLES[model]
  number = zlib.crc32(model.encode())
  return model.replace('_', ' '), _SPARE_COLOURS[number % len(_SPARE_COLOURS)]


def sort_models(models: Iterable[str]) -> list[str]:
  """Returns models without repetition: listed ones first, then by name."""
  names = set(models)
  return [m for m in MODELS if m in names] + sorted(names.difference(MODELS))


class _ByModel(dict[str, str]):
  """Model -> one part of its style; `[...]` also takes unlisted models."""

  def __init__(self, part: int) -> None:
    super().__init__({name: style[part] for name, style in _STYLES.items()})
    self._part = part

  def __missing__(self, model: str) -> str:
    return model_style(model)[self._part]


MODEL_NAMES, COLOURS = _ByModel(0), _ByModel(1)
DASHES = {
    'train': 'longdash',
    'valid': 'dot',
    'test': 'solid',
    'ood': 'dash',
}
SPLIT_NAMES = {
    'train': 'training tasks',
    'valid': 'validation tasks',
    'test': 'seen combinations',
    'ood': 'OOD',
    'unrelated': 'unrelated tasks',
}
SUPPORT_NAMES = {
    'random': 'Compositional support',
    'non_compositional': 'Non-compositional support',
    'connected': 'Connected support',
    'disconnected': 'Disconnected support',
}
SYMBOLS = {
    'task.num_modules': 'M',
    'task.max_active': 'K',
    'task.num_support': 'shots',
    'task.fraction_ood': 'held out',
    'model.hidden_dim': 'width',
    'model.modules_per_teacher_module': "modules, times the teacher's",
}
INK = '#222222'
MUTED = '#666666'

_FONT = 'Helvetica, Arial, Liberation Sans, sans-serif'
_AXIS = {
    'showline': True,
    'linecolor': INK,
    'linewidth': 1,
    'ticks': 'outside',
    'tickcolor': INK,
    'ticklen': 4,
    'gridcolor': '#E6E6E6',
    'zeroline': False,
    'title': {'font': {'size': 14}, 'standoff': 10},
}

TEMPLATE = go.layout.Template(
    layout={
        'font': {'family': _FONT, 'size': 13, 'color': INK},
        'title': {
            'font': {'size': 17},
            'x': 0,
            'xref': 'paper',
            'xanchor': 'left',
        },
        'paper_bgcolor': 'white',
        'plot_bgcolor': 'white',
        'xaxis': _AXIS,
        'yaxis': _AXIS,
        'colorway': list(COLOURS.values()),
        'hoverlabel': {'font': {'family': _FONT}, 'bgcolor': 'white'},
        'legend': {'bgcolor': 'rgba(255,255,255,0)'},
    }
)


def scale_note(
    frame: pd.DataFrame, cell: Sequence[str] = ('model.name',)
) -> str:
  """Returns the scale of some results, to be printed on their figure."""
  if frame.empty:
    return 'no finished runs'
  seeds = frame.groupby(list(cell), dropna=False)['seed']
  preset = ' and '.join(frame['preset'].unique())
  parts = [
      f'{preset} scale',
      _count(seeds.nunique(), 'seed'),
      _count(frame['training.num_outer_steps'], 'outer step'),
  ]
  for column in ('task.num_modules', 'task.max_active'):
    if column in frame and frame[column].notna().all():
      parts.append(f'{SYMBOLS[column]} = {_range(frame[column])}')
  if 'task.grid_size' in frame and frame['task.grid_size'].notna().all():
    sides = _range(frame['task.grid_size'])
    parts.append(f'mazes of {sides} \N{MULTIPLICATION SIGN} {sides} cells')
  note = ', '.join(parts)
  if frame['published_scale'].all():
    return note
  return f'{note} \N{EN DASH} not the published scale'


def cell_name(cell: Mapping[str, Any]) -> str:
  """Returns the name of a cell: 'ANIL, random, M = 8'."""
  parts = []
  for column, value in cell.items():
    if column == 'model.name':
      parts.append(MODEL_NAMES[value])
    elif isinstance(value, str):
      parts.append(value)
    elif value is not None:  # A field that the run does not have.
      parts.append(f'{column_name(column)} = {value}')
  return ', '.join(parts)


def split_name(split: str) -> str:
  """Returns the name of a split: 'seen combinations', 'OOD, k = 4'."""
  name, _, number = split.partition('_k')
  shown = SPLIT_NAMES.get(name, name.replace('_', ' '))
  return f'{shown}, k = {number}' if number else shown


def column_name(column: str) -> str:
  """Returns the name of a config's field: 'M', 'clip norm'."""
  plain = 'model' if column == 'model.name' else column.rpartition('.')[2]
  return SYMBOLS.get(column, plain.replace('_', ' '))


def _count(numbers: pd.Series, noun: str) -> str:
  plural = '' if set(numbers) == {1} else 's'
  return f'{_range(numbers)} {noun}{plural}'


def _range(numbers: pd.Series) -> str:
  low, high = int(min(numbers)), int(max(numbers))
  return f'{low:,}' if low == high else f'{low:,} to {high:,}'
