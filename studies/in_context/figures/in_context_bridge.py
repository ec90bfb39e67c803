"""Beyond the papers: inference in context, predicted, or by gradients.

All learners know the hyperteacher of Figure 3B and infer the same tasks from
the same support sets. Panels: accuracy with compositional support and without,
how well modules can be decoded, and the cost of inferring one task. Reference
lines are what the best predictor reaches that knows all training functions but
composes no modules (`analysis/reference_lines.py`).
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.extensions import inference_cost
from modular_hyperteacher.figures.extensions import learners
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.studies.in_context.figures import (
    in_context_references,
)

EXPERIMENT = in_context_references.BRIDGE
TITLE = 'In context, predicted, or by gradients: inference on the hyperteacher'
SUPPORTS = ('random', 'non_compositional')
CELL: tuple[str, ...] = (
    'model.name',
    'model.hidden_dim',
    'model.inner.num_steps',
    'task.task_support',
)


def _learner(
    name: str, experiment: str, decoding: str, colour: str, *cell: Any
) -> learners.Learner:
  fields = dict(zip(CELL, cell))
  return learners.Learner(name, '', experiment, fields, colour, decoding)


_LINEAR, _NONLINEAR = style.HYPERNETWORKS
# MAML and ANIL with as many parameters as the hypernetworks.
LEARNERS = (
    *(
        _learner(name, EXPERIMENT, 'decoding_r2', '#009E73', model)
        for name, model in (
            ('transformer', 'transformer'),
            ('transformer, bottleneck', 'hypernetwork_transformer'),
        )
    ),
    *(
        _learner(
            f'{name}, predicted{more}',
            'amortised',
            'r2_exact',
            '#CC79A7',
            *(f'amortised_{name}_hypernetwork', 32, steps),
        )
        for steps, more in ((0, ''), (3, ' + 3 steps'))
        for name in ('linear', 'nonlinear')
    ),
    *(
        _learner(name, 'fig3b', 'r2_exact', style.COLOURS[colour], model, width)
        for name, model, width, colour in (
            ('linear hypernetwork', _LINEAR, 32, _NONLINEAR),
            ('nonlinear hypernetwork', _NONLINEAR, 32, _NONLINEAR),
            ('MAML', 'maml', 218, 'maml'),
            ('ANIL', 'anil', 218, 'maml'),
        )
    ),
)
_SPLITS = {'ood': 'circle', 'test': 'circle-open'}
# Predictor -> label and dash.
_LINES = {
    'mix': ('best mix of training functions', 'dot'),
    'nearest': ('nearest one', 'dashdot'),
    'mean': ('their mean', 'longdash'),
}
_PANELS = {
    'random': 'Accuracy,<br>compositional support',
    'non_compositional': 'Accuracy, non-com-<br>positional support',
    'decoding': 'R² of decoded modules<br>(OOD, compositional)',
    'cost': 'CPU time per task,<br>ms',
}


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of what it shows."""
  selected = {
      experiment: pick.select_conditions(
          library.values(experiment, 'laptop'), CELL
      )
      for experiment in dict.fromkeys(x.experiment for x in LEARNERS)
  }
  frames = {experiment: frame for experiment, (frame, _) in selected.items()}
  excluded = [
      line for found in selected.values() for line in cells.excluded(*found)
  ]
  table = make_table(frames)
  figure = layout.make_row(
      _PANELS.values(), shared_yaxes=True, horizontal_spacing=0.02
  )
  figure.update_annotations(font={'size': 12})
  for column, panel in enumerate(_PANELS, start=1):
    for trace in _traces(table, panel):
      figure.add_trace(trace, row=1, col=column)
    if panel != 'cost' and table[f'{_measure(panel)}_mean'].isna().all():
      layout.name_empty(figure, 'no finished run', 1, column)
  figure.update_layout(shapes=[*_make_lines()])
  learners.name_rows(figure, [learner.name for learner in LEARNERS])
  for column in (1, 2):
    figure.update_xaxes(range=[0, 1], dtick=0.25, col=column)
  lowest = table['decoding_random_mean'].fillna(0).min()
  figure.update_xaxes(range=[min(0, float(lowest)), 1], dtick=0.25, col=3)
  figure.update_xaxes(type='log', dtick=1, exponentformat='power', col=4)
  _explain(figure)
  layout.finish(
      figure,
      title=TITLE,
      caption=[*_caption(frames), *dict.fromkeys(excluded)],
      plot_height=480,
  )
  layout.add_legend_row(figure)
  return figure, table


