"""How every figure looks: one colour per model, one dash per split.

Colours are Okabe and Ito's, which colour-blind readers can tell apart; warm
ones are monolithic models, cool ones modular models.
"""

from typing import Any, Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

MONOLITHIC = ('anil', 'maml')
HYPERNETWORKS = ('linear_hypernetwork', 'nonlinear_hypernetwork')
MODELS = MONOLITHIC + HYPERNETWORKS

COLOURS = {
    'anil': '#E69F00',
    'maml': '#D55E00',
    'linear_hypernetwork': '#56B4E9',
    'nonlinear_hypernetwork': '#0072B2',
}
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
}
MODEL_NAMES = {
    'anil': 'ANIL',
    'maml': 'MAML',
    'linear_hypernetwork': 'Linear hypernetwork',
    'nonlinear_hypernetwork': 'Nonlinear hypernetwork',
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
    'model.modules_per_teacher_module': 'modules, times the teacher\'s',
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

# Of interactive pages. Plotly's own default has a button that uploads them.
PAGE = {'displaylogo': False, 'showSendToCloud': False}

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
  """Returns the scale that results ran at, to be printed on their figure.

  Args:
    frame: rows of finished runs.
    cell: the columns that tell the figure's cells apart.
  """
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
  """Returns how a cell is referred to: 'ANIL, random, M = 8'."""
  parts = []
  for column, value in cell.items():
    if column == 'model.name':
      parts.append(MODEL_NAMES.get(value, value))
    elif isinstance(value, str):
      parts.append(value)
    else:
      parts.append(f'{column_name(column)} = {value}')
  return ', '.join(parts)


def split_name(split: str) -> str:
  """Returns how a split is referred to: 'seen combinations', 'OOD, k = 4'."""
  name, _, number = split.partition('_k')
  return f'{SPLIT_NAMES[name]}, k = {number}' if number else SPLIT_NAMES[name]


def column_name(column: str) -> str:
  """Returns how a field of a config is referred to: 'M', 'clip norm'."""
  plain = 'model' if column == 'model.name' else column.rpartition('.')[2]
  return SYMBOLS.get(column, plain.replace('_', ' '))


def left_out_notes(left_out: Mapping[str, tuple]) -> list[str]:
  """Returns a caption's lines on what `data.select_conditions` left out."""
  return [
      f'Not shown: {run_id}, another run of {" / ".join(map(str, cell))}.'
      for run_id, cell in left_out.items()
  ]


def _count(numbers, noun):
  plural = '' if set(numbers) == {1} else 's'
  return f'{_range(numbers)} {noun}{plural}'


def _range(numbers):
  low, high = int(min(numbers)), int(max(numbers))
  return f'{low:,}' if low == high else f'{low:,} to {high:,}'
