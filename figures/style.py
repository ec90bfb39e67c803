"""How every figure looks: one colour per model, one dash per split.

Colours are Okabe and Ito's, which colour-blind readers can tell apart; warm
ones are monolithic models, cool ones modular models.
"""

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


def scale_note(frame: pd.DataFrame) -> str:
  """Returns the scale that results ran at, to be printed on their figure."""
  if frame.empty:
    return 'no finished runs'
  seeds = frame.groupby(['model', 'task_support'], dropna=False)['seed']
  preset = ' and '.join(frame['preset'].unique())
  parts = [
      f'{preset} scale',
      _count(seeds.nunique(), 'seed'),
      _count(frame['num_outer_steps'], 'outer step'),
  ]
  for symbol, column in (('M', 'num_modules'), ('K', 'max_active')):
    if frame[column].notna().all():
      parts.append(f'{symbol} = {_range(frame[column])}')
  note = ', '.join(parts)
  if frame['published_scale'].all():
    return note
  return f'{note} \N{EN DASH} not the published scale'


def _count(numbers, noun):
  plural = '' if set(numbers) == {1} else 's'
  return f'{_range(numbers)} {noun}{plural}'


def _range(numbers):
  low, high = int(min(numbers)), int(max(numbers))
  return f'{low:,}' if low == high else f'{low:,} to {high:,}'
