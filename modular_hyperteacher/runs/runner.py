"""Plans runs, trains or resumes each, and summarises its results."""

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import functools
import hashlib
import pathlib
import sys
import time
from typing import Any

import jax
import numpy as np
import pandas as pd

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted
from modular_hyperteacher.devices import multihost
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import draws
from modular_hyperteacher.experiments import settings
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.learning import programs
from modular_hyperteacher.runs import memory
from modular_hyperteacher.runs import preemption
from modular_hyperteacher.runs import provenance
from modular_hyperteacher.runs import records
from modular_hyperteacher.runs import run_folder
from modular_hyperteacher.runs import trainer


@dataclasses.dataclass(frozen=True)
class PlannedRun:
  """A run and where its results go; its experiment is built lazily."""

  spec: sweeps.Run
  preset_folder: pathlib.Path  # The folder of this experiment and preset.
  folder: run_folder.RunFolder  # In `preset_folder`, or where a shared run is.
  drawn: dict[str, list[programs.SeedTasks]]  # Cache that planned runs share.

  @functools.cached_property
  def experiment(self) -> settings.Experiment:
    """The experiment; ValueError if the config is wrong or too large."""
    try:
      return memory.build_experiment(self.spec.config, jax.device_count())
    except ValueError as error:
      if str(error).startswith('model.') and 'model' in self.spec.point:
        block = f'config.models.{self.spec.point["model"]}'
        error.args = (f"{error} ('model' is {block}.)",)
      raise

  @property
  def tasks(self) -> list[programs.SeedTasks]:
    """Every seed's tasks; ValueError if they cannot be drawn."""
    # Systems may draw other splits of the same task.
    splits = self.experiment.system.evaluation_splits
    key = repr((self.spec.config['task'], self.experiment.training, splits))
    if key not in self.drawn:
      with memory.reported():
        drawn = build.draw_tasks(self.experiment)
        self.drawn[key] = jax.block_until_ready(drawn)
    return self.drawn[key]

  @property
  def roots(self) -> list[jax.Array]:
    """Every seed's root key."""
    return build.root_keys(self.experiment.training)

  def make_programs(self) -> programs.Programs:
    """Returns the run's programs, not yet compiled."""
    built = self.experiment
    optimise = built.execution.optimise
    return programs.Programs(built.system, self.roots, self.tasks, optimise)

  def describe(self, published: list[sweeps.Run]) -> dict[str, Any]:
    """Returns what `--describe` prints."""
    num_meta, num_fast = self.experiment.system.num_params
    config = self.spec.config
    # Listing millions of combinations takes minutes.
    counts = self.experiment.system.fixed_counts or {
        # Sizes depend on the seed; report the smallest.
        split: min(numbers)
        for split, numbers in self.count().items()
    }
    return {
        'run_id': self.spec.run_id,
        'model': config['model']['name'],
        'task': config['task']['name'],
        'task_support': config['task'].get('task_support'),
        'seeds': config['training']['seeds'],
        'num_meta_params': num_meta,
        'num_fast_params': num_fast,
        'num_outer_steps': config['training']['num_outer_steps'],
        'num_combinations': counts,
        'deviations': sweeps.deviations(self.spec, published),
    }

  def count(self) -> dict[str, list[int]]:
    """Returns split -> number of combinations for every seed."""
    system = self.experiment.system
    params = [drawn.task_params for drawn in self.tasks]
    return {
        split: [system.num_combinations(p, split) for p in params]
        for split in ('train', *system.evaluation_splits)
    }


def plan(
    runs: list[sweeps.Run], root: pathlib.Path, borrow: bool = True
) -> list[PlannedRun]:
  """Returns the runs with their folders below the folder of results.

  `borrow` says whether to look for finished runs that other experiments share.
  There may be thousands, on a slow network file system.

  Raises:
    UserError: if a folder holds a different run, or its name is not valid.
  """
  drawn = {}
  planned = []
  paths = root.glob('*/*/*/summary.json') if borrow else ()
  # Runs whose configs have the same hash are the same run.
  finished = {
      sweeps.hash_of(path.parent.name): run_folder.RunFolder(path.parent)
      for path in sorted(paths, reverse=True)
  }
  for run in runs:
    for field in ('experiment', 'preset', 'run_id'):
      untrusted.check_name(getattr(run, field), field)
    preset_folder = root / run.experiment / run.preset
    folder = run_folder.RunFolder(preset_folder / run.run_id)
    if not folder.finished:
      folder = finished.get(sweeps.hash_of(run.run_id), folder)
    folder.check(run.decisive)
    planned.append(PlannedRun(run, preset_folder, folder, drawn))
  return planned


def check(planned: list[PlannedRun]) -> None:
  """Builds all unfinished runs, so that ValueErrors come before training."""
  for run in planned:
    if not run.folder.finished:
      run.count()


