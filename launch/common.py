"""What launchers share: the plan, its cost, its progress, its end.

A launcher differs from another only in how runs are sent to workers.
"""

import dataclasses
import importlib
import json
import signal
import sys
import time
from typing import Any, Callable, NamedTuple

from absl import app
from absl import flags
from absl import logging
import tqdm

from launch import cost
from launch import worker
from modular_hyperteacher import command_line
from modular_hyperteacher import host_devices
from modular_hyperteacher import interrupt
from modular_hyperteacher import report
from modular_hyperteacher import runner
from modular_hyperteacher import tracking

# Until a run that another launcher trains is looked at again.
HELD_AGAIN_S = 2.0
# Of a launcher's time.
_SHARE_OF_LOOKING = 0.02

command_line.define_sweep_flags()
_DRY_RUN = flags.DEFINE_bool(
    'dry_run', False, 'Print the plan and its cost, and train nothing.'
)
_RUNS_PER_TASK = flags.DEFINE_integer(
    'runs_per_task',
    1,
    'How many runs are sent to a worker together; runs that share compiled'
    ' programs come first.',
    lower_bound=1,
)
RETRIES = flags.DEFINE_integer(
    'retries', 2, 'How often a run that failed is tried again.', lower_bound=0
)
_CACHE = flags.DEFINE_string(
    'compilation_cache',
    '~/.cache/modular_hyperteacher',
    'Where workers of a machine share compiled programs; empty for nowhere.'
    ' Programs from there are executed: keep it to yourself.',
)


def need(module: str, extra: str) -> Any:
  """Returns a module of an optional package; ends the command without it."""
  try:
    return importlib.import_module(module)
  except ModuleNotFoundError as error:
    if error.name != module:
      raise
    print(
        f"error: {module} is not installed: pip install -e '.[{extra}]'",
        file=sys.stderr,
    )
    sys.exit(2)


class Plan(NamedTuple):
  """A sweep, and which of its runs are sent together."""

  sweep: command_line.Sweep
  runs: list[runner.PlannedRun]
  bundles: list[list[runner.PlannedRun]]  # unfinished runs only


class Outcome(NamedTuple):
  """How a sweep ended."""

  unfinished: dict[str, str]  # run id -> why
  left: str = ''  # if the command ends before the sweep does, what of it
  exit_code: int = 0  # then


def stopped(number: int) -> Outcome:
  """Returns the outcome after a signal made all workers save."""
  return Outcome(
      {},
      f'{interrupt.Interrupted(number)}: saved; the same command goes on from'
      ' here.',
      0 if number == signal.SIGTERM else 128 + number,
  )


def main(launch: Callable[[Plan], Outcome], describe: Callable[[], str]) -> Any:
  """Runs a launcher's command line.

  Args:
    launch: sends the bundles of a plan to workers and returns at their end.
    describe: says where they are sent.
  """

  def command(argv):
    logging.set_verbosity(logging.WARNING)
    try:
      command_line.check_arguments(argv)
      return _run(launch, describe)
    except Exception as error:  # pylint: disable=broad-exception-caught
      if not command_line.is_users(error):
        raise
      print(f'error: {error}', file=sys.stderr)
      return 2

  app.run(lambda argv: sys.exit(command(argv)), flags_parser=command_line.parse)


def _run(launch, describe) -> int:
  plan = make_plan(command_line.read_sweep(), _RUNS_PER_TASK.value)
  print(describe_plan(plan, describe()), flush=True)
  if _DRY_RUN.value:
    return 0
  outcome = launch(plan) if plan.bundles else Outcome({})
  return _end(plan, outcome)


def make_plan(sweep: command_line.Sweep, runs_per_task: int) -> Plan:
  """Returns what is left to train, in bundles.

  Raises:
    UserError: if the results folder holds something else.
  """
  runs = runner.plan(sweep.runs, sweep.root)
  left = [run for run in runs if not run.folder.finished]
  by_program = {}
  for run in left:
    by_program.setdefault(_program(run), []).append(run)
  bundles = [
      group[start : start + runs_per_task]
      for group in by_program.values()
      for start in range(0, len(group), runs_per_task)
  ]
  return Plan(sweep, runs, bundles)


def _program(run):
  """Returns what is equal for runs that only differ in their seeds."""
  config = {name: dict(fields) for name, fields in run.run.config.items()}
  seeds = config['training'].pop('seeds')
  return json.dumps([config, len(seeds)], sort_keys=True)


def settings(plan: Plan, num_cores: int) -> worker.Settings:
  """Returns how runs are trained, on workers with so many cores."""
  return worker.Settings(
      str(plan.sweep.root.absolute()),
      host_devices.suit([run.run for run in plan.runs], num_cores),
      _CACHE.value,
      tracking.mode(),
  )


def share_of_gpu(share: float) -> dict[str, str]:
  """Returns environment variables that let JAX have a part of a GPU's memory.

  Left alone, the first process takes three quarters of it.
  """
  return {'XLA_PYTHON_CLIENT_MEM_FRACTION': f'{0.9 * share:.3f}'}


