"""Tables A2 to A8: accuracy on every split, beside the published values.

Shows every preset that has runs. At other scales than the paper's, compare
directions, not values; the caption says so.
"""

from collections.abc import Iterator, Mapping
import functools
import math
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.paper import agreement
from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = agreement.EXPERIMENT
CELL = agreement.CELL
_TABLES = {  # Table -> M, K.
    **{'A2': (4, 1), 'A3': (4, 2), 'A4': (4, 4)},
    **{'A5': (8, 1), 'A6': (8, 2), 'A7': (8, 4), 'A8': (8, 8)},
}
_SYMBOLS = {
    'paper': 'circle',
    'desktop': 'square-open',
    'laptop': 'circle-open',
    'smoke': 'x-thin-open',
}


def _draw(
    library: data.Library, num_modules: int, max_active: int
) -> cells.Drawn:
  frame = library.every_preset(EXPERIMENT)
  size = {'task.num_modules': num_modules, 'task.max_active': max_active}
  frame, left_out = pick.select_conditions(pick.rows(frame, size), CELL)
  table = pd.DataFrame([
      row
      for split in agreement.SPLITS
      for model in style.MODELS
      for row in _rows(frame, {'model.name': model, **size}, split)
  ])
  # Without the splits that have no number, ours or published.
  numbers = table.groupby('split')[['ours_mean', 'published']].count()
  reported = numbers.index[numbers.sum(axis=1) > 0]
  table = table[table['split'].isin(reported)].reset_index(drop=True)
  caption = _caption(frame, table, size) + cells.excluded(frame, left_out)
  judged = table['agrees'].dropna()
  if len(judged):
    caption.append(
        f'{sum(judged)} of {len(judged)} published values agree within two'
        ' published deviations or two points.'
    )
  figure = _figure(table)
  layout.finish(figure, caption=caption, plot_height=420)
  return figure, table


def _rows(
    frame: pd.DataFrame, cell: Mapping[str, Any], split: str
) -> Iterator[dict[str, Any]]:
  """Yields a row per preset, or a row without numbers of ours."""
  published = reference.published_accuracy(EXPERIMENT, cell, split)
  value, dispersion = published or (math.nan, math.nan)
  presets = pick.rows(frame, cell)['preset'].unique()
  for preset in presets if len(presets) else [None]:
    runs = pick.rows(frame, {**cell, 'preset': preset}) if preset else frame[:0]
    seeds = pick.values(runs, cell, split)
    mean = stats.mean(seeds)
    best = stats.mean(pick.values(runs, cell, split, kind='best_validation'))
    at_scale = len(runs) and all(runs['published_scale'])
    yield {
        'split': split,
        'model': cell['model.name'],
        'preset': preset or 'no run',
        **mean.columns('ours'),
        'ours_std': seeds.std(),
        **best.columns('ours_at_best_validation'),
        'num_seeds': mean.num_seeds,
        'published': value,
        'published_dispersion': dispersion,
        'difference_in_published_std': (
            (mean.value - value) / dispersion if at_scale else math.nan
        ),
        'agrees': (
            reference.agrees(mean.value, published)
            if at_scale and published and mean.num_seeds
            else None
        ),
    }


def _figure(table: pd.DataFrame) -> go.Figure:
  figure = layout.make_row(
      [style.MODEL_NAMES[model] for model in style.MODELS],
      shared_yaxes=True,
      horizontal_spacing=0.02,
  )
  figure.update_annotations(font={'size': 14})
  names = [style.split_name(s) for s in table['split'].unique()]
  for column, model in enumerate(style.MODELS, start=1):
    rows = pick.rows(table, {'model': model})
    for trace in _traces(rows, style.COLOURS[model]):
      figure.add_trace(trace, row=1, col=column)
  figure.update_xaxes(range=[0, 1], dtick=0.5, title_text='accuracy')
  figure.update_yaxes(
      type='category', categoryorder='array', categoryarray=names[::-1]
  )
  line = {'color': style.MUTED, 'width': 2}
  entries = [('published, whisker: dispersion', 'diamond', 'white', line)] + [
      (f'ours, {preset} scale: standard error', _SYMBOLS[preset], style.INK, {})
      for preset in table['preset'].unique()
      if preset in _SYMBOLS
  ]
  layout.explain(figure, entries)
  return figure


def _traces(rows: pd.DataFrame, colour: str) -> Iterator[go.Scatter]:
  """Yields the published values, and ours by preset."""
  yield _points(
      rows.dropna(subset='published').drop_duplicates('split'),
      'published',
      'published_dispersion',
      'published',
      colour,
      symbol='diamond',
      size=9,
      color='white',
      line={'color': colour, 'width': 2},
  )
  for preset, ours in rows.dropna(subset='ours_mean').groupby('preset'):
    marker = {'symbol': _SYMBOLS[str(preset)], 'size': 8, 'color': colour}
    name = f'ours, {preset} scale'
    yield _points(ours, 'ours_mean', 'ours_se', name, colour, **marker)


def _points(
    rows: pd.DataFrame,
    value: str,
    error: str,
    name: str,
    colour: str,
    **marker: Any,
) -> go.Scatter:
  hover = f'{name}: %{{x:.3f}} ± %{{customdata:.3f}}<extra></extra>'
  return go.Scatter(
      x=rows[value],
      y=[style.split_name(split) for split in rows['split']],
      error_x={'array': rows[error], 'color': colour, 'thickness': 1.5},
      customdata=rows[error],
      mode='markers',
      marker=marker,
      showlegend=False,
      cliponaxis=False,
      hovertemplate=f'%{{y}}<br>{hover}',
  )


def _caption(
    frame: pd.DataFrame, table: pd.DataFrame, size: Mapping[str, int]
) -> list[str]:
  """Returns a line per preset, and lines that name what is missing."""
  lines = [
      f'Ours: {style.scale_note(rows, CELL)}.'
      for _, rows in frame.groupby('preset', sort=False)
  ] or ['Ours: no finished runs.']
  # The laptop preset is thinned.
  runs = reference.find_runs(EXPERIMENT, 'laptop', size)
  in_laptop = [run.config['model']['name'] for run in runs]
  absent = table.loc[table['preset'] == 'no run', 'model'].unique()
  for is_described, note in (
      (True, 'No finished run of'),
      (False, 'Not in the laptop preset:'),
  ):
    names = [
        style.MODEL_NAMES[model]
        for model in absent
        if (model in in_laptop) == is_described
    ]
    if names:
      lines.append(f'{note} {", ".join(names)}.')
  if set(frame['preset']) - {'paper'}:
    lines.append(
        "At other scales than the paper's, compare directions, not values."
    )
  is_empty = (table['preset'] != 'no run') & (table['num_seeds'] == 0)
  empty = table.loc[is_empty, 'split'].unique()
  if len(empty):
    names = ', '.join(style.split_name(split) for split in empty)
    lines.append(f'No such tasks: {names}; the authors repeat a single one.')
  return lines


FIGURES = {
    f'table_{name.lower()}': described.Figure(
        f'Table {name}: accuracy, M = {m}, K = {k}',
        (EXPERIMENT,),
        functools.partial(_draw, num_modules=m, max_active=k),
    )
    for name, (m, k) in _TABLES.items()
}
