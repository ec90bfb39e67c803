"""Trains runs on a worker, for every launcher.

Runs are sent as JSON, so a worker executes no config file and unpickles no
results.

As a command (`python -m launch.worker`), reads JSON from stdin: a line of
settings, then one list of runs per line. It answers each list with one JSON
object of outcomes per line on stdout.
"""

import argparse
from collections.abc import Mapping
import json
import os
import pathlib
import signal
import sys
import time
import traceback
from typing import Any, NamedTuple

import jax

from modular_hyperteacher import errors
from modular_hyperteacher.cli import command_line
from modular_hyperteacher.cli import wandb_tracker
from modular_hyperteacher.devices import compilation_cache
from modular_hyperteacher.devices import host_devices
from modular_hyperteacher.devices import jax_settings
from modular_hyperteacher.devices import platforms
from modular_hyperteacher.experiments import components
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.launch import timings
from modular_hyperteacher.runs import preemption
from modular_hyperteacher.runs import runner
from modular_hyperteacher.runs import scheduling

FINISHED = 'finished'
HELD = 'another launcher is training it'
OUT_OF_TIME = 'the budget is spent'
REFUSED = 'refused: '  # followed by the reason; a retry would fail, too
FAILED = 'failed: '  # followed by the error; a retry may succeed


class Settings(NamedTuple):
  """How to train runs; the same on every worker."""

  results: str
  num_host_devices: int  # per worker, on a CPU
  compilation_cache: str  # folder; '' for none
  wandb: str = wandb_tracker.OFF  # as --wandb
  ends_at: float | None = None  # when to save and stop, as `time.time()`
  # Run id -> seconds until there is something to save.
  lead_s: Mapping[str, float] = {}
  measure: bool = False  # only measure how long runs take


def set_up(settings: Settings) -> None:
  """Prepares a process before JAX is initialised; later calls do nothing.

  Raises:
    UserError: if others can write to the compilation cache, or if the one that
      was asked for cannot be used; or if Python or JAX runs in another mode.
  """
  jax_settings.fix()
  number = settings.num_host_devices
  jax_config: Any = jax.config  # Its options are defined at run time.
  if not host_devices.set_by() and jax_config.jax_num_cpu_devices != number:
    host_devices.divide(number, number)
  platforms.check()
  if settings.compilation_cache == compilation_cache.DEFAULT:
    compilation_cache.enable_by_default()
  elif settings.compilation_cache:
    try:
      compilation_cache.enable(settings.compilation_cache)
    except (OSError, RuntimeError) as error:  # RuntimeError: no such home.
      raise errors.UserError(
          f"--compilation_cache is '{settings.compilation_cache}', which cannot"
          f' be used: {error}.'
      ) from error


def train(
    runs: list[dict[str, Any]],
    settings: Settings,
    signals: tuple[int, ...] = preemption.SIGNALS,
) -> dict[str, str]:
  """Trains runs, `sweeps.Run`s as dicts, unless finished or held by others.

  Settings must be the same for all calls in a process. Signals ask to stop.

  Returns:
    Run id -> FINISHED, HELD, OUT_OF_TIME, REFUSED with a reason or FAILED with
    an error; or, when measuring, a timing as JSON. A failure of one run does
    not affect the others.

  Raises:
    preemption.Interrupted: after saving, when a signal asks to stop.
  """
  try:
    set_up(settings)
  except errors.UserError as error:
    return {run['run_id']: f'{REFUSED}{error}' for run in runs}
  outcomes = {}
  with preemption.Guard((*signals, signal.SIGALRM)) as guard:
    for fields in runs:
      run = sweeps.Run(**fields)
      try:
        if not _set_alarm(settings, run.run_id):
          outcomes[run.run_id] = OUT_OF_TIME
          continue
        components.allow(run.config)  # The launcher's user asked for this.
        root = pathlib.Path(settings.results)
        (planned,) = runner.plan([run], root, borrow=False)
        one = _measure_one if settings.measure else _train_one
        outcomes[run.run_id] = one(planned, settings, guard)
      except Exception as error:  # pylint: disable=broad-exception-caught
        outcomes[run.run_id] = _explain(error)
      finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
  return outcomes


