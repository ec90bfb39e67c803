"""One run from start to result: train, survive, summarise."""

import dataclasses
import functools
import math
import pathlib
import time
from typing import Any, Callable

import jax
import numpy as np
import pandas as pd

from modular_hyperteacher import errors
from modular_hyperteacher import experiment as experiments
from modular_hyperteacher import experiment_base as base
from modular_hyperteacher import interrupt
from modular_hyperteacher import processes
from modular_hyperteacher import provenance
from modular_hyperteacher import results
from modular_hyperteacher import sweeps
from modular_hyperteacher.learning import programs
from modular_hyperteacher.learning import trainer


@dataclasses.dataclass(frozen=True)
class PlannedRun:
  """A run and where its results go; what it takes is made when asked for."""

  run: sweeps.Run
  place: pathlib.Path  # Of the runs of this experiment and preset.
  folder: results.RunFolder  # In there, unless it was trained elsewhere.
  drawn: dict[str, list[programs.World]]  # shared by runs with the same tasks

  @functools.cached_property
  def experiment(self) -> base.Experiment:
    """What the run is made of; raises ValueError for a wrong config."""
    try:
      return experiments.build(self.run.config, jax.device_count())
    except ValueError as error:
      if str(error).startswith('model.') and 'model' in self.run.point:
        block = f'config.models.{self.run.point["model"]}'
        error.args = (f"{error} ('model' is {block}.)",)
      raise

  @property
  def worlds(self) -> list[programs.World]:
    """What every seed's tasks are drawn from; ValueError if they cannot be."""
    key = repr((self.run.config['task'], self.experiment.training))
    if key not in self.drawn:
      self.drawn[key] = experiments.draw_worlds(self.experiment)
    return self.drawn[key]

  def describe(self, published: list[sweeps.Run]) -> dict[str, Any]:
    """Returns what `--describe` prints of this run."""
    num_meta, num_fast = self.experiment.system.num_params
    config = self.run.config
    return {
        'run_id': self.run.run_id,
        'model': config['model']['name'],
        'task': config['task']['name'],
        'task_support': config['task'].get('task_support'),
        'seeds': config['training']['seeds'],
        'num_meta_params': num_meta,
        'num_fast_params': num_fast,
        'num_outer_steps': config['training']['num_outer_steps'],
        # Which tasks a split holds depends on the seed; the smallest counts.
        'num_combinations': {
            split: min(counts) for split, counts in self.count().items()
        },
        'deviations': sweeps.deviations(self.run, published),
    }

  def count(self) -> dict[str, list[int]]:
    """Returns the sizes of all splits, split -> one number per seed."""
    return experiments.count_combinations(self.experiment, self.worlds)


def plan(runs: list[sweeps.Run], root: pathlib.Path) -> list[PlannedRun]:
  """Returns where the results of all runs go.

  Raises:
    UserError: if there is something else already.
  """
  drawn = {}
  planned = []
  finished = _find_finished(root)
  for run in runs:
    place = root / run.experiment / run.preset
    folder = results.RunFolder(place / run.run_id)
    if not folder.finished:
      folder = finished.get(sweeps.digest(run.run_id), folder)
    folder.check(run.identity)
    planned.append(PlannedRun(run, place, folder, drawn))
  return planned


def plan_one(run: sweeps.Run, root: pathlib.Path) -> PlannedRun:
  """As `plan`, for a run that was planned: looks at no other sweep's folders.

  There may be thousands, on a file system that is far away.
  """
  place = root / run.experiment / run.preset
  folder = results.RunFolder(place / run.run_id)
  folder.check(run.identity)
  return PlannedRun(run, place, folder, {})


def check(planned: list[PlannedRun]) -> None:
  """Makes what unfinished runs need, before the first of them is trained.

  Raises:
    ValueError: for whatever is wrong with a config.
  """
  for run in planned:
    if not run.folder.finished:
      run.count()


def _find_finished(root):
  """Returns digest -> folder of all finished runs.

  Experiments share runs: the same config is the same run.
  """
  paths = sorted(root.glob('*/*/*/summary.json'), reverse=True)
  folders = [results.RunFolder(path.parent) for path in paths]
  return {sweeps.digest(folder.path.name): folder for folder in folders}