def as_json(bundle: list[runner.PlannedRun]) -> list[dict[str, Any]]:
  """Returns the runs of a bundle as `worker.train` takes them."""
  return [dataclasses.asdict(run.run) for run in bundle]


def describe_plan(plan: Plan, where: str) -> str:
  """Returns what is to be done, at what cost, and where."""
  left = [run for bundle in plan.bundles for run in bundle]
  first = plan.runs[0].run
  lines = [
      f'{first.experiment}, preset {first.preset}: {len(plan.runs)} runs,'
      f' {len(plan.runs) - len(left)} of them finished;'
      f' results in {plan.runs[0].place}',
      f'{len(plan.bundles)} tasks for {where}',
  ]
  for run in left:
    total = run.run.config['training']['num_outer_steps']
    lines.append(f'  {run.run.run_id}: step {cost.saved_step(run)} of {total}')
  if left:
    lines.append(cost.estimate(left, plan.runs))
  return '\n'.join(lines)


class Attempt(NamedTuple):
  """Runs, to be sent to a worker together."""

  bundle: list[runner.PlannedRun]
  failures: int = 0  # so far
  held: bool = False  # another launcher has them
  saved_steps: int = 0  # when they were sent


def attempt(
    bundle: list[runner.PlannedRun], failures: int = 0, held: bool = False
) -> Attempt:
  """Returns an attempt at runs as they are saved now."""
  return Attempt(bundle, failures, held, sum(map(cost.saved_step, bundle)))


def take_back(
    tried: Attempt, outcomes: dict[str, str] | str, unfinished: dict[str, str]
) -> list[Attempt]:
  """Returns what of a bundle is worth another attempt.

  Args:
    tried: what a worker was sent.
    outcomes: what `worker.train` returned; or what happened to the worker.
    unfinished: run id -> why it is given up; added to.
  """
  if isinstance(outcomes, str):
    return _after_a_death(tried, worker.FAILED + outcomes, unfinished)
  held, failed = [], []
  for run in tried.bundle:
    outcome = outcomes[run.run.run_id]
    if outcome == worker.HELD:
      held.append(run)
    elif outcome.startswith(worker.FAILED) and tried.failures < RETRIES.value:
      failed.append(run)
    elif outcome != worker.FINISHED:
      unfinished[run.run.run_id] = outcome
  again = []
  if held:
    again.append(attempt(held, tried.failures, held=True))
  if failed:
    again.append(attempt(failed, tried.failures + 1))
  return again


def _after_a_death(tried, reason, unfinished):
  """Returns what to do with the runs of a worker that told nothing."""
  left = [run for run in tried.bundle if not run.folder.finished]
  # A machine that is taken away is no fault of a run that came further on it.
  came_further = sum(map(cost.saved_step, tried.bundle)) > tried.saved_steps
  failures = tried.failures + (not came_further)
  if len(left) > 1:
    # Any of them may have been its end; by themselves, they will tell.
    return [attempt([run], tried.failures) for run in left]
  if failures > RETRIES.value:
    unfinished |= {run.run.run_id: reason for run in left}
    return []
  return [attempt([run], failures) for run in left]


class Progress:
  """The progress of a whole sweep, read from its folder."""

  def __init__(self, plan: Plan):
    self._left = [run for bundle in plan.bundles for run in bundle]
    self._num_runs = len(self._left)
    self._done = 0
    self._next_look = 0.0
    total = sum(self._total(run) for run in self._left)
    self._bar = tqdm.tqdm(
        total=total,
        unit='step',
        mininterval=0.5 if sys.stderr.isatty() else 20,
        file=sys.stderr,
    )

  def __enter__(self) -> 'Progress':
    return self

  def __exit__(self, *_) -> None:
    self._look()
    self._bar.close()

  def _total(self, run):
    return run.run.config['training']['num_outer_steps']

  def update(self) -> None:
    """Shows what is saved by now, and prints results that are new.

    Call it often: it looks no more than is cheap, as a sweep may have many runs
    and its folder may be far away.
    """
    started = time.monotonic()
    if started >= self._next_look:
      self._look()
      ended = time.monotonic()
      self._next_look = ended + (ended - started) / _SHARE_OF_LOOKING

  def _look(self):
    for run in [run for run in self._left if run.folder.finished]:
      self._left.remove(run)
      self._done += self._total(run)
      with self._bar.external_write_mode(file=sys.stdout):
        report.print_result(run)
    finished = self._num_runs - len(self._left)
    self._bar.set_description(f'{finished}/{self._num_runs} runs', False)
    steps = self._done + sum(map(cost.saved_step, self._left))
    self._bar.update(steps - self._bar.n)


def _end(plan, outcome) -> int:
  """Prints the table, or what is missing from it; returns the exit code."""
  if outcome.left:
    print(outcome.left, file=sys.stderr)
    return outcome.exit_code
  finished = [run for run in plan.runs if run.folder.finished]
  if finished:
    report.print_table(finished, plan.sweep.published)
  unfinished = [run for run in plan.runs if not run.folder.finished]
  for run in unfinished:
    reason = outcome.unfinished.get(run.run.run_id, 'not finished')
    print(f'error: {run.run.run_id}: {reason}', file=sys.stderr)
  return 1 if unfinished else 0
