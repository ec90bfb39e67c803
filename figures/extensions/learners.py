"""All learners on one hyperteacher: docs/ways_to_recompose.md.

A picture, and the page's table. All see tasks of Figure 3B's teacher at laptop
scale, on compositional support. Numbers come from finished runs, sizes from the
configs. Studies add their learners.
"""

from collections.abc import Iterator, Mapping, Sequence
import functools
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.extensions import inference_cost
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.figures.plotting import tables

TITLE = 'Ways to recompose: all learners on one hyperteacher'
_MISSING = 'not trained yet'
_NOTHING = '\N{EN DASH}'


class Learner(NamedTuple):
  """One row.

  Attributes:
    name: its name in the table.
    infers: how it gets to know the task.
    experiment: whose runs it reads.
    fields: path in the config -> value, of its first described run.
    colour: the same for all learners that infer a task in one way.
    decoding: the metric of decoding modules of new combinations.
  """

  name: str
  infers: str
  experiment: str
  fields: Mapping[str, Any]
  colour: str
  decoding: str = 'r2'


_LINEAR, _NONLINEAR = style.HYPERNETWORKS
_STEPS = '10 gradient steps'
_PAPER = tuple(
    Learner(name, infers, 'fig3b', {'model.name': model}, style.COLOURS[colour])
    for model, name, infers, colour in (
        (_LINEAR, 'linear hypernetwork', _STEPS, _NONLINEAR),
        (_NONLINEAR, 'nonlinear hypernetwork', _STEPS, _NONLINEAR),
        ('maml', 'MAML', _STEPS, 'maml'),
        ('anil', 'ANIL', '100 steps, readout', 'maml'),
    )
)
# Measure -> symbol and name in the legend.
_ACCURACIES = {
    'seen': ('circle-open', 'seen combinations'),
    'new': ('circle', 'new combinations'),
    'held_out': ('diamond', 'new ones, a module held out'),
}
_PANELS = {
    'Accuracy': tuple(_ACCURACIES),
    'R² of decoding': ('decoding',),
    'CPU ms per task': ('cost',),
}


@functools.cache
def known() -> tuple[Learner, ...]:
  """Returns all learners: the paper's, then those of the studies."""
  named = [study.learners for study in plugins.studies() if study.learners]
  return (*_PAPER, *(row for name in named for row in plugins.resolve(name)))


def draw(library: data.Library) -> cells.Drawn:
  """Returns the picture and the numbers that it shows."""
  numbers = measure(library)
  figure = layout.make_row(
      _PANELS,
      shared_yaxes=True,
      horizontal_spacing=0.03,
      column_widths=[0.5, 0.25, 0.25],
  )
  for column, measures in enumerate(_PANELS.values(), start=1):
    for trace in _traces(numbers, measures):
      figure.add_trace(trace, row=1, col=column)
    if numbers[f'{measures[0]}_mean'].isna().all():
      layout.name_empty(figure, 'no finished run', 1, column)
  names = numbers['learner'] + ', ' + numbers['infers']
  name_rows(figure, [*names])
  figure.update_xaxes(range=[0.35, 0.9], dtick=0.1, col=1)
  figure.update_xaxes(range=[0, 1], dtick=0.25, col=2)
  figure.update_xaxes(type='log', dtick=1, col=3)
  line = {'color': style.INK, 'width': 2}
  layout.explain(
      figure,
      [(name, mark, style.INK, line) for mark, name in _ACCURACIES.values()],
  )
  missing = names[numbers['new_mean'].isna()]
  layout.finish(
      figure,
      title=TITLE,
      plot_height=480,
      caption=[
          (
              "Ours: laptop scale, Figure 3B's teacher, M = 8, K = 3. Whiskers:"
              ' standard error over seeds.'
          ),
          (
              'Blue: gradients, hypernetwork; orange: gradients, no'
              ' hypernetwork; pink: forward pass; green: in context; black:'
              ' given.'
          ),
          (
              'R² of decoding modules of new combinations. CPU time of'
              f' inference, {inference_cost.NUM_TASKS} tasks at once.'
          ),
          *([f'No run: {"; ".join(missing)}.'] if len(missing) else []),
      ],
  )
  return figure, numbers


