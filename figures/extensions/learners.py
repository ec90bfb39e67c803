"""All learners on one hyperteacher: docs/learners.md.

A comparison is a picture and a table. Its learners see tasks of Figure 3B's
teacher. Numbers come from finished runs, sizes from the configs. Studies add
their learners, and draw comparisons of some of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
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

TITLE = 'Which learners recompose modules?'
SUPPORT = 'task.task_support'


class Kind(NamedTuple):
  """A way to infer tasks, as the legend has it."""

  name: str
  colour: str


class Learner(NamedTuple):
  """One row.

  Attributes:
    name: its name in the table.
    infers: how it gets to know the task.
    experiment: whose runs it reads.
    fields: path in the config -> value, of its first described run.
    kind: the same for all learners that infer a task in one way.
    decoding: the metric of decoding modules of new combinations.
  """

  name: str
  infers: str
  experiment: str
  fields: Mapping[str, Any]
  kind: Kind
  decoding: str = 'r2_exact'

  def run(self, preset: str, task_support: str = 'random') -> sweeps.Run:
    """Returns its first run that the config describes."""
    wanted = {**self.fields, SUPPORT: task_support}
    return reference.find_runs(self.experiment, preset, wanted)[0]

  def cell(self, grid: cells.Cells, task_support: str) -> cells.Cell:
    """Returns its cell in a grid, as its described run has it."""
    config = self.run(grid.preset, task_support).config
    fields = dict(sweeps.flatten(config))
    return {column: fields.get(column) for column in grid.cells[0]}


class Line(NamedTuple):
  """A reference line."""

  name: str
  dash: str
  compositional: float  # Accuracy.
  held_out: float  # Accuracy if a module never occurs in training.


class Comparison(NamedTuple):
  """A figure that compares learners.

  Attributes:
    rows: returns the learners, from top to bottom.
    preset: the preset of the runs that count; None chooses it as other figures
      do.
    scales: presets whose inference was timed.
    lines: returns reference lines.
    notes: further lines of the caption.
  """

  rows: Callable[[], Sequence[Learner]]
  preset: str | None = 'laptop'
  scales: tuple[str, ...] = ('laptop',)
  lines: Callable[[], Sequence[Line]] = tuple
  notes: tuple[str, ...] = ()

  def panels(self) -> dict[str, dict[str, str]]:
    """Returns title -> measure -> symbol."""
    return {
        'Accuracy,<br>all modules trained': {
            'seen': 'circle-open',
            'new': 'circle',
        },
        'Accuracy,<br>a module held out': {
            'seen_held_out': 'diamond-open',
            'new_held_out': 'diamond',
        },
        'R² of decoding,<br>new combinations': {
            'decoding': 'circle',
            'decoding_held_out': 'diamond',
        },
        'CPU time per task,<br>ms': {
            f'cost_{scale}': _SCALES[scale] for scale in self.scales
        },
    }


_LINEAR, _NONLINEAR = style.HYPERNETWORKS
_MODULAR = Kind('gradients, hypernetwork', style.COLOURS[_NONLINEAR])
GRADIENTS = Kind('gradients, no hypernetwork', style.COLOURS['maml'])
_STEPS, _READOUT = '10 gradient steps', '100 steps, readout'
_AS_LARGE = {'model.hidden_dim': 218}  # As many parameters as hypernetworks.
# Those of the paper.
PAPER = tuple(
    Learner(name, infers, 'fig3b', {'model.name': model, **fields}, kind)
    for name, infers, model, fields, kind in (
        ('linear hypernetwork', _STEPS, _LINEAR, {}, _MODULAR),
        ('nonlinear hypernetwork', _STEPS, _NONLINEAR, {}, _MODULAR),
        ('MAML', _STEPS, 'maml', {}, GRADIENTS),
        ('MAML, 218 wide', _STEPS, 'maml', _AS_LARGE, GRADIENTS),
        ('ANIL', _READOUT, 'anil', {}, GRADIENTS),
        ('ANIL, 218 wide', _READOUT, 'anil', _AS_LARGE, GRADIENTS),
    )
)
# Task support -> ending of the columns.
_SUPPORTS = {'random': '', 'non_compositional': '_held_out'}
_SYMBOLS = {
    'circle-open': 'seen combinations',
    'circle': 'new combinations',
    'diamond-open': 'seen, a module held out',
    'diamond': 'new, a module held out',
}
# Preset -> symbol of the time of inference.
_SCALES = {'laptop': 'circle', 'paper': 'square'}


@functools.cache
def known() -> tuple[Learner, ...]:
  """Returns all learners: the paper's, then those of the studies."""
  named = [study.learners for study in plugins.studies() if study.learners]
  return (*PAPER, *(row for name in named for row in plugins.resolve(name)))