def execute(
    planned: PlannedRun,
    guard: interrupt.Guard,
    watch: Callable[[trainer.Progress], None],
    check_lock: Callable[[], None],
) -> None:
  """Trains a run to its end, from where it was left.

  Args:
    planned: a run that this process has the lock of.
    guard: stops the training when a signal asks for it.
    watch: told of the progress.
    check_lock: raises if the run has become another process's.

  Raises:
    interrupt.Interrupted: after saving, when a signal asks to stop.
    StorageError: if results cannot be written.
    RuntimeError: for a ValueError that is not the user's, out of training.
  """
  run, built, folder = planned.run, planned.experiment, planned.folder
  if processes.is_first():
    folder.open(run.config)
  started = time.monotonic(), time.process_time()
  roots = experiments.root_keys(built.training)
  compiled = programs.Programs(
      built.system, roots, planned.worlds, built.execution.optimise
  )
  training = trainer.Trainer(
      compiled,
      folder,
      seeds=built.training.seeds,
      evaluation_splits=built.system.evaluation_splits,
      empty={s: np.array(n) == 0 for s, n in planned.count().items()},
      num_outer_steps=built.training.num_outer_steps,
      evaluate_every=built.training.evaluate_every,
      log_every=built.execution.log_every,
      checkpoint_every_s=built.execution.checkpoint_every_s,
      analyse=built.system.make_analyse(planned.worlds, roots),
      call=guard.call,
      watch=watch,
      agree=guard.agree,
      check_lock=check_lock,
  )
  session = provenance.describe() | {'first_step': training.step}
  try:
    training.run()
  except interrupt.Interrupted:
    training.save()
    _record_session(folder, session, training.step, started)
    raise
  except ValueError as error:
    if isinstance(error, errors.UserError):
      raise
    # Input was checked before: this is a bug, and shall keep its traceback.
    raise RuntimeError(f'training failed: {error}') from error
  check_lock()
  _record_session(folder, session, training.step, started)
  if processes.is_first():
    folder.write('summary.json', summarise(run, training.rows))


def _record_session(folder, session, last_step, started):
  """Appends this process's part of the run to provenance.json."""
  if not processes.is_first():
    return
  sessions = (folder.read('provenance.json') or {'sessions': []})['sessions']
  session['last_step'] = last_step
  # A machine that others use, too, takes longer, but no more processor time.
  ended = time.monotonic(), time.process_time()
  for field, end, start in zip(('wall_s', 'cpu_s'), ended, started):
    session[field] = round(end - start, 1)
  folder.write('provenance.json', {'sessions': sessions + [session]})


def summarise(run: sweeps.Run, rows: list[tuple]) -> dict[str, Any]:
  """Returns the results of a finished run.

  'last' holds every metric at the last step, 'best_validation' the metrics of
  the evaluation with the lowest validation loss, seed by seed: nested as
  split -> metric -> one value per seed. NaN marks an empty split.
  """
  frame = pd.DataFrame(rows, columns=list(results.COLUMNS))
  seeds = run.config['training']['seeds']
  last_step = int(frame['step'].max())
  validation = frame[(frame['split'] == 'valid') & (frame['metric'] == 'loss')]
  best_step = {}
  for seed in seeds:
    curve = validation[validation['seed'] == seed].set_index('step')['value']
    best_step[seed] = int(curve.idxmin()) if curve.notna().any() else last_step
  evaluated = frame[frame['split'] != 'train']
  return {
      'run_id': run.run_id,
      'seeds': seeds,
      'num_outer_steps': last_step,
      'best_step': [best_step[seed] for seed in seeds],
      'last': _by_split(frame, {seed: last_step for seed in seeds}, seeds),
      'best_validation': _by_split(evaluated, best_step, seeds),
  }


def _by_split(frame, step_of_seed, seeds):
  at_step = frame[frame['step'] == frame['seed'].map(step_of_seed)]
  nested = {}
  groups = at_step.groupby(['split', 'metric'], sort=False)
  for (split, metric), group in groups:
    values = dict(zip(group['seed'], group['value']))
    # Analyses are made at the last step only.
    nested.setdefault(split, {})[metric] = [
        float(values.get(seed, math.nan)) for seed in seeds
    ]
  return nested
