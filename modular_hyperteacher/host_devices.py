"""Dividing a CPU into devices, over which meta-batches are divided in turn."""

import os

import jax

from modular_hyperteacher import errors
from modular_hyperteacher import sweeps


def divide(number: int | None, runs: list[sweeps.Run], num_cores: int) -> None:
  """Makes host devices; without effect on other platforms.

  Args:
    number: how many; None for what suits the runs.
    runs: what they will train.
    num_cores: how many processor cores there are to use.

  Raises:
    UserError: if XLA_FLAGS say another number.
  """
  if 'xla_force_host_platform_device_count' in os.environ.get('XLA_FLAGS', ''):
    if number is not None:
      raise errors.UserError(
          f'--host_devices is {number}, but XLA_FLAGS sets the number of host'
          ' devices too; use one of them.'
      )
    return
  jax.config.update('jax_num_cpu_devices', number or suit(runs, num_cores))


def suit(runs: list[sweeps.Run], num_cores: int) -> int:
  """Returns the most devices, up to one per core, that divide all batches."""
  if jax.distributed.is_initialized():
    return 1  # Whoever starts several processes has divided the machine.
  sizes = [
      run.config['training'][field]
      for run in runs
      for field in ('meta_batch_size', 'num_evaluation_tasks')
  ]
  return max(
      n for n in range(1, num_cores + 1) if not any(s % n for s in sizes)
  )