WAYS = Comparison(known)
_Grids = dict[str, cells.Cells]  # By experiment.


def _read(library: data.Library, comparison: Comparison) -> _Grids:
  """Returns experiment -> the runs of its learners."""
  read = {}
  for experiment in dict.fromkeys(row.experiment for row in comparison.rows()):
    rows = [row for row in comparison.rows() if row.experiment == experiment]
    frame = library.values(experiment, comparison.preset)
    columns = {name: None for row in rows for name in (*row.fields, SUPPORT)}
    grid = cells.select(experiment, frame, list(columns))
    shown = [row.cell(grid, s) for row in rows for s in _SUPPORTS]
    frame = pd.concat([pick.rows(grid.frame, cell) for cell in shown])
    read[experiment] = grid._replace(
        frame=frame, cells=shown, num_described=len(shown)
    )
  return read


def _measure(read: _Grids, comparison: Comparison) -> pd.DataFrame:
  """Returns a row per learner: `_mean` and `_se` over seeds, and sizes."""
  return pd.DataFrame([
      _row(read[learner.experiment], learner, comparison)
      for learner in comparison.rows()
  ])


def _row(
    grid: cells.Cells, learner: Learner, comparison: Comparison
) -> dict[str, Any]:
  config = learner.run(grid.preset).config
  row: dict[str, Any] = {'learner': learner.name, 'infers': learner.infers}
  num_seeds = 0
  for name, (support, split, metric) in _measures(learner).items():
    values = grid.values(learner.cell(grid, support), split, metric)
    mean = stats.mean(values)
    row |= mean.columns(name)
    num_seeds = max(num_seeds, mean.num_seeds)
  costs = {
      f'cost_{scale}': inference_cost.find(
          scale, inference_cost.describe(learner.run(scale).config)
      )
      for scale in comparison.scales
  }
  return row | {
      'num_params': build.build(config, 1).system.num_params[0],
      'examples': _num_examples(config),
      **costs,
      'num_seeds': num_seeds,
      'preset': grid.preset,
  }


def _measures(learner: Learner) -> dict[str, tuple[str, str, str]]:
  """Returns column -> task support, split and metric."""
  return {
      f'{name}{ending}': (support, split, metric)
      for support, ending in _SUPPORTS.items()
      for name, split, metric in (
          ('seen', 'test', 'accuracy'),
          ('new', 'ood', 'accuracy'),
          ('decoding', 'ood', learner.decoding),
      )
  }


def _num_examples(config: Mapping[str, Any]) -> int:
  """Returns the number of examples in all training tasks."""
  task, training = config['task'], config['training']
  examples = task['num_query']
  if not task.get('encoding'):  # It replaces the others.
    examples += task['num_support']
  return training['num_outer_steps'] * training['meta_batch_size'] * examples