def execute(
    planned: PlannedRun,
    guard: preemption.Guard,
    watch: Callable[[trainer.Progress], None],
    check_lock: Callable[[], None],
    prepare: Callable[[], programs.Programs] | None = None,
) -> None:
  """Trains a run to its end, from its last checkpoint if there is one.

  Args:
    planned: a run whose lock this process holds.
    guard: stops the training when a signal arrives.
    watch: called with the progress.
    check_lock: raises if another process has taken over the run.
    prepare: in place of `planned.make_programs`.

  Raises:
    preemption.Interrupted: after saving, when a signal asks to stop.
    StorageError: if results cannot be written.
    RuntimeError: for a ValueError in training that is not a UserError.
  """
  run, built, folder = planned.spec, planned.experiment, planned.folder
  stored: dict[str, Any] = {}
  if multihost.is_primary():
    folder.open(run.config)
    stored = folder.read('provenance.json', records.Provenance) or {}
  sessions, session = stored.get('sessions', []), {}
  started = time.monotonic(), time.process_time()

  def record_session(step: int) -> None:
    # At every checkpoint: a killed process has its entry, too.
    # On a shared machine, wall time grows but CPU time does not.
    session.update(
        last_step=step,
        wall_s=round(time.monotonic() - started[0], 1),
        cpu_s=round(time.process_time() - started[1], 1),
    )
    record = {'sessions': [*sessions, session], 'drawn': digests}
    folder.write('provenance.json', record)

  def make_trainer() -> trainer.Trainer:
    return trainer.Trainer(
        prepare() if prepare else planned.make_programs(),
        folder,
        built,
        {s: np.array(n) == 0 for s, n in planned.count().items()},
        guard,
        watch,
        check_lock,
        programs.over_seeds(built.system.analyse, planned.tasks, planned.roots),
        record_session,
    )

  # Drawing tasks and compiling may be interrupted.
  with _bugs_stay_bugs():
    digests = guard.call(build.digest_tasks, built, planned.tasks)
    _check_drawn(run, stored.get('drawn', {}), digests)
    training = guard.call(make_trainer)
  session |= provenance.describe() | {'first_step': training.step}
  if sessions and (changed := provenance.changes(sessions[-1], session)):
    print(
        f'warning: {run.run_id} is resumed, but {"; ".join(changed)}. It will'
        ' equal an uninterrupted run up to rounding, not bit for bit.',
        file=sys.stderr,
        flush=True,
    )
  try:
    with _bugs_stay_bugs():
      training.run()
  except preemption.Interrupted:
    training.save()
    raise
  check_lock()
  if multihost.is_primary():
    rows = run_folder.encode_metrics(training.rows)
    digest = {'metrics_sha256': hashlib.sha256(rows).hexdigest()}
    folder.write('summary.json', summarise(run, training.rows) | digest)


def _check_drawn(
    run: sweeps.Run, before: dict[str, Any], now: dict[str, Any]
) -> None:
  """Raises UserError if a run would go on with other tasks."""
  for seed, digest in now.items():
    if told := draws.compare(before.get(seed), digest):
      raise errors.UserError(
          f'{run.run_id} cannot be resumed, as {told}. Resume it as it was'
          ' begun, or delete its folder to train it again.'
      )


@contextlib.contextmanager
def _bugs_stay_bugs() -> Iterator[None]:
  """Turns a ValueError that is no UserError into a RuntimeError.

  Input was checked before, so it is a bug, whose traceback is needed.
  """
  try:
    yield
  except ValueError as error:
    if isinstance(error, errors.UserError):
      raise
    raise RuntimeError(f'training failed: {error}') from error


def summarise(run: sweeps.Run, rows: list[tuple]) -> dict[str, Any]:
  """Returns the results of a finished run.

  'last' holds all metrics of the last step; 'best_validation' holds, for each
  seed, those of the evaluation with the lowest validation loss. Both map split
  -> metric -> one value per seed; NaN marks an empty split. 'diverged' lists
  the seeds whose validation loss at the last step is not finite.
  """
  frame = pd.DataFrame(rows, columns=list(run_folder.COLUMNS))
  seeds = run.config['training']['seeds']
  last_step = int(frame['step'].max())
  losses = frame[(frame['split'] == 'valid') & (frame['metric'] == 'loss')]
  finite = losses[np.isfinite(losses['value'].to_numpy(float))]
  curves = {
      seed: finite[finite['seed'] == seed].set_index('step')['value']
      for seed in seeds
  }
  best_step = {
      seed: last_step if curve.empty else int(curve.idxmin())
      for seed, curve in curves.items()
  }
  evaluated = frame[frame['split'] != 'train']
  return {
      'run_id': run.run_id,
      'seeds': seeds,
      'num_outer_steps': last_step,
      'best_step': list(best_step.values()),
      'diverged': [seed for seed in seeds if last_step not in curves[seed]],
      'last': _by_split(frame, dict.fromkeys(seeds, last_step)),
      'best_validation': _by_split(evaluated, best_step),
  }


def _by_split(
    frame: pd.DataFrame, step_of_seed: dict[int, int]
) -> dict[str, dict[str, list[float]]]:
  at_step = frame[frame['step'] == frame['seed'].map(step_of_seed)]
  nested: dict[Any, dict[Any, list[float]]] = {}
  groups = at_step.groupby(['split', 'metric'], sort=False)
  for (split, metric), group in groups:
    # Not every evaluation is analysed.
    values = group.set_index('seed')['value'].reindex([*step_of_seed])
    nested.setdefault(split, {})[metric] = values.astype(float).tolist()
  return nested
