"""Figure 3B: who solves module combinations that training never showed?

OOD accuracy of the four models on the hyperteacher, for compositional and
non-compositional support. The published values are those of Table A6 (M = 8,
K = 2), which has none for non-compositional support.
"""

import math

import pandas as pd
import plotly.graph_objects as go
from plotly import subplots

from figures import data
from figures import reference
from figures import stats
from figures import style

EXPERIMENT = 'fig3b'
TITLE = 'Figure 3B: accuracy on module combinations never seen in training'
SUPPORTS = ('random', 'non_compositional')
CELL = ('model', 'task_support')

# Where things stand, in units of the distance between two models.
_BAR_WIDTH = 0.56
_SEEDS = -0.12  # From the middle of the bar.
_WHISKER = 0.12
_PUBLISHED = 0.42
_SHIFT = -0.12  # Of the bar from its tick, to make room for the published.
_RING = {'color': style.INK, 'width': 1.2}


def draw(frame: pd.DataFrame) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the figure and the table of what it shows.

  Args:
    frame: the finished runs of experiment 'fig3b', as `data.load` returns
      them; may be empty.
  """
  frame, left_out = data.select_conditions(frame, CELL)
  table = make_table(frame)
  figure = subplots.make_subplots(
      rows=1,
      cols=2,
      shared_yaxes=True,
      horizontal_spacing=0.04,
      subplot_titles=[style.SUPPORT_NAMES[support] for support in SUPPORTS],
  )
  for column, support in enumerate(SUPPORTS, start=1):
    panel = table[table['task_support'] == support]
    shift = _SHIFT if panel['published_ood'].notna().any() else 0
    for tick, row in enumerate(panel.to_dict('records')):
      seeds = data.values(
          frame, 'ood', model=row['model'], task_support=support
      )
      for trace in _cell_traces(tick + shift, row, seeds):
        figure.add_trace(trace, row=1, col=column)
      if not row['num_seeds']:
        reason = 'no OOD tasks' if row['preset'] else 'no finished run'
        _name_missing(figure, reason, tick + shift, column)
  _add_legend(figure)
  _lay_out(figure, _caption(frame, table, left_out))
  return figure, table


def make_table(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns a row per model and support, missing runs included.

  Accuracies are fractions of query samples at the last step, 'ood_best' at
  the lowest validation loss; `_mean` and `_se` are over seeds. The difference
  from the published value is given at the published scale only.
  """
  splits = {'test': ('test', 'last'), 'ood': ('ood', 'last')}
  splits['ood_best'] = ('ood', 'best_validation')
  present = frame['split'].unique()
  for name in sorted(n for n in present if n.startswith('ood_k')):
    splits[name] = (name, 'last')
  return pd.DataFrame([
      _table_row(frame, splits, model, support)
      for support in SUPPORTS
      for model in style.MODELS
  ])


def _table_row(frame, splits, model, support):
  cell = {'model': model, 'task_support': support}
  runs = frame[(frame['model'] == model) & (frame['task_support'] == support)]
  row = dict(cell)
  for name, (split, kind) in splits.items():
    estimate = stats.mean(data.values(frame, split, kind=kind, **cell))
    row[f'{name}_mean'] = estimate.value
    row[f'{name}_se'] = estimate.standard_error
    if name == 'ood':
      ood = estimate
  published = reference.published_accuracy(EXPERIMENT, model, support, 'ood')
  mean, deviation = published or (math.nan, math.nan)
  at_scale = len(runs) and runs['published_scale'].all()
  row['num_seeds'] = ood.num_seeds
  row['preset'] = ', '.join(runs['preset'].unique())
  row['published_ood'] = mean
  row['published_std'] = deviation
  row['difference_in_published_std'] = (
      (ood.value - mean) / deviation if at_scale else math.nan
  )
  return row


