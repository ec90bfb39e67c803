"""What launchers share. They differ only in how runs are sent to workers."""

from collections.abc import Callable, Mapping
import dataclasses
import importlib
import signal
import sys
from typing import Any, NamedTuple

from absl import flags
import jax

from modular_hyperteacher.cli import command_line
from modular_hyperteacher.cli import summary
from modular_hyperteacher.cli import wandb_tracker
from modular_hyperteacher.devices import compilation_cache
from modular_hyperteacher.devices import host_devices
from modular_hyperteacher.experiments import components
from modular_hyperteacher.launch import cost
from modular_hyperteacher.launch import timings
from modular_hyperteacher.launch import worker
from modular_hyperteacher.runs import preemption
from modular_hyperteacher.runs import runner


def define_flags() -> None:
  """Defines the flags when the command runs, not at import."""
  command_line.define_sweep_flags()
  flags.DEFINE_integer(
      'retries', 2, 'How many times a failed run is tried again.', lower_bound=0
  )
  flags.DEFINE_bool(
      'dry_run', False, 'Print the plan and its cost, and train nothing.'
  )
  flags.DEFINE_integer(
      'runs_per_task',
      1,
      'Number of runs sent to a worker together, so that they can share'
      ' compiled programs.',
      lower_bound=1,
  )
  flags.DEFINE_string(
      'compilation_cache',
      compilation_cache.DEFAULT,
      'Folder in which workers share compiled programs; empty for none. The'
      ' default gives way to JAX_COMPILATION_CACHE_DIR. Programs in it are'
      ' executed: nobody else should be able to write to it.',
  )


def need(module: str, extra: str) -> Any:
  """Imports a module that an extra of this package installs; exits without it.

  Returns:
    The module; None if it is missing and the command only prints its help.
  """
  try:
    return importlib.import_module(module)
  except ModuleNotFoundError as error:
    if error.name != module:
      raise
    if {'--help', '--helpfull'} & set(sys.argv):
      return None
    print(
        f'error: {module} is not installed: pip install'
        f" 'modular_hyperteacher[{extra}]'",
        file=sys.stderr,
    )
    sys.exit(2)


class Plan(NamedTuple):
  """A sweep, and which of its runs are sent together."""

  sweep: command_line.Sweep
  runs: list[runner.PlannedRun]
  bundles: list[list[runner.PlannedRun]]  # unfinished runs only
  # Further fields of `worker.Settings`, for a campaign with a budget.
  limits: Mapping[str, Any] = {}


class Outcome(NamedTuple):
  """How a sweep ended."""

  unfinished: dict[str, str]  # run id -> why
  left: str = ''  # message, if the command ends before the sweep does
  exit_code: int = 0  # in this case


def stopped(number: int) -> Outcome:
  """Returns the outcome after a signal made all workers save."""
  return Outcome(
      {},
      f'{preemption.Interrupted(number)}: saved; run the same command to'
      ' resume.',
      preemption.exit_code(number),
  )


def main(launch: Callable[[Plan], Outcome], describe: Callable[[], str]) -> Any:
  """Runs a launcher's command line.

  `launch` sends the bundles of a plan to workers and waits for them; `describe`
  returns where runs are trained.
  """
  run_command(lambda: _run(launch, describe))


def run_command(
    function: Callable[[], int],
    check: Callable[[list[str]], None] = command_line.check_arguments,
) -> Any:
  """Runs a launcher's command line; see `command_line.run`."""

  def command() -> int:
    # Until here, Ctrl-C ends the process at once; see cli/interrupts.py.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return function()

  # Workers need the memory of GPUs, and a TPU has one process at a time.
  jax.config.update('jax_platforms', 'cpu')
  define_flags()
  command_line.run(command, check)


def _run(launch: Callable[[Plan], Outcome], describe: Callable[[], str]) -> int:
  sweep = command_line.read_sweep()
  for run in sweep.runs:
    components.allow(run.config)
  plan = make_plan(sweep, flags.FLAGS.runs_per_task)
  # Report wrong configs before training.
  runner.check([bundle[0] for bundle in plan.bundles])
  print(describe_plan(plan, describe()), flush=True)
  if flags.FLAGS.dry_run:
    if left := [run for bundle in plan.bundles for run in bundle]:
      print(cost.estimate(left, plan.runs))  # Takes up to a minute.
    return 0
  outcome = launch(plan) if plan.bundles else Outcome({})
  return _end(plan, outcome)


def make_plan(sweep: command_line.Sweep, runs_per_task: int) -> Plan:
  """Returns the unfinished runs in bundles.

  Raises:
    UserError: if a run's folder holds a different run.
  """
  runs = runner.plan(sweep.runs, sweep.root)
  left = [run for run in runs if not run.folder.finished]
  by_program: dict[str, list[runner.PlannedRun]] = {}
  for run in left:
    by_program.setdefault(timings.program(run.spec.config), []).append(run)
  bundles = [
      group[start : start + runs_per_task]
      for group in by_program.values()
      for start in range(0, len(group), runs_per_task)
  ]
  return Plan(sweep, runs, bundles)


def settings(plan: Plan, num_cores: int) -> worker.Settings:
  """Returns the settings of workers that have `num_cores` each."""
  return worker.Settings(
      str(plan.sweep.root.absolute()),
      host_devices.suit([run.spec.config for run in plan.runs], num_cores),
      flags.FLAGS.compilation_cache,
      wandb_tracker.mode(),
      **plan.limits,
  )


def share_of_gpu(share: float) -> dict[str, str]:
  """Returns environment variables that limit JAX to a share of a GPU's memory.

  By default, the first process takes three quarters of it.
  """
  return {'XLA_PYTHON_CLIENT_MEM_FRACTION': f'{0.9 * share:.3f}'}


def as_json(bundle: list[runner.PlannedRun]) -> list[dict[str, Any]]:
  """Returns the runs of a bundle in the form that `worker.train` expects."""
  return [dataclasses.asdict(run.spec) for run in bundle]


def describe_plan(plan: Plan, where: str) -> str:
  """Returns what will be trained, and where."""
  lines = [
      summary.headline(plan.runs),
      f'{len(plan.bundles)} tasks for {where}',
  ]
  for run in [run for bundle in plan.bundles for run in bundle]:
    total = run.spec.config['training']['num_outer_steps']
    lines.append(f'  {run.spec.run_id}: step {cost.saved_step(run)} of {total}')
  return '\n'.join(lines)


def _end(plan: Plan, outcome: Outcome) -> int:
  """Prints the results and unfinished runs; returns the exit code."""
  if outcome.left:
    print(outcome.left, file=sys.stderr)
    return outcome.exit_code
  finished = [run for run in plan.runs if run.folder.finished]
  if finished:
    summary.print_table(finished, plan.sweep.published)
  unfinished = [run for run in plan.runs if not run.folder.finished]
  for run in unfinished:
    reason = outcome.unfinished.get(run.spec.run_id, 'not finished')
    print(f'error: {run.spec.run_id}: {reason}', file=sys.stderr)
  return 1 if unfinished else 0