def _traces(
    numbers: pd.DataFrame, measures: tuple[str, ...]
) -> Iterator[go.Scatter]:
  for name in measures:
    symbol, label = _ACCURACIES.get(name, ('circle', ''))
    yield mark(known(), numbers, name, symbol, f' {label}')


def mark(
    learners: Sequence[Learner],
    numbers: pd.DataFrame,
    measure_: str,
    symbol: str,
    label: str = '',
) -> go.Scatter:
  """Returns a mark per learner, one below the other, with whiskers.

  Args:
    learners: one per row of the table.
    numbers: has 'learner', and `_mean` and perhaps `_se` of the measure.
    measure_: to draw.
    symbol: of the marks.
    label: behind the value on hover.
  """
  colours = [learner.colour for learner in learners]
  return go.Scatter(
      x=numbers[f'{measure_}_mean'],
      y=list(range(len(numbers))),
      error_x={
          'array': numbers.get(f'{measure_}_se'),
          'color': style.MUTED,
          'thickness': 1.2,
      },
      mode='markers',
      showlegend=False,
      marker={
          'color': colours,
          'symbol': symbol,
          'size': 10,
          'line': {'width': 2, 'color': colours},
      },
      customdata=numbers['learner'],
      hovertemplate=f'%{{customdata}}: %{{x:.3g}}{label}<extra></extra>',
  )


def name_rows(figure: go.Figure, names: Sequence[str]) -> None:
  """Labels the rows of marks, the first at the top."""
  figure.update_yaxes(
      tickvals=list(range(len(names))),
      ticktext=list(names),
      range=[len(names) - 0.5, -0.5],
  )


def table(library: data.Library) -> pd.DataFrame:
  """Returns a row per learner, all texts."""
  return pd.DataFrame([_texts(row) for _, row in measure(library).iterrows()])


def _texts(row: pd.Series) -> dict[str, str]:
  def text(name: str) -> str:
    return tables.with_error(row[f'{name}_mean'], row[f'{name}_se'])

  return {
      'learner': row['learner'],
      'the task is inferred by': row['infers'],
      'seen': text('seen') or _MISSING,
      'new': text('new') or _MISSING,
      'module held out': text('held_out') or _NOTHING,
      'R² of decoding': text('decoding') or _NOTHING,
      'meta-parameters': f'{row["num_params"]:,}',
      'examples, millions': f'{row["examples"] / 1e6:.1f}',
      'ms per task': f'{row["cost_mean"]:.3f}',
  }


def measure(library: data.Library) -> pd.DataFrame:
  """Returns a row per learner: `_mean` and `_se` over seeds, and sizes."""
  return pd.DataFrame([_row(library, learner) for learner in known()])


def _row(library: data.Library, learner: Learner) -> dict[str, Any]:
  frame = library.values(learner.experiment, 'laptop')
  run = _run(learner, 'random')
  held_out = _run(learner, 'non_compositional')
  task, training = run.config['task'], run.config['training']
  tasks = training['num_outer_steps'] * training['meta_batch_size']
  examples = task['num_support'] + task['num_query']
  if task.get('encoding'):
    examples = task['num_query']  # The others are not used.
  row: dict[str, Any] = {'learner': learner.name, 'infers': learner.infers}
  for name, of_run, split, metric in (
      ('seen', run, 'test', 'accuracy'),
      ('new', run, 'ood', 'accuracy'),
      ('held_out', held_out, 'ood', 'accuracy'),
      ('decoding', run, 'ood', learner.decoding),
  ):
    row |= _estimate(frame, of_run, split, metric).columns(name)
  return row | {
      'num_params': build.build(run.config, 1).system.num_params[0],
      'examples': tasks * examples,
      'cost_mean': inference_cost.find(
          'laptop', inference_cost.describe(run.config)
      ),
      'preset': 'laptop',
  }


def _run(learner: Learner, task_support: str) -> sweeps.Run:
  """Returns the first run of a learner that its config describes."""
  wanted = {'task.task_support': task_support, **learner.fields}
  return reference.find_runs(learner.experiment, 'laptop', wanted)[0]


def _estimate(
    frame: pd.DataFrame, run: sweeps.Run, split: str, metric: str
) -> stats.Estimate:
  """Returns a metric of a run at the last step."""
  cell = {'condition': sweeps.condition(run.config)}
  return stats.mean(pick.values(frame, cell, split, metric=metric))
