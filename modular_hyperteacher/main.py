"""Trains all runs of a config, and prints a table of results.

  python -m modular_hyperteacher.main --config=configs/fig3b.py
  modular-hyperteacher --config=fig3b   # the same, if installed as a wheel

This trains the laptop preset; `configs/fig3b.py:paper` is the published scale,
and `:smoke` is a few steps. `configs/fig3b.py:pairs` is a variant of the
config, and `configs/fig3b.py:pairs:paper` its published scale. Any field can be
overridden, as in `--config.training.num_outer_steps=500`. The same command
again skips finished runs and resumes the others.

To train a run on the devices of several processes, start the same command in
each of them with --coordinator, --num_processes and --process_id, or with
--distributed if JAX can find the other processes by itself.
"""

import contextlib
import functools
import json
import os
import sys
import traceback
from typing import Any

from modular_hyperteacher.cli import interrupts

if __name__ == '__main__':
  interrupts.exit_at_once()

from absl import flags

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted
from modular_hyperteacher.cli import command_line
from modular_hyperteacher.cli import progress
from modular_hyperteacher.cli import summary
from modular_hyperteacher.cli import wandb_tracker
from modular_hyperteacher.devices import compilation_cache
from modular_hyperteacher.devices import multihost
from modular_hyperteacher.devices import platforms
from modular_hyperteacher.experiments import components
from modular_hyperteacher.runs import ahead
from modular_hyperteacher.runs import preemption
from modular_hyperteacher.runs import runner
from modular_hyperteacher.runs import scheduling
from modular_hyperteacher.runs import trainer


def _define_flags() -> None:
  """Defines them when the command runs: a notebook may import this twice."""
  command_line.define_sweep_flags()
  command_line.define_host_devices_flag()
  flags.DEFINE_bool(
      'describe', False, 'Print the runs as JSON and train nothing.'
  )
  flags.DEFINE_bool(
      'distributed',
      False,
      'Train together with other processes, which JAX finds by itself under'
      ' SLURM, Open MPI or Kubernetes and on TPU pods.',
  )
  flags.DEFINE_string(
      'coordinator',
      None,
      'HOST:PORT of process 0, if several processes train together.',
  )
  flags.DEFINE_integer(
      'num_processes',
      None,
      'Number of processes that train together.',
      lower_bound=1,
  )
  flags.DEFINE_integer(
      'process_id', None, 'Index of this process, from 0.', lower_bound=0
  )


def main() -> int:
  """Runs the command; returns the exit code."""
  try:
    return _run()
  except Exception as error:  # pylint: disable=broad-exception-caught
    if isinstance(error, errors.MachineError):
      _leave(1, errors.line(f'error: {error}'))
    if command_line.is_users(error):
      # A normal exit would wait for what is compiled ahead.
      _leave(2, f'error: {command_line.describe(error)}')
    if 'RESOURCE_EXHAUSTED' in str(error):
      reason = untrusted.shorten(' '.join(str(error).split()))
      _leave(1, f'error: the sizes of this run exceed the memory: {reason}')
    if multihost.number() > 1:
      # A normal exit would wait for the others, which wait for this one.
      _leave(1, traceback.format_exc())
    raise


def _run() -> int:
  sweep = command_line.read_sweep()
  given = flags.FLAGS
  by_hand = given.coordinator, given.num_processes, given.process_id
  if by_hand != (None, None, None) or given.distributed:
    multihost.join(*by_hand)
  command_line.divide_host(sweep.runs)
  platforms.check()
  compilation_cache.enable_by_default()
  for run in sweep.runs:
    components.allow(run.config)
  planned = runner.plan(sweep.runs, sweep.root)
  try:
    with preemption.Guard() as guard:
      # Drawing tasks compiles: users may interrupt it.
      if given.describe:
        described = guard.call(
            lambda: [run.describe(sweep.published) for run in planned]
        )
        print(json.dumps(described, indent=2))
        return 0
      guard.call(runner.check, planned)
      if multihost.is_primary():
        summary.announce(planned, sweep.published)
      _train(planned, guard)
  except preemption.Interrupted as interruption:
    multihost.shutdown()
    what = 'saved; run the same command to resume'
    if given.describe:
      what = 'nothing was trained'
    exit_code = preemption.exit_code(interruption.signal_number)
    # A compiled step may still be running on a worker thread.
    _leave(exit_code, f'{interruption}: {what}.')
  if multihost.is_primary():
    summary.print_table(planned, sweep.published)
  return 0


def _train(planned: list[runner.PlannedRun], guard: preemption.Guard) -> None:
  tracked = wandb_tracker.mode()
  with ahead.Ahead(planned) as programs:
    for index, run, check_lock in scheduling.acquire_runs(planned, guard):
      with (
          progress.Bar(run, index, len(planned)) as bar,
          wandb_tracker.Tracker(run.spec, run.folder, tracked) as tracker,
      ):

        def watch(latest: trainer.Progress) -> None:
          bar.update(latest)
          tracker.update(latest)

        prepare = functools.partial(programs.prepare, index)
        runner.execute(run, guard, watch, check_lock, prepare)
      if multihost.is_primary():
        summary.print_result(run)


def _leave(exit_code: int, message: str) -> None:
  """Exits at once, without waiting for other threads."""
  with contextlib.suppress(BrokenPipeError):  # Nobody may read them any more.
    print(message, file=sys.stderr)
    sys.stderr.flush()
    sys.stdout.flush()
  os._exit(exit_code)


def run() -> Any:
  """Entry point of the console script."""
  interrupts.exit_at_once()
  sys.modules['__main__'].__doc__ = __doc__  # absl prints it for --help.
  _define_flags()
  command_line.run(main)


if __name__ == '__main__':
  run()
