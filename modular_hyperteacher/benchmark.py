"""Step times of a config's models, against the machine's own matrix product.

  python -m modular_hyperteacher.benchmark \
      --config=configs/fig3b.py:paper --config.task.num_modules=4

One MU is the time of a float32 product of two 3072 x 3072 matrices (58 GFLOP)
in the same process, so that step times in MU compare across machines. The
FLOP utilisation, relative to the matrix product's rate, is of the operations
counted in the traced program (`flops.py`). Data generation is part of a step.

On a machine that is busy with other work, compare processor times: `cpu_mu` is
the processor time of a step in that of a matrix product.
"""

import errno
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
from typing import Any

from absl import app
from absl import flags
from absl import logging
import jax
import jax.numpy as jnp
import pandas as pd

from modular_hyperteacher import errors
from modular_hyperteacher.cli import command_line
from modular_hyperteacher.devices import host_devices
from modular_hyperteacher.devices import precision
from modular_hyperteacher.experiments import build as experiments
from modular_hyperteacher.experiments import components
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.learning import programs
from modular_hyperteacher.profiling import flops
from modular_hyperteacher.runs import run_folder

command_line.define_config_flags('configs/fig3b.py:paper')
_JSON = flags.DEFINE_string('json', None, 'Write the measurements here.')
_REPEATS = flags.DEFINE_integer(
    'repeats', 5, 'Timings of which the median counts.', lower_bound=1
)
_STEPS = flags.DEFINE_integer(
    'steps',
    1,
    'Outer steps that are timed together. Accelerators want more: their steps'
    ' are short beside what starting a program takes, which training does once'
    ' per second.',
    lower_bound=1,
)
_HOST_DEVICES = flags.DEFINE_integer(
    'host_devices',
    None,
    'On a CPU, devices to divide it into; by default one per core, as far as'
    ' they divide the batches, as in training.',
    lower_bound=1,
    upper_bound=host_devices.MOST,
)
_NUM_SEEDS = flags.DEFINE_integer(
    'seeds', 1, 'Seeds trained side by side.', lower_bound=1
)

_SIZE = 3072


def main(argv: list[str]) -> int:
  """Times one run per model; returns the exit code."""
  logging.set_verbosity(logging.WARNING)
  try:
    command_line.check_arguments(argv)
    _check_writable()
    rows = _measure_all()
  except ValueError as error:
    if not command_line.is_users(error):
      raise
    print(f'error: {error}', file=sys.stderr)
    return 2
  frame = pd.DataFrame(rows)
  frame['peak_GiB'] = frame.pop('peak_bytes') / 2**30
  print(frame.to_string(index=False, float_format='{:.3g}'.format))
  if _JSON.value:
    run_folder.write_atomically(
        pathlib.Path(_JSON.value), json.dumps(rows, indent=2) + '\n'
    )
  return 0


def _check_writable() -> None:
  if not _JSON.value:
    return
  try:
    if pathlib.Path(_JSON.value).is_dir():
      raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    with tempfile.TemporaryFile(dir=pathlib.Path(_JSON.value).parent):
      pass
  except OSError as error:
    raise errors.UserError(
        f"--json is '{_JSON.value}'; cannot write there ({error.strerror})."
    ) from error


def _measure_all() -> list[dict[str, Any]]:
  runs = command_line.read_runs()
  cores = len(os.sched_getaffinity(0))
  suitable = host_devices.suit([run.config for run in runs], cores)
  host_devices.divide(_HOST_DEVICES.value, suitable)
  for run in runs:
    components.allow(run.config)
  by_model = {run.config['model']['name']: run for run in reversed(runs)}
  return [measure(run.config) for run in reversed(by_model.values())]


def measure(config: dict[str, Any]) -> dict[str, Any]:
  """Returns the measurements of one run's outer step."""
  seeds = list(range(_NUM_SEEDS.value))
  config = config | {'training': config['training'] | {'seeds': seeds}}
  built = experiments.build(config, jax.device_count())
  compiled = programs.Programs(
      built.system,
      experiments.root_keys(built.training),
      experiments.draw_tasks(built),
      built.execution.optimise,
  )
  state = compiled.init()
  started = time.perf_counter()
  # JAX declares None for platforms that cannot tell.
  memory: Any = compiled.compile_training(state).memory_analysis()
  compile_seconds = time.perf_counter() - started
  state = train(compiled, state)
  steps, units = [], []
  for _ in range(_REPEATS.value):
    units.append(unit_times())
    clock = _Clock()
    state = train(compiled, state)
    steps.append(clock.times())
  step_seconds, step_cpu_seconds = (
      statistics.median(times) / _STEPS.value for times in zip(*steps)
  )
  unit, unit_cpu_seconds = map(statistics.median, zip(*units))
  per_seed = flops.outer_step(config)
  operations = per_seed and per_seed * len(seeds)
  return {
      'task': config['task']['name'],
      'model': config['model']['name'],
      'step_seconds': step_seconds,
      'mu': step_seconds / unit,
      'matmul_share': (
          operations and operations / step_seconds / (2 * _SIZE**3 / unit)
      ),
      'cpu_mu': step_cpu_seconds / unit_cpu_seconds,
      'peak_bytes': (
          memory.temp_size_in_bytes
          + memory.argument_size_in_bytes
          + memory.output_size_in_bytes
      ),
      'compile_seconds': compile_seconds,
      'unit_seconds': unit,
      'step_cpu_seconds': step_cpu_seconds,
      'unit_cpu_seconds': unit_cpu_seconds,
      'least_flops': operations,
      'num_seeds': len(seeds),
      'num_devices': jax.device_count(),
      'num_cores': len(os.sched_getaffinity(0)),
      'load_average': os.getloadavg()[0],
      'task_chunk_size': built.execution.task_chunk_size,
  }


def train(
    compiled: programs.Programs, state: outer_loop.TrainState
) -> outer_loop.TrainState:
  """Takes the steps that are timed together."""
  return jax.block_until_ready(compiled.train(state, _STEPS.value))[0]


# Also where a GPU's default would be less exact, and faster.
_multiply = jax.jit(precision.at(precision.FLOAT32, jnp.matmul))


def unit_times() -> tuple[float, float]:
  """Returns wall and processor seconds of a 3072^3 float32 product.

  Those of the fastest of three.
  """
  matrix = jax.random.normal(jax.random.key(0), (_SIZE, _SIZE))
  jax.block_until_ready(_multiply(matrix, matrix))
  times = []
  for _ in range(3):
    clock = _Clock()
    jax.block_until_ready(_multiply(matrix, matrix))
    times.append(clock.times())
  return min(wall for wall, _ in times), min(cpu for _, cpu in times)


class _Clock:
  """Seconds since it was made."""

  def __init__(self) -> None:
    self._wall, self._cpu = time.perf_counter(), time.process_time()

  def times(self) -> tuple[float, float]:
    """Returns wall and processor seconds."""
    return time.perf_counter() - self._wall, time.process_time() - self._cpu


if __name__ == '__main__':
  app.run(lambda argv: sys.exit(main(argv)), flags_parser=command_line.parse)
