"""Predictions of external learners, as bars beside the built-in models.

A folder of files for `python -m modular_hyperteacher.worlds score` becomes one
figure per world, with a panel per task support and split. Worlds of different
experiments, presets or fields are different worlds. The name of a learner is
the file name up to the first dot; its files for several seeds of a world become
one bar. Built-in models are the finished runs of the config that describes the
world, evaluated on other tasks of it.
"""

from collections.abc import Mapping, Sequence
import functools
import pathlib
from typing import Any, NamedTuple

import pandas as pd

from modular_hyperteacher import errors
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.worlds import files

HEADING = 'Predictions from files'


class _Bar(NamedTuple):
  """A learner in a panel."""

  model: str
  values: Mapping[str, pd.Series]  # Metric -> by seed.
  num_tasks: int
  width: str = ''  # Such as '218 wide', if the model is there in several.


def read(folder: pathlib.Path) -> dict[str, described.Figure]:
  """Returns the figures of a folder of predictions, by name; scores the files.

  Raises:
    UserError: if there is none, or one is not a file of predictions.
  """
  paths = sorted(folder.glob('*.npz'))
  if not paths:
    raise errors.UserError(f"--predictions: '{folder}' has no .npz file.")
  by_figure: dict[tuple[str, str], list[files.Scored]] = {}
  for path in paths:
    scored = files.score(path)
    by_figure.setdefault(_name(scored), []).append(scored)
  return {
      name: described.Figure(
          title,
          (str(scored[0].world.experiment),),
          functools.partial(_draw, scored=scored),
      )
      for (name, title), scored in by_figure.items()
  }


def _name(scored: files.Scored) -> tuple[str, str]:
  """Returns the name and the title of the figure of a file's world.

  They tell the world from others of its experiment by all fields that differ,
  except those of the task support, which panels show.
  """
  world = scored.world
  experiment, preset = str(world.experiment), str(world.preset)
  runs = sweeps.described_runs(experiment, preset)
  blocks = [run.config['task'] for run in runs]
  fields = {
      field: value
      for field, value in world.fields.items()
      if not files.support({field: value})
      and any(b['name'] == world.name and b.get(field) != value for b in blocks)
  }
  words = [f'{field}_{value}' for field, value in fields.items()]
  shown = style.cell_name({f'task.{k}': v for k, v in fields.items()})
  return (
      '_'.join(['predictions', world.name, experiment, preset, *words]),
      f'Predictions from files: {world.name} of {experiment}, {preset} preset'
      + (f', {shown}' if shown else ''),
  )


def _draw(library: data.Library, scored: Sequence[files.Scored]) -> cells.Drawn:
  first = scored[0]
  metric = 'accuracy' if 'accuracy' in first.metrics else 'loss'
  panels: dict[str, list[bars.Bar]] = {}
  rows = []
  groups: dict[tuple[str, str], list[files.Scored]] = {}
  for one in scored:
    key = files.support(one.world.fields), one.split
    groups.setdefault(key, []).append(one)
  for (support, split), group in groups.items():
    shown = _built_in(library, group[0]) + _from_files(group)
    names = style.SUPPORT_NAMES.get(support, support), style.split_name(split)
    panels[', '.join(filter(None, names))] = [
        _to_bar(bar, metric) for bar in shown
    ]
    rows += [_to_row(bar, group[0]) for bar in shown]
  figure = bars.draw(
      panels,
      y_title=metric,
      y_range=(0, 1) if metric == 'accuracy' else None,
      caption=_caption(library, scored),
  )
  return figure, pd.DataFrame(rows)


def _built_in(library: data.Library, scored: files.Scored) -> list[_Bar]:
  """Returns the runs of the config that describes a file's world."""
  frame = _frame(library, scored)
  drawn = []
  for run in _described(scored):
    cell = {'condition': sweeps.condition(run.config)}
    values = {
        metric: pick.values(frame, cell, scored.split, metric=metric)
        for metric in scored.metrics
    }
    fixed = scored.world.fixed_sizes.get(scored.split)
    number = fixed or run.config['training']['num_evaluation_tasks']
    width = run.point.get('model.hidden_dim')
    name = f'{width} wide' if width else ''
    drawn.append(_Bar(str(run.point['model']), values, number, name))
  return drawn


def _described(scored: files.Scored) -> list[sweeps.Run]:
  world = scored.world
  block = {'name': world.name, **world.fields}
  runs = sweeps.described_runs(str(world.experiment), str(world.preset))
  return [run for run in runs if run.config['task'] == block]


def _frame(library: data.Library, scored: files.Scored) -> pd.DataFrame:
  world = scored.world
  return library.values(str(world.experiment), str(world.preset))


def _from_files(group: Sequence[files.Scored]) -> list[_Bar]:
  """Returns a bar per learner; files of the same seed are averaged."""
  drawn = []
  for learner in sorted({scored.learner for scored in group}):
    own = [scored for scored in group if scored.learner == learner]
    table = pd.DataFrame([s.metrics for s in own])
    means = table.groupby([scored.world.seed for scored in own]).mean()
    number = sum(scored.num_tasks for scored in own) // len(means)
    values = {m: means[m].rename_axis('seed') for m in own[0].metrics}
    drawn.append(_Bar(learner, values, number))
  return drawn


def _to_bar(bar: _Bar, metric: str) -> bars.Bar:
  name, colour = style.model_style(bar.model)
  lines = [*name.split(' '), *filter(None, [bar.width])]
  missing = 'no finished run'
  return bars.Bar('<br>'.join(lines), colour, bar.values[metric], missing)


def _to_row(bar: _Bar, scored: files.Scored) -> dict[str, Any]:
  name = ', '.join(filter(None, [bar.model, bar.width]))
  estimates = {m: stats.mean(bar.values[m]) for m in scored.metrics}
  row: dict[str, Any] = {}
  for column, value in (scored.row() | {'model': name}).items():
    is_metric = column in estimates
    row |= estimates[column].columns(column) if is_metric else {column: value}
  row['num_tasks'] = bar.num_tasks
  row['num_seeds'] = max(e.num_seeds for e in estimates.values())
  return row


def _caption(
    library: data.Library, scored: Sequence[files.Scored]
) -> list[str]:
  learners = sorted({one.learner for one in scored})
  lines = [f'From files: {", ".join(learners)}. The others are built in.']
  digests = {
      sweeps.hash_of(run.run_id) for one in scored for run in _described(one)
  }
  frame = _frame(library, scored[0])
  frame = frame[frame['run_id'].map(sweeps.hash_of).isin(digests)]
  if len(frame):
    lines.append(f'Built-in models: {style.scale_note(frame)}.')
  lines.append(
      'All learners of a panel share the world and its held-out combinations,'
      ' but files and built-in models use different tasks.'
  )
  return lines