def make_table(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
  """Returns a row per learner, of means over seeds and standard errors.

  Args:
    frames: experiment -> results, with one condition per cell.
  """
  rows = []
  for learner in LEARNERS:
    frame = frames[learner.experiment]
    row: dict[str, Any] = {'learner': learner.name}
    num_seeds = 0
    wanted = {
        f'{split}_{support}': (support, split, 'accuracy')
        for support in SUPPORTS
        for split in _SPLITS
    } | {
        f'decoding_{support}': (support, 'ood', learner.decoding)
        for support in SUPPORTS
    }
    for name, (support, split, metric) in wanted.items():
      cell = {**learner.fields, 'task.task_support': support}
      mean = stats.mean(pick.values(frame, cell, split, metric=metric))
      row |= mean.columns(name)
      num_seeds = max(num_seeds, mean.num_seeds)
    row['num_seeds'] = num_seeds
    row['preset'] = 'laptop'
    row['cpu_ms_per_task'] = inference_cost.find('laptop', learner.fields)
    rows.append(row)
  return pd.DataFrame(rows)


def _measure(panel: str, split: str = 'ood') -> str:
  return 'decoding_random' if panel == 'decoding' else f'{split}_{panel}'


def _traces(table: pd.DataFrame, panel: str) -> Iterator[go.Scatter]:
  """Yields the marks of a panel: one trace per split."""
  if panel == 'cost':
    cost = table.rename(columns={'cpu_ms_per_task': 'cost_mean'})
    trace = learners.mark(LEARNERS, cost, 'cost', 'circle')
    yield trace.update(error_x=None, cliponaxis=False)
    return
  splits = _SPLITS if panel in SUPPORTS else {'ood': 'circle'}
  for split, symbol in splits.items():
    trace = learners.mark(LEARNERS, table, _measure(panel, split), symbol)
    yield trace.update(cliponaxis=False)


def _make_lines() -> Iterator[dict[str, Any]]:
  """Yields the reference lines of both panels of accuracy."""
  table = in_context_references.load(EXPERIMENT)
  for number, support in enumerate(SUPPORTS, start=1):
    for predictor, (_, dash) in _LINES.items():
      point = {'task_support': support, 'split': 'ood', 'predictor': predictor}
      x = pick.rows(table, point)['accuracy'].mean()
      line = layout.vertical_line(x, number, dash=dash, width=1.5)
      yield {**line, 'layer': 'below'}


def _explain(figure: go.Figure) -> None:
  """Adds splits and reference lines to the legend."""
  line = {'color': style.MUTED, 'width': 2}
  layout.explain(
      figure,
      [
          (style.SPLIT_NAMES[split], symbol, style.MUTED, line)
          for split, symbol in _SPLITS.items()
      ],
  )
  for name, dash in _LINES.values():
    figure.add_trace(
        go.Scatter(
            x=[None],
            y=[None],
            mode='lines',
            name=name,
            line={'color': style.MUTED, 'dash': dash, 'width': 1.5},
        )
    )


def _caption(frames: dict[str, pd.DataFrame]) -> list[str]:
  """Returns the lines below the figure."""
  timed = inference_cost.load().iloc[0]
  lines = [
      f'{experiment}: {style.scale_note(frame, CELL)}.'
      for experiment, frame in frames.items()
  ]
  for experiment, frame in frames.items():
    missing = [
        learner.name
        for learner in LEARNERS
        if learner.experiment == experiment
        and not pick.has_rows(frame, learner.fields)
    ]
    if missing:
      flag = sweeps.config_flag(experiment, 'laptop')
      lines.append(f'No run: {"; ".join(missing)}. {flag} trains all.')
  return [
      *lines,
      (
          'Green: in context. Pink: embeddings predicted from the support set.'
          ' Blue and orange: by gradients.'
      ),
      (
          'Grey: predictors that know all training functions and the target,'
          ' on OOD tasks. The teacher has accuracy 1.'
      ),
      'Whiskers: standard error over seeds.',
      (
          'CPU time from a support set to fast parameters, in context to the'
          f' prediction of one query; {inference_cost.NUM_TASKS} tasks at'
          ' once,'
      ),
      f'the smallest of {timed["rounds"]} rounds on {timed["processor"]}.',
  ]