def _set_alarm(settings: Settings, run_id: str) -> bool:
  """Sets an alarm at the end of the budget; False if there is no time left."""
  if settings.ends_at is None:
    return True
  left_s = settings.ends_at - time.time()
  if left_s <= settings.lead_s.get(run_id, 0.0):
    return False
  # No timer takes more than decades.
  signal.setitimer(signal.ITIMER_REAL, min(left_s, 1e9))
  return True


def _measure_one(
    planned: runner.PlannedRun, settings: Settings, guard: preemption.Guard
) -> str:
  cache = pathlib.Path(settings.results, 'timings')
  timing = timings.measure(planned, guard, cache)
  return json.dumps(timing._asdict())


def _train_one(
    planned: runner.PlannedRun, settings: Settings, guard: preemption.Guard
) -> str:
  for _, mine, check_lock in scheduling.acquire_runs(
      [planned], guard, wait=False
  ):
    with wandb_tracker.Tracker(
        mine.spec, mine.folder, settings.wandb
    ) as tracker:
      runner.execute(mine, guard, tracker.update, check_lock)
  return FINISHED if planned.folder.finished else HELD


def _explain(error: Exception) -> str:
  """Returns the outcome after an error; reraises the user's Interrupted."""
  if isinstance(error, preemption.Interrupted):
    if error.signal_number != signal.SIGALRM:
      raise error
    return OUT_OF_TIME
  if command_line.is_users(error):
    return f'{REFUSED}{command_line.describe(error)}'
  if not isinstance(error, errors.MachineError):
    traceback.print_exception(error)
  return f'{FAILED}{type(error).__name__}: {error}'


def train_in_ray(
    runs: list[dict[str, Any]], settings: Settings
) -> dict[str, str]:
  """Trains as a Ray task; returns an interruption as a failure."""
  try:
    return train(runs, settings)
  except preemption.Interrupted as interruption:
    return {run['run_id']: f'{FAILED}{interruption}' for run in runs}


class Job:
  """Runs as a SLURM job, in the form that submitit expects."""

  def __init__(self, runs: list[dict[str, Any]], settings: Settings) -> None:
    self._runs = runs
    self._settings = settings

  def __call__(self) -> dict[str, str]:
    """Trains; after a signal, saves and passes the signal on to submitit.

    submitit's handler of the time limit's signal queues the job again. SIGTERM
    means that SLURM queues it again itself (preemption, `scontrol requeue`), or
    that the user cancelled it.
    """
    handled = [
        number
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
        if callable(signal.getsignal(number))
    ]
    try:
      return train(self._runs, self._settings, tuple(handled))
    except preemption.Interrupted as interruption:
      if interruption.signal_number != signal.SIGTERM:
        # SLURM sends it to all processes of a requeued job, so also to the
        # `scontrol requeue` that submitit waits for, which inherits this.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
      signal.raise_signal(interruption.signal_number)
      os._exit(128 + interruption.signal_number)

  def checkpoint(self) -> Any:
    """Returns the job to queue again."""
    import submitit  # pyright: ignore[reportMissingImports]

    return submitit.helpers.DelayedSubmission(self)


def main() -> None:
  """Serves a launcher until it closes the pipe."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--cores', type=json.loads, required=True)
  arguments = parser.parse_args()
  if hasattr(os, 'sched_setaffinity'):  # Linux.
    os.sched_setaffinity(0, arguments.cores)
  answers = os.fdopen(os.dup(1), 'w', encoding='utf-8')
  os.dup2(2, 1)  # Other output must not mix with the answers.
  # Between two runs there is nothing to save; the closed pipe ends the worker.
  for number in preemption.SIGNALS:
    signal.signal(number, signal.SIG_IGN)
  # An argument could not hold the settings of a campaign of 2,000 runs.
  settings = Settings(*json.loads(sys.stdin.readline()))
  try:
    for line in sys.stdin:
      outcomes = train(json.loads(line), settings)
      print(json.dumps(outcomes), file=answers, flush=True)
  except preemption.Interrupted:
    pass
  os._exit(0)  # A compiled step may still be running on a worker thread.


if __name__ == '__main__':
  main()
