"""Checks from shapes alone whether a run fits into memory.

The estimate is a lower bound: parameters and optimiser state, the adapted
parameters and examples of a chunk of tasks, and keys and metrics per task. It
does not include XLA's buffers.
"""

from collections.abc import Iterator, Mapping
import contextlib
import math
import pathlib
import re
from typing import Any

import jax

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import settings

_TASK_BYTES = 24  # A task has two keys and two metrics.


@contextlib.contextmanager
def reported() -> Iterator[None]:
  """Turns the errors of NumPy and JAX for huge sizes into a UserError."""
  try:
    yield
  except (MemoryError, OverflowError, jax.errors.JaxRuntimeError) as error:
    reason = untrusted.shorten(' '.join(str(error).split()))
    raise errors.UserError(
        'the sizes in task, model or training are too large for this machine:'
        f' {reason}.'
    ) from error


def build_experiment(
    config: Mapping[str, Any], num_devices: int
) -> settings.Experiment:
  """Returns a config's experiment; UserError if it is wrong or too large."""
  with reported():
    experiment = build.build(dict(config), num_devices)
    check(experiment, config)
  return experiment


def check(experiment: settings.Experiment, config: Mapping[str, Any]) -> None:
  """Raises UserError if a run needs more memory than is available."""
  room = _available()
  needed = reckon(experiment, config)
  if room is None or sum(needed.values()) <= room:
    return
  what, most = max(needed.items(), key=lambda item: item[1])
  raise errors.UserError(
      f'{config["model"]["name"]} on {config["task"]["name"]} needs at least'
      f' {_in_gib(sum(needed.values()))} of memory, but {_in_gib(room)} are'
      f' available; {_in_gib(most)} are for {what}.'
  )


def reckon(
    experiment: settings.Experiment, config: Mapping[str, Any]
) -> dict[str, int]:
  """Returns purpose -> a lower bound on the bytes of one process."""
  training = experiment.training
  # Devices of a CPU share its memory; each has a copy.
  on_cpu = jax.default_backend() == 'cpu'
  copies = len(training.seeds) * (jax.local_device_count() if on_cpu else 1)
  num_meta, num_fast = experiment.system.num_params
  share = -(-training.meta_batch_size // jax.device_count())
  at_once = min(experiment.execution.task_chunk_size or 1, share)
  task = config['task']

  def most(*fields: str) -> int:
    # In a task of another package, such a field may be anything.
    values = (task.get(field) for field in fields)
    return max((n for n in values if isinstance(n, int)), default=0)

  queries = most('num_query', 'num_evaluation_query', 'num_query_evaluation')
  # An example has at least one number.
  examples = (most('num_support') + queries) * max(
      1, most('input_dim') + most('output_dim')
  )
  splits = len(experiment.system.evaluation_splits)
  num_tasks = share + splits * training.num_evaluation_tasks
  of_copy = {
      # Adam's two moments, and the best parameters so far.
      'parameters (the sizes of model)': 4 * 4 * num_meta,
      'parameters of adapting tasks (execution.task_chunk_size)': (
          4 * num_fast * at_once
      ),
      'examples of tasks (task.num_support, task.num_query)': (
          4 * examples * at_once
      ),
      'tasks (training.meta_batch_size, training.num_evaluation_tasks)': (
          _TASK_BYTES * num_tasks
      ),
  }
  return {purpose: number * copies for purpose, number in of_copy.items()}


def _available() -> int | None:
  """Returns the available bytes of a device, or of the host for a CPU."""
  if jax.default_backend() != 'cpu':
    stats = jax.local_devices()[0].memory_stats() or {}
    return stats.get('bytes_limit')
  try:
    text = pathlib.Path('/proc/meminfo').read_text('utf-8')
  except OSError:
    return None  # Not Linux.
  match = re.search(r'^MemAvailable: *(\d+) kB', text, re.MULTILINE)
  return match and 1024 * int(match.group(1))


def _in_gib(number: int) -> str:
  gib = number / 2**30
  return f'{gib:.3g} GiB' if gib < 1e4 else f'10^{math.log10(gib):.0f} GiB'
