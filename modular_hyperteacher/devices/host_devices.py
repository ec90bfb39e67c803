"""Divides a CPU into devices, over which meta-batches are divided."""

from collections.abc import Iterable, Mapping
import logging
import os
from typing import Any

import jax

from modular_hyperteacher import errors

MOST = 256  # Starting ten thousands of them would take longer than minutes.


def divide(number: int | None, suitable: int) -> None:
  """Sets the number of host devices; no effect on other platforms.

  Args:
    number: the number of devices that the user asked for, if any.
    suitable: the number otherwise.

  Raises:
    UserError: if the user asked for a number, but XLA_FLAGS sets one too, or
      JAX has been initialised already.
  """
  if 'xla_force_host_platform_device_count' in os.environ.get('XLA_FLAGS', ''):
    if number is not None:
      raise errors.UserError(
          f'--host_devices is {number}, but XLA_FLAGS sets the number of host'
          ' devices too; use one of them.'
      )
    return
  try:
    jax.config.update('jax_num_cpu_devices', number or suitable)
  except RuntimeError as error:
    if number is not None:
      raise errors.UserError(
          f'--host_devices is {number}, but a task or model computes with JAX'
          ' as soon as it is imported; use NumPy outside of its functions.'
      ) from error
    logging.warning(
        'a task or model computes with JAX as soon as it is imported: training'
        ' on one host device; use NumPy outside of its functions'
    )


def suit(configs: Iterable[Mapping[str, Any]], num_cores: int) -> int:
  """Returns the most devices, up to one per core, that divide all batches.

  Args:
    configs: of the runs to train.
    num_cores: processor cores to use.
  """
  if jax.distributed.is_initialized():
    return 1  # The launcher of several processes has divided the machine.
  sizes = [
      config['training'][field]
      for config in configs
      for field in ('meta_batch_size', 'num_evaluation_tasks')
  ]
  return max(
      n for n in range(1, num_cores + 1) if not any(s % n for s in sizes)
  )
