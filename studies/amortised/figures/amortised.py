"""Beyond the paper: inference by gradients, by a forward pass, or both.

Embeddings of hypernetworks are found by ten gradient steps, predicted from the
support set by an encoder, or predicted and then adapted by a few steps.
Panels: accuracy on OOD tasks, how well modules can be decoded from embeddings,
and the cost of inferring one task.
"""

from collections.abc import Iterator
import itertools
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.figures.extensions import inference_cost
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'amortised'
TITLE = 'Beyond the paper: amortised inference on the hyperteacher'
MODELS = style.HYPERNETWORKS
SUPPORTS = ('random', 'non_compositional')
# Way of inference -> label, prefix of the model's name, inner steps.
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
_SYMBOLS = {
    'random': 'circle',
    'non_compositional': 'circle-open',
    'laptop': 'circle',
    'paper': 'diamond',
}
_SPREAD = 0.17  # Between two marks at a tick.


def make_cell(inference: str, model: str, support: str) -> dict[str, Any]:
  """Returns the cell of a way of inference, a hypernetwork and a support."""
  _, prefix, num_steps = INFERENCE[inference]
  return dict(zip(CELL, (f'{prefix}{model}', num_steps, support)))


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of what it shows."""
  found = cells.read(library, EXPERIMENT, CELL)
  table = make_table(found.frame)
  figure = layout.make_row(_PANELS.values(), horizontal_spacing=0.06)
  for column, measure in enumerate(_PANELS, start=1):
    for trace in _traces(table, measure):
      figure.add_trace(trace, row=1, col=column)
      for x, y in zip(trace.x, trace.y):
        if pd.isna(y):
          layout.name_missing(figure, 'not measured', x, column)
  figure.update_annotations(font={'size': 14})
  figure.update_xaxes(
      tickvals=list(range(len(INFERENCE))),
      ticktext=[name for name, _, _ in INFERENCE.values()],
      range=[-0.6, len(INFERENCE) - 0.4],
      showgrid=False,
  )
  figure.update_yaxes(range=[0, 1], dtick=0.2, col=1)
  figure.update_yaxes(rangemode='tozero', col=2)
  figure.update_yaxes(type='log', dtick=1, col=3)
  _explain(figure)
  layout.finish(figure, title=TITLE, caption=_caption(found))
  return figure, table


def make_table(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns a row per inference, hypernetwork and support.

  `_mean` and `_se` are over seeds, at the last step. 'cost_laptop' and
  'cost_paper' are CPU times in ms per task at these scales, for 32 tasks at
  once; they do not depend on the support.
  """
  rows = []
  for support, inference, model in itertools.product(
      SUPPORTS, INFERENCE, MODELS
  ):
    cell = make_cell(inference, model, support)
    row: dict[str, Any] = {
        'inference': inference,
        'model': model,
        'task_support': support,
    }
    for name, (split, metric) in _METRICS.items():
      values = pick.values(frame, cell, split, metric=metric)
      row |= stats.mean(values).columns(name)
    row['num_seeds'] = pick.rows(frame, cell)['seed'].nunique()
    for preset in inference_cost.CALLS:
      row[f'cost_{preset}'] = inference_cost.find(preset, cell)
    rows.append(row)
  return pd.DataFrame(rows)


def _traces(table: pd.DataFrame, measure: str) -> Iterator[Any]:
  """Yields the marks of each hypernetwork and support, or scale of a cost."""
  is_cost = measure == 'cost'
  kinds = inference_cost.CALLS if is_cost else SUPPORTS
  pairs = list(itertools.product(MODELS, kinds))
  for index, (model, kind) in enumerate(pairs):
    shift = _SPREAD * (index - (len(pairs) - 1) / 2)
    support = SUPPORTS[0] if is_cost else kind
    rows = pick.rows(table, {'model': model, 'task_support': support})
    name = f'{kind} scale' if is_cost else style.SUPPORT_NAMES[kind].lower()
    colour = style.COLOURS[model]
    yield go.Scatter(
        x=[tick + shift for tick in range(len(rows))],
        y=rows[f'cost_{kind}' if is_cost else f'{measure}_mean'],
        error_y=None if is_cost else {'array': rows[f'{measure}_se']},
        mode='markers',
        showlegend=False,
        marker={
            'color': colour,
            'symbol': _SYMBOLS[kind],
            'size': 10,
            'line': {'width': 2, 'color': colour},
        },
        hovertemplate=(
            f'{style.MODEL_NAMES[model]}, {name}<br>%{{y:.3f}}<extra></extra>'
        ),
    )


def _explain(figure: go.Figure) -> None:
  """Adds models and supports to the legend."""
  entries = [
      (style.MODEL_NAMES[model], 'circle', style.COLOURS[model], {})
      for model in MODELS
  ]
  line = {'color': style.MUTED, 'width': 2}
  for support in SUPPORTS:
    name = style.SUPPORT_NAMES[support].lower()
    entries.append((name, _SYMBOLS[support], style.MUTED, line))
  layout.explain(figure, entries)


def _caption(found: cells.Cells) -> list[str]:
  """Returns the lines below the figure: runs and cost."""
  timed = inference_cost.load().iloc[0]
  return found.caption(
      'Whiskers: standard error over seeds.',
      'CPU time per task from support set to fast parameters, with'
      f' {inference_cost.NUM_TASKS} tasks at once: the smallest of'
      f' {timed["rounds"]} rounds on {timed["processor"]}.',
      'Circles: laptop scale. Diamonds: published scale, where only the'
      ' time was measured.',
  )