def _cell_traces(x, row, seeds):
  """Yields what is drawn of one model: bar, whisker, seeds, published."""
  colour, name = style.COLOURS[row['model']], style.MODEL_NAMES[row['model']]
  if len(seeds):
    yield go.Bar(
        x=[x],
        y=[row['ood_mean']],
        width=_BAR_WIDTH,
        marker={'color': colour},
        hovertemplate=f'{name}<br>mean %{{y:.3f}}<extra></extra>',
        showlegend=False,
    )
    yield _points(  # In a zigzag, so that equal values can be told apart.
        [x + _SEEDS + 0.05 * (-1) ** i for i in range(len(seeds))],
        seeds,
        {'size': 6, 'color': 'white', 'line': _RING},
        f'{name}<br>seed %{{customdata}}: %{{y:.3f}}',
        customdata=seeds.index,
    )
  if row['ood_se'] >= 0:  # Not NaN: there is more than one seed.
    yield _points(
        [x + _WHISKER],
        [row['ood_mean']],
        {'size': 1, 'color': style.INK},
        f'{name}<br>%{{y:.3f}} ± {row["ood_se"]:.3f}',
        error_y=_whisker(row['ood_se'], style.INK),
    )
  if row['published_ood'] >= 0:
    yield _points(
        [x + _PUBLISHED],
        [row['published_ood']],
        {
            'symbol': 'diamond',
            'size': 8,
            'color': 'white',
            'line': {'color': colour, 'width': 2},
        },
        f'{name}<br>published %{{y:.4f}} ± {row["published_std"]:.4f}',
        error_y=_whisker(row['published_std'], colour) | {'width': 0},
    )


def _points(x, y, marker, hover, **options):
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


def _whisker(size, colour):
  return {'array': [size], 'color': colour, 'thickness': 1.5, 'width': 5}


def _add_legend(figure):
  """Explains the marks in grey; the models' names are below their bars."""
  entries = (
      ('mean over seeds, whisker: standard error', 'square', '#AAAAAA', {}),
      ('one seed', 'circle', 'white', _RING),
      (
          'published (Table A6), whisker: dispersion as printed',
          'diamond',
          'white',
          {'color': style.MUTED, 'width': 2},
      ),
  )
  for name, symbol, colour, line in entries:
    marker = {'symbol': symbol, 'size': 9, 'color': colour, 'line': line}
    figure.add_trace(
        go.Scatter(x=[None], y=[None], mode='markers', marker=marker, name=name)
    )


def _name_missing(figure, reason, x, column):
  figure.add_annotation(
      x=x,
      y=0.02,
      text=reason,
      textangle=-90,
      yanchor='bottom',
      showarrow=False,
      font={'color': style.MUTED},
      row=1,
      col=column,
  )


def _caption(frame, table, left_out):
  """Returns the lines below the figure: scale, and whatever is missing."""
  lines = [
      f'Ours: {style.scale_note(frame)}.',
      'Published: M = 8, K = 2; the paper tabulates no value for'
      ' non-compositional support.',
  ]
  trained = frame.groupby(list(CELL))['seed'].nunique()
  for cell, num_seeds in table.set_index(list(CELL))['num_seeds'].items():
    if 0 < num_seeds < trained[cell]:
      lines.append(
          f'{" / ".join(cell)}: {num_seeds} of {trained[cell]} seeds; the'
          ' others have no OOD tasks.'
      )
  for run_id, cell in left_out.items():
    lines.append(f'Not shown: {run_id}, another run of {" / ".join(cell)}.')
  return lines


def _lay_out(figure, caption):
  figure.update_annotations(font={'size': 14})
  figure.update_xaxes(
      tickvals=list(range(len(style.MODELS))),
      ticktext=[
          style.MODEL_NAMES[model].replace(' ', '<br>')
          for model in style.MODELS
      ],
      range=[-0.6, len(style.MODELS) - 0.4],
      showgrid=False,
      ticks='',
  )
  figure.update_yaxes(range=[0, 1], dtick=0.2)
  figure.update_yaxes(ticks='', col=2)
  figure.update_yaxes(
      title_text='OOD accuracy (fraction of query samples)', col=1
  )
  figure.add_annotation(
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
  bottom = 80 + 17 * len(caption)
  figure.update_layout(
      template=style.TEMPLATE,
      title={'text': TITLE, 'y': 1, 'yanchor': 'top', 'pad': {'t': 18}},
      legend={'orientation': 'h', 'x': 0, 'y': 1.1, 'yanchor': 'bottom'},
      width=920,
      height=390 + bottom,
      margin={'l': 80, 'r': 30, 't': 95, 'b': bottom},
      barmode='overlay',
  )