def draw(library: data.Library, comparison: Comparison = WAYS) -> cells.Drawn:
  """Returns the picture and the numbers that it shows."""
  rows, panels = comparison.rows(), comparison.panels()
  read = _read(library, comparison)
  numbers = _measure(read, comparison)
  figure = layout.make_row(
      panels,
      shared_yaxes=True,
      horizontal_spacing=0.03,
      column_widths=[0.28, 0.28, 0.22, 0.22],
  )
  figure.update_annotations(font={'size': 12})
  for trace, column in _reference_lines(comparison.lines(), len(rows)):
    figure.add_trace(trace, row=1, col=column)
  for column, symbols in enumerate(panels.values(), start=1):
    for measure_, symbol in symbols.items():
      trace = _marks(rows, numbers, measure_, symbol)
      figure.add_trace(trace, row=1, col=column)
    if numbers[[*map(_mean, symbols)]].isna().all(axis=None):
      layout.name_empty(figure, 'no finished run', 1, column)
  figure.update_yaxes(
      tickvals=list(range(len(rows))),
      ticktext=[f'{row.name}<br><i>{row.infers}</i>' for row in rows],
      range=[len(rows) - 0.5, -0.5],
  )
  figure.update_xaxes(matches='x', dtick=0.2, col=2)
  figure.update_xaxes(dtick=0.2, col=1)
  figure.update_xaxes(rangemode='tozero', dtick=0.5, col=3)
  figure.update_xaxes(
      type='log', dtick=1, exponentformat='none', tickangle=0, col=4
  )
  num_entries = _explain(figure, comparison)
  height = 55 + 36 * len(rows)
  layout.finish(
      figure,
      plot_height=95 + height,
      caption=_caption(read, comparison),
  )
  # Above the titles of panels, which have two lines.
  figure.update_layout(legend={'y': 1 + 38 / height})
  for _ in range(num_entries // 3):
    layout.add_legend_row(figure)
  return figure, numbers


def _marks(
    learners: Sequence[Learner],
    numbers: pd.DataFrame,
    measure_: str,
    symbol: str,
) -> go.Scatter:
  colours = [learner.kind.colour for learner in learners]
  whiskers = {'array': numbers.get(f'{measure_}_se'), 'color': style.MUTED}
  name = measure_.replace('_', ' ')
  return go.Scatter(
      x=numbers[_mean(measure_)],
      y=list(range(len(numbers))),
      name=name,
      error_x={**whiskers, 'thickness': 1.2},
      mode='markers',
      showlegend=False,
      cliponaxis=False,
      marker={
          'color': colours,
          'symbol': symbol,
          'size': 9,
          'line': {'width': 2, 'color': colours},
      },
      customdata=numbers['learner'] + ', ' + numbers['infers'],
      hovertemplate=f'%{{customdata}}<br>{name}: %{{x:.3g}}<extra></extra>',
  )


def _mean(measure_: str) -> str:
  """Returns the column of a measure; times have no error."""
  return measure_ if measure_.startswith('cost') else f'{measure_}_mean'


def _reference_lines(
    lines: Sequence[Line], num_rows: int
) -> Iterator[tuple[go.Scatter, int]]:
  """Yields the lines of both panels of accuracies, and their columns."""
  for name, dash, *accuracies in lines:
    for column, x in enumerate(accuracies, start=1):
      yield go.Scatter(
          x=[x, x],
          y=[-0.5, num_rows - 0.5],
          mode='lines',
          name=name,
          legendgroup=name,
          showlegend=column == 1,
          line={'color': style.MUTED, 'dash': dash, 'width': 1.5},
      ), column


def _explain(figure: go.Figure, comparison: Comparison) -> int:
  """Adds marks and colours; returns the number of entries of the legend."""
  line = {'color': style.INK, 'width': 2}
  marks = [(name, mark, style.INK, line) for mark, name in _SYMBOLS.items()]
  if 'paper' in comparison.scales:
    marks.append(('time at the published scale', 'square', style.INK, line))
  kinds = dict.fromkeys(row.kind for row in comparison.rows())
  marks += [(name, 'square', colour, {}) for name, colour in kinds]
  layout.explain(figure, marks)
  return len(marks) + len(comparison.lines())


def _caption(read: _Grids, comparison: Comparison) -> list[str]:
  lines: dict[str, list[str]] = {}
  for experiment, grid in read.items():
    scale, *others = grid.caption()
    if grid.frame.empty:
      scale = f'{scale} {grid.flag} trains all.'
    for line in (scale.removeprefix('Ours: '), *others):
      lines.setdefault(line, []).append(experiment)
  timed = inference_cost.MEASURED.load().iloc[0]
  return [
      *(f'{", ".join(names)}: {line}' for line, names in lines.items()),
      (
          'Whiskers: standard error over seeds. R²: modules of new'
          ' combinations, decoded by exact ridge regression.'
      ),
      (
          'CPU time from a support set to fast parameters; in context, or if'
          ' the task is given, to the prediction of one query.'
          f' {inference_cost.NUM_TASKS} tasks at once, the smallest of'
          f' {timed["rounds"]} rounds on {timed["processor"]}.'
      ),
      *comparison.notes,
  ]


def table(library: data.Library) -> pd.DataFrame:
  """Returns a row per learner, all texts."""
  numbers = _measure(_read(library, WAYS), WAYS)

  def texts(name: str, missing: str) -> list[str]:
    values = zip(numbers[f'{name}_mean'], numbers[f'{name}_se'])
    return [tables.with_error(*value) or missing for value in values]

  return pd.DataFrame({
      'learner': numbers['learner'],
      'the task is inferred by': numbers['infers'],
      'seen': texts('seen', 'not trained yet'),
      'new': texts('new', 'not trained yet'),
      'module held out': texts('new_held_out', '\N{EN DASH}'),
      'R² of decoding': texts('decoding', '\N{EN DASH}'),
      'meta-parameters': numbers['num_params'].map('{:,}'.format),
      'examples, millions': (numbers['examples'] / 1e6).map('{:.1f}'.format),
      'ms per task': numbers['cost_laptop'].map('{:.3f}'.format),
  })
