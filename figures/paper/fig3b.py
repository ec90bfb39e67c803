"""Figure 3B: which models solve module combinations never seen in training?

OOD accuracy of the four models on the hyperteacher, for compositional and
non-compositional support. The published values are those of Table A6 (M = 8,
K = 2), which has none for non-compositional support.
"""

from collections.abc import Mapping
import math
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from figures.library import data
from figures.library import reference
from figures.paper import model_bars
from figures.plotting import bars
from figures.plotting import stats
from figures.plotting import style

EXPERIMENT = 'fig3b'
TITLE = 'Figure 3B: accuracy on module combinations never seen in training'
SUPPORTS = ('random', 'non_compositional')
CELL = model_bars.CELL


def draw(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the figure and the table of what it shows."""
  frame, left_out = data.select_conditions(library.values(EXPERIMENT), CELL)
  table = make_table(frame)
  panels = {
      style.SUPPORT_NAMES[support]: [
          _bar(frame, model, support) for model in _models(frame)
      ]
      for support in SUPPORTS
  }
  figure = bars.draw(
      panels,
      title=TITLE,
      y_title='OOD accuracy (fraction of query samples)',
      y_range=(0, 1),
      caption=_caption(frame, table, left_out),
      beside_name='published (Table A6), whisker: dispersion as printed',
  )
  return figure, table


def make_table(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns a row per model and support, missing runs included.

  Accuracies are fractions of query samples at the last step, 'ood_best' at
  the lowest validation loss; `_mean` and `_se` are over seeds. The difference
  from the published value is given at the published scale only.
  """
  splits = {'test': ('test', 'last'), 'ood': ('ood', 'last')}
  splits['ood_best'] = ('ood', 'best_validation')
  present = set(frame['split'])
  for name in sorted(n for n in present if n.startswith('ood_k')):
    splits[name] = (name, 'last')
  return pd.DataFrame([
      _table_row(frame, splits, model, support)
      for support in SUPPORTS
      for model in _models(frame)
  ])


def _models(frame: pd.DataFrame) -> list[str]:
  """Returns the paper's models, run or not, and others that were run."""
  return style.sort_models([*style.MODELS, *frame['model.name']])


def _table_row(
    frame: pd.DataFrame,
    splits: Mapping[str, tuple[str, str]],
    model: str,
    support: str,
) -> dict[str, Any]:
  cell = model_bars.cell(model, support)
  runs = data.rows(frame, cell)
  row: dict[str, Any] = {'model': model, 'task_support': support}
  for name, (split, kind) in splits.items():
    estimate = stats.mean(data.values(frame, cell, split, kind=kind))
    row[f'{name}_mean'] = estimate.value
    row[f'{name}_se'] = estimate.standard_error
  ood = stats.mean(data.values(frame, cell, 'ood'))
  published = reference.published_accuracy(EXPERIMENT, cell, 'ood')
  mean, deviation = published or (math.nan, math.nan)
  at_scale = len(runs) and all(runs['published_scale'])
  row['num_seeds'] = ood.num_seeds
  row['preset'] = ', '.join(runs['preset'].unique())
  row['published_ood'] = mean
  row['published_std'] = deviation
  row['difference_in_published_std'] = (
      (ood.value - mean) / deviation if at_scale else math.nan
  )
  return row


def _bar(frame: pd.DataFrame, model: str, support: str) -> bars.Bar:
  cell = model_bars.cell(model, support)
  return bars.Bar(
      label=model_bars.label(model),
      colour=style.COLOURS[model],
      seeds=data.values(frame, cell, 'ood'),
      missing=(
          'no finished run' if data.rows(frame, cell).empty else 'no OOD tasks'
      ),
      beside=reference.published_accuracy(EXPERIMENT, cell, 'ood'),
  )


def _caption(
    frame: pd.DataFrame,
    table: pd.DataFrame,
    left_out: Mapping[str, tuple],
) -> list[str]:
  """Returns the lines below the figure: scale, and whatever is missing."""
  lines = [
      f'Ours: {style.scale_note(frame, CELL)}.',
      (
          'Published: M = 8, K = 2; the paper tabulates no value for'
          ' non-compositional support.'
      ),
  ]
  for row in table.to_dict('records'):
    cell = model_bars.cell(row['model'], row['task_support'])
    trained = data.rows(frame, cell)['seed'].nunique()
    if 0 < row['num_seeds'] < trained:
      lines.append(
          f'{" / ".join(cell.values())}: {row["num_seeds"]} of {trained} seeds;'
          ' the others have no OOD tasks.'
      )
  return lines + style.left_out_notes(left_out)
