"""Measures how long a run takes on this device, and caches the result.

Times a few training steps and one evaluation. The cache has one file per device
and program.
"""

import hashlib
import json
import math
import os
import pathlib
import time
from typing import Any, NamedTuple

import jax

from modular_hyperteacher import files
from modular_hyperteacher.devices import host_devices
from modular_hyperteacher.runs import preemption
from modular_hyperteacher.runs import provenance
from modular_hyperteacher.runs import run_folder
from modular_hyperteacher.runs import runner

# Seconds of training steps, without compilation and evaluation.
_MEASURING_S = 20.0
# Shortest time of a call to the device, as in training.
_CALL_S = 0.5


class Timing(NamedTuple):
  """Seconds that the parts of a run take, for all its seeds together."""

  startup_s: float  # until the first step is taken, compilation included
  step_s: float
  evaluation_s: float

  def remaining_s(self, config: dict[str, Any], step: int) -> float:
    """Returns the seconds that a run still needs after `step`."""
    training = config['training']
    num_steps = training['num_outer_steps'] - step
    every = training['evaluate_every']
    num_evaluations = math.ceil(training['num_outer_steps'] / every)
    num_evaluations -= step // every
    steps_s = num_steps * self.step_s
    return self.startup_s + steps_s + num_evaluations * self.evaluation_s


def program(config: dict[str, Any]) -> str:
  """Returns a text that is equal for runs that differ only in their seeds."""
  fields = {name: dict(block) for name, block in config.items()}
  seeds = fields['training'].pop('seeds')
  return json.dumps([fields, len(seeds)], sort_keys=True)


def measure(
    planned: runner.PlannedRun, guard: preemption.Guard, cache: pathlib.Path
) -> Timing:
  """Returns the timing of a run, from the cache if it is there.

  Args:
    planned: the run; nothing is written into its folder.
    guard: stops measuring when a signal arrives.
    cache: folder of the cache; created if needed.

  Raises:
    preemption.Interrupted: when a signal asks to stop.
    StorageError: if the cache cannot be written.
  """
  config = planned.spec.config
  device = _describe_device()
  digest = hashlib.sha256(f'{device} {program(config)}'.encode()).hexdigest()
  path = cache / f'{digest[:16]}.json'
  try:
    return Timing(**json.loads(path.read_text('utf-8'))['timing'])
  except (OSError, ValueError, TypeError, KeyError):
    timing = _measure(planned, guard)
  run_folder.RunFolder(cache).create()
  content = {'device': device, 'config': config, 'timing': timing._asdict()}
  files.write_atomically(path, json.dumps(content, indent=2) + '\n')
  return timing


def _describe_device() -> str:
  about = provenance.describe()
  fields = ('platform', 'device_kind', 'processor', 'num_devices')
  return ', '.join([
      *(str(about[field]) for field in fields),
      f'{host_devices.num_cores()} cores',
      # A worker shares the GPU with others.
      os.environ.get('XLA_PYTHON_CLIENT_MEM_FRACTION', 'all memory'),
      f'jax {jax.__version__}',
  ])


def _measure(planned: runner.PlannedRun, guard: preemption.Guard) -> Timing:
  max_steps = planned.spec.config['training']['num_outer_steps']
  started = time.monotonic()
  compiled = planned.make_programs()
  state = compiled.init()
  guard.call(compiled.compile, state)

  def train(num_steps: int) -> float:
    nonlocal state
    before = time.monotonic()
    state, _ = jax.block_until_ready(compiled.train(state, num_steps))
    return time.monotonic() - before

  def evaluate() -> float:
    before = time.monotonic()
    jax.block_until_ready(compiled.evaluate(state.meta_params))
    return time.monotonic() - before

  guard.call(train, 1)
  startup_s = time.monotonic() - started
  num_steps, seconds, per_call = 0, 0.0, 1
  while seconds < _MEASURING_S and num_steps < max_steps:
    latest = guard.call(train, per_call)
    num_steps += per_call
    seconds += latest
    per_call *= 1 + (latest < _CALL_S)
  evaluation_s = guard.call(evaluate)
  if evaluation_s < _CALL_S:  # The first call has extra costs.
    evaluation_s = guard.call(evaluate)
  return Timing(startup_s, seconds / num_steps, evaluation_s)
