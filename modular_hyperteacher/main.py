"""Command line: expand a config into runs, train them, report.

  python -m modular_hyperteacher.main --config=configs/fig3b.py

trains the laptop preset; `configs/fig3b.py:paper` is the published scale and
`:smoke` takes seconds. Any field can be overridden, as in
`--config.training.num_outer_steps=500`. Starting again skips runs that are
finished and resumes those that are not.

Several processes train a run together, on the devices of all of them, if each
is started with the same command and --coordinator, --num_processes and
--process_id, or with --distributed where JAX can find the others by itself.
"""

import json
import os
import pathlib
import signal
import sys
import traceback
from typing import Any

from absl import app
from absl import flags
from absl import logging
import jax
from ml_collections import config_flags
import numpy as np

from modular_hyperteacher import command_line
from modular_hyperteacher import errors
from modular_hyperteacher import interrupt
from modular_hyperteacher import processes
from modular_hyperteacher import progress
from modular_hyperteacher import report
from modular_hyperteacher import runner
from modular_hyperteacher import sweeps

_CONFIG = config_flags.DEFINE_config_file(
    'config', None, 'Experiment: configs/NAME.py or configs/NAME.py:PRESET.'
)
_RESULTS = flags.DEFINE_string('results', 'results', 'Folder for results.')
_ONLY = flags.DEFINE_multi_string(
    'only', [], 'Train only runs with field=value; repeat to narrow down.'
)
_DESCRIBE = flags.DEFINE_bool(
    'describe', False, 'Print the runs as JSON and train nothing.'
)
_HOST_DEVICES = flags.DEFINE_integer(
    'host_devices',
    None,
    'On a CPU, how many devices to make of it; meta-batches are divided over'
    ' them. Default: as many as there are cores and as divide the meta-batch;'
    ' one for each of several processes.',
    lower_bound=1,
)
_DISTRIBUTED = flags.DEFINE_bool(
    'distributed',
    False,
    'One of several processes that JAX finds by itself: SLURM, TPU pods, Open'
    ' MPI, Kubernetes.',
)
_COORDINATOR = flags.DEFINE_string(
    'coordinator', None, 'HOST:PORT of process 0, where several work together.'
)
_NUM_PROCESSES = flags.DEFINE_integer(
    'num_processes', None, 'How many processes work together.', lower_bound=1
)
_PROCESS_ID = flags.DEFINE_integer(
    'process_id', None, 'Which of them this is, from 0.', lower_bound=0
)


def main(argv: list[str]) -> int:
  """Runs the command; returns the exit code."""
  # JAX and Orbax tell on stderr, as information, what concerns nobody here.
  logging.set_verbosity(logging.WARNING)
  try:
    if len(argv) > 1:
      raise errors.UserError(f"unknown argument '{argv[1]}'; see --help.")
    if _CONFIG.value is None:
      raise errors.UserError('--config is missing; try configs/fig3b.py.')
    return _run()
  except Exception as error:  # pylint: disable=broad-exception-caught
    if isinstance(error, errors.StorageError):
      _leave(1, f'error: {error}')
    if isinstance(error, errors.UserError) or _is_ours(error):
      # Orbax complains at length of an orderly exit after a broken file.
      _leave(2, f'error: {error}')
    if processes.number() > 1:
      # An orderly exit would wait for the others, who wait for this one.
      _leave(1, traceback.format_exc())
    raise


def _run() -> int:
  config_flag = flags.FLAGS['config']
  config = command_line.apply_overrides(
      _CONFIG.value, config_flags.get_override_values(config_flag)
  )
  runs = sweeps.select(sweeps.expand(config), _ONLY.value)
  _join_processes()
  _make_host_devices(runs)
  get_config = command_line.load_config(
      config_flags.get_config_filename(config_flag)
  )
  published = sweeps.expand(get_config('paper'))
  prepared = runner.prepare(runs, pathlib.Path(_RESULTS.value))
  if _DESCRIBE.value:
    print(json.dumps([run.describe(published) for run in prepared], indent=2))
    return 0
  if processes.is_first():
    report.announce(prepared, published)
  try:
    _train(prepared)
  except interrupt.Interrupted as interruption:
    processes.part()
    # A compiled step may still be running on a worker thread.
    _leave(
        0 if interruption.signal_number == signal.SIGTERM else 130,
        f'{interruption}: saved; the same command goes on from here.',
    )
  if processes.is_first():
    report.print_table(prepared, published)
  return 0


def _train(prepared: list[runner.PreparedRun]) -> None:
  with interrupt.Guard() as guard:
    for index, run in enumerate(prepared):
      if processes.from_first(np.array(run.folder.finished)):
        continue
      with progress.Bar(run, index, len(prepared)) as bar:
        runner.execute(run, guard, bar.update)
      if processes.is_first():
        report.print_result(run)


def _join_processes() -> None:
  """Joins others that train the same runs, if the flags say so."""
  by_hand = (_COORDINATOR.value, _NUM_PROCESSES.value, _PROCESS_ID.value)
  if by_hand != (None, None, None) or _DISTRIBUTED.value:
    processes.join(*by_hand)


def _leave(exit_code: int, message: str) -> None:
  """Exits at once, whatever other threads are doing."""
  print(message, file=sys.stderr)
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(exit_code)


def _make_host_devices(runs: list[sweeps.Run]) -> None:
  """Divides the CPU into devices; without effect on other platforms."""
  number = _HOST_DEVICES.value
  if 'xla_force_host_platform_device_count' in os.environ.get('XLA_FLAGS', ''):
    if number is not None:
      raise errors.UserError(
          f'--host_devices is {number}, but XLA_FLAGS sets the number of host'
          ' devices too; use one of them.'
      )
    return
  if number is None:
    number = _default_host_devices(runs)
  jax.config.update('jax_num_cpu_devices', number)


def _default_host_devices(runs: list[sweeps.Run]) -> int:
  if jax.distributed.is_initialized():
    return 1  # Whoever starts several processes has divided the machine.
  sizes = [
      run.config['training'][field]
      for run in runs
      for field in ('meta_batch_size', 'num_evaluation_tasks')
  ]
  cores = len(os.sched_getaffinity(0))
  return max(n for n in range(1, cores + 1) if not any(s % n for s in sizes))


def _is_ours(error: Exception) -> bool:
  """Whether an error is a ValueError about user input: raised by our constructors.

  Tasks and models raise plain ValueErrors; those from inside of a library are
  bugs and keep their traceback.
  """
  *_, (frame, _) = traceback.walk_tb(error.__traceback__)
  package = pathlib.Path(__file__).parent
  return (
      isinstance(error, ValueError)
      and package in pathlib.Path(frame.f_code.co_filename).parents
  )


def run() -> Any:
  """Entry point of the console script."""
  app.run(lambda argv: sys.exit(main(argv)), flags_parser=command_line.parse)


if __name__ == '__main__':
  run()
