"""Measures step times of a config's models, relative to a matrix product.

  python -m modular_hyperteacher.benchmark \\
      --config=configs/fig3b.py:paper --config.task.num_modules=4

One MU is the time of a float32 product of two 3072 x 3072 matrices (58 GFLOP)
in the same process, so step times in MU are comparable across machines with the
same kind of processor. `matmul_share` is the FLOP utilisation: the FLOP/s of
the step (its FLOPs are counted in the traced program) relative to those of this
matrix product. A step includes drawing the data. `operations` are those that a
step starts: steps of small models are bound by their number, rather than by
FLOPs.

On a busy machine, compare CPU times: `cpu_mu` is a step's CPU time divided by
that of the matrix product.
"""

import json
import os
import pathlib
import tempfile
import time
from typing import Any

from absl import flags
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher.cli import command_line
from modular_hyperteacher.devices import host_devices
from modular_hyperteacher.devices import platforms
from modular_hyperteacher.devices import precision
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import components
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.learning import programs
from modular_hyperteacher.profiling import flops
from modular_hyperteacher.profiling import operations
from modular_hyperteacher.runs import memory
from modular_hyperteacher.runs import provenance

_SIZE = 3072


def define_flags() -> None:
  """Defines the flags when the command runs, not at import."""
  command_line.define_config_flags('configs/fig3b.py:paper')
  command_line.define_host_devices_flag()
  flags.DEFINE_string('json', None, 'File to write the measurements to.')
  for name, default, most, text in (
      ('repeats', 5, 1_000_000, 'Number of timings; the median is reported.'),
      (
          'steps',
          1,
          1_000_000,
          (
              'Outer steps per program that is timed. Use more on a GPU or TPU,'
              ' where starting a program may take longer than a step; the'
              ' programs of training take about a second.'
          ),
      ),
      ('seeds', 1, 10_000, 'Number of seeds trained together.'),
  ):
    flags.DEFINE_integer(name, default, text, lower_bound=1, upper_bound=most)


def main() -> int:
  """Times one run per model; returns the exit code."""
  path = _locate_json()
  rows = _measure_all()
  frame = pd.DataFrame(rows)
  frame['peak_GiB'] = frame.pop('peak_bytes').astype(float) / 2**30
  print(frame.to_string(index=False, float_format='{:.3g}'.format))
  if path:
    here = {'provenance': provenance.describe()}
    content = json.dumps([row | here for row in rows], indent=2)
    files.write_atomically(path, content + '\n')
  return 0


def _locate_json() -> pathlib.Path | None:
  """Returns the path to write to, if any; raises UserError if it cannot."""
  if not flags.FLAGS.json:
    return None
  path = files.locate(flags.FLAGS.json, '--json').resolve()
  try:
    # Writing replaces what is there, be it a pipe or a device.
    errors.require(
        path.is_file() or not path.exists(),
        '--json',
        f"'{flags.FLAGS.json}'",
        'it must be a file, or not exist yet',
    )
    with tempfile.TemporaryFile(dir=path.parent):
      return path
  except OSError as error:
    raise errors.UserError(
        f"--json is '{flags.FLAGS.json}'; cannot write there"
        f' ({error.strerror}).'
    ) from error


def _measure_all() -> list[dict[str, Any]]:
  runs = command_line.read_runs()
  command_line.divide_host(runs)
  platforms.check()
  for run in runs:
    components.allow(run.config)
  by_model = {run.model: run for run in reversed(runs)}
  return [
      measure(run.config) | {'model': name}
      for name, run in reversed(by_model.items())
  ]


def measure(config: dict[str, Any]) -> dict[str, Any]:
  """Returns the measurements of one run's outer step."""
  seeds = list(range(flags.FLAGS.seeds))
  config = config | {'training': config['training'] | {'seeds': seeds}}
  built = memory.build_experiment(config, jax.device_count())
  compiled = programs.Programs(
      built.system,
      build.root_keys(built.training),
      build.draw_tasks(built),
      built.execution.optimise,
  )
  state = compiled.init()
  started = time.perf_counter()
  program = compiled.compile_training(state)
  compile_seconds = time.perf_counter() - started
  # JAX declares None for platforms that cannot tell.
  used: Any = program.memory_analysis()
  state = train(compiled, state)
  steps, units = [], []
  for _ in range(flags.FLAGS.repeats):
    units.append(unit_times())
    started = _now()
    state = train(compiled, state)
    steps.append(_now() - started)
  steps = np.array(steps) / flags.FLAGS.steps
  step_seconds, step_cpu_seconds = np.median(steps, axis=0).tolist()
  unit, unit_cpu_seconds = np.median(units, axis=0).tolist()
  per_seed = flops.outer_step(config)
  least_flops = per_seed and per_seed * len(seeds)
  return {
      'task': config['task']['name'],
      'model': config['model']['name'],
      'step_seconds': step_seconds,
      'mu': step_seconds / unit,
      'matmul_share': (
          least_flops and least_flops / step_seconds / (2 * _SIZE**3 / unit)
      ),
      'cpu_mu': step_cpu_seconds / unit_cpu_seconds,
      'peak_bytes': (
          used
          and (
              used.temp_size_in_bytes
              + used.argument_size_in_bytes
              + used.output_size_in_bytes
          )
      ),
      'operations': operations.count(program),
      'compile_seconds': compile_seconds,
      'unit_seconds': unit,
      'step_cpu_seconds': step_cpu_seconds,
      'unit_cpu_seconds': unit_cpu_seconds,
      'least_flops': least_flops,
      'num_seeds': len(seeds),
      'num_devices': jax.device_count(),
      'num_cores': host_devices.num_cores(),
      'load_average': os.getloadavg()[0],
      'task_chunk_size': built.execution.task_chunk_size,
  }


def train(
    compiled: programs.Programs, state: outer_loop.TrainState
) -> outer_loop.TrainState:
  """Takes `--steps` outer steps."""
  return jax.block_until_ready(compiled.train(state, flags.FLAGS.steps))[0]


# Float32 also on GPUs, whose default is faster and less exact.
_multiply = jax.jit(precision.at(precision.FLOAT32, jnp.matmul))


def unit_times() -> tuple[float, float]:
  """Returns the least wall and processor seconds of three matrix products."""
  matrix = jax.random.normal(jax.random.key(0), (_SIZE, _SIZE))
  jax.block_until_ready(_multiply(matrix, matrix))
  times = []
  for _ in range(3):
    started = _now()
    jax.block_until_ready(_multiply(matrix, matrix))
    times.append(_now() - started)
  wall_seconds, cpu_seconds = np.min(times, axis=0).tolist()
  return wall_seconds, cpu_seconds


def _now() -> np.ndarray:
  """Returns wall and processor seconds; only differences have a meaning."""
  return np.array([time.perf_counter(), time.process_time()])


if __name__ == '__main__':
  define_flags()
  command_line.run(main)
