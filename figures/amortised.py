"""Beyond the paper: gradient descent against a forward pass, and both.

Hypernetworks whose embeddings are found by ten gradient steps, predicted from
the support set by an encoder, or predicted and then adapted by a few steps:
accuracy on OOD tasks, how well their modules can be decoded from the
embeddings, and what inferring one task costs.
"""

import itertools
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly import subplots

from figures import data
from figures import inference_cost
from figures import layout
from figures import stats
from figures import style

EXPERIMENT = 'amortised'
TITLE = 'Beyond the paper: amortised inference on the hyperteacher'
MODELS = style.HYPERNETWORKS
SUPPORTS = ('random', 'non_compositional')
# How a task is inferred -> name, what the model's is preceded by, inner steps.
INFERENCE = {
    'gradient': ('10 gradient<br>steps', '', 10),
    'amortised': ('predicted', 'amortised_', 0),
    'combined': ('predicted,<br>then 3 steps', 'amortised_', 3),
}
CELL = ('model.name', 'model.inner.num_steps', 'task.task_support')
_METRICS = {
    'test': ('test', 'accuracy'),
    'ood': ('ood', 'accuracy'),
    'r2': ('ood', 'r2'),
    'r2_exact': ('ood', 'r2_exact'),
}
_PANELS = {
    'ood': 'OOD accuracy',
    'r2': 'R² of decoded latents (OOD)',
    'cost': 'CPU time of inference per task, ms',
}
_SYMBOLS = {'random': 'circle', 'non_compositional': 'circle-open'}
_SPREAD = 0.17  # Between two marks at a tick.


def make_cell(inference: str, model: str, support: str) -> dict[str, Any]:
  """Returns the cell of a way of inference, a hypernetwork and a support."""
  _, prefix, num_steps = INFERENCE[inference]
  return dict(zip(CELL, (f'{prefix}{model}', num_steps, support)))


def draw(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the figure and the table of what it shows."""
  frame, left_out = data.select_conditions(library.values(EXPERIMENT), CELL)
  table = make_table(frame)
  figure = subplots.make_subplots(
      rows=1,
      cols=len(_PANELS),
      horizontal_spacing=0.06,
      subplot_titles=list(_PANELS.values()),
  )
  for column, measure in enumerate(_PANELS, start=1):
    for mark in _marks(table, measure):
      figure.add_trace(mark, row=1, col=column)
    for x in _gaps(table, measure):
      layout.name_missing(figure, 'not measured', x, 1, column)
  figure.update_annotations(font={'size': 14})
  figure.update_xaxes(
      tickvals=list(range(len(INFERENCE))),
      ticktext=[name for name, _, _ in INFERENCE.values()],
      range=[-0.6, len(INFERENCE) - 0.4],
      showgrid=False,
  )
  figure.update_yaxes(range=[0, 1], dtick=0.2, col=1)
  figure.update_yaxes(type='log', col=len(_PANELS))
  _explain(figure)
  layout.finish(
      figure, title=TITLE, caption=_caption(frame, table, left_out)
  )
  return figure, table


def make_table(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns a row per inference, hypernetwork and support.

  `_mean` and `_se` are over seeds, at the last step. 'cost' is the CPU time in
  ms of inferring a task among 32, 'cost_alone' that of a task on its own; they
  do not depend on the support.
  """
  cost = inference_cost.load().set_index(
      ['model', 'num_steps', 'tasks_at_once']
  )['cpu_ms_per_task']
  rows = []
  for support, inference, model in itertools.product(
      SUPPORTS, INFERENCE, MODELS
  ):
    cell = make_cell(inference, model, support)
    row = {'inference': inference, 'model': model, 'task_support': support}
    for name, (split, metric) in _METRICS.items():
      mean = stats.mean(data.values(frame, cell, split, metric=metric))
      row[f'{name}_mean'] = mean.value
      row[f'{name}_se'] = mean.standard_error
    row['num_seeds'] = data.rows(frame, cell)['seed'].nunique()
    timed = cell['model.name'], cell['model.inner.num_steps']
    for name, num_tasks in (('cost', 32), ('cost_alone', 1)):
      row[name] = cost.get((*timed, num_tasks))
    rows.append(row)
  return pd.DataFrame(rows)


def _places(table, measure):
  """Yields the rows to be shown, and where they stand."""
  shown = SUPPORTS if measure != 'cost' else SUPPORTS[:1]
  marks = list(itertools.product(MODELS, shown))
  for index, (model, support) in enumerate(marks):
    rows = table[
        (table['model'] == model) & (table['task_support'] == support)
    ]
    shift = _SPREAD * (index - (len(marks) - 1) / 2)
    yield model, support, rows, [x + shift for x in range(len(rows))]


def _marks(table, measure):
  for model, support, rows, places in _places(table, measure):
    name = f'{style.MODEL_NAMES[model]}, {style.SUPPORT_NAMES[support].lower()}'
    mean, error = f'{measure}_mean', f'{measure}_se'
    if measure == 'cost':
      name, mean, error = style.MODEL_NAMES[model], 'cost', None
    yield go.Scatter(
        x=places,
        y=rows[mean],
        error_y={'array': rows[error]} if error else None,
        mode='markers',
        showlegend=False,
        marker={
            'color': style.COLOURS[model],
            'symbol': _SYMBOLS[support],
            'size': 10,
            'line': {'width': 2, 'color': style.COLOURS[model]},
        },
        hovertemplate=f'{name}<br>%{{y:.3f}}<extra></extra>',
    )


def _gaps(table, measure):
  """Returns where a value is missing."""
  column = 'cost' if measure == 'cost' else f'{measure}_mean'
  return [
      x
      for _, _, rows, places in _places(table, measure)
      for x, value in zip(places, rows[column])
      if pd.isna(value)
  ]


def _explain(figure):
  entries = [
      (style.MODEL_NAMES[model], 'circle', style.COLOURS[model], {})
      for model in MODELS
  ]
  line = {'color': style.MUTED, 'width': 2}
  for support, symbol in _SYMBOLS.items():
    name = style.SUPPORT_NAMES[support].lower()
    entries.append((name, symbol, style.MUTED, line))
  layout.explain(figure, entries)


def _caption(frame, table, left_out):
  """Returns the lines below the figure: scale, cost, whatever is missing."""
  missing = table[table['num_seeds'] == 0]
  timed = inference_cost.load().iloc[0]
  lines = [
      f'Ours: {style.scale_note(frame, CELL)}. Whiskers: standard error over'
      ' seeds.',
      'CPU time: from support set to fast parameters, 32 tasks at once,'
      f' median of {timed["rounds"]} rounds on {timed["processor"]}.',
  ]
  if 0 < len(missing) < len(table):
    lines.append(f'{len(missing)} of {len(table)} runs are missing.')
  return lines + style.left_out_notes(left_out)
