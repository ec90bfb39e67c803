"""Divides a CPU into devices; each computes a share of a meta-batch."""

from collections.abc import Iterable, Mapping
import logging
import os
from typing import Any

import jax

from modular_hyperteacher import errors

MOST = 256  # Starting many thousands would take minutes.


def divide(number: int | None, suitable: int) -> None:
  """Sets the number of host devices: the user's, if any, or a suitable one.

  It has no effect on other platforms.

  Raises:
    UserError: if the user asked for a number, but the environment sets one
      too, or JAX is already initialised.
  """
  if variable := set_by():
    if number is not None:
      raise errors.UserError(
          f'--host_devices is {number}, but {variable} also sets the number of'
          ' host devices; use only one of them.'
      )
    return
  try:
    jax.config.update('jax_num_cpu_devices', number or suitable)
  except RuntimeError as error:
    if number is not None:
      raise errors.UserError(
          f'--host_devices is {number}, but importing a task or model computes'
          ' with JAX; use NumPy outside of its functions.'
      ) from error
    logging.warning(
        'importing a task or model computes with JAX, so training uses one host'
        ' device; use NumPy outside of its functions'
    )


def set_by() -> str | None:
  """Returns the variable by which the user sets the number of host devices."""
  if 'JAX_NUM_CPU_DEVICES' in os.environ:
    return 'JAX_NUM_CPU_DEVICES'
  forced = 'xla_force_host_platform_device_count'
  return 'XLA_FLAGS' if forced in os.environ.get('XLA_FLAGS', '') else None


def cores() -> list[int]:
  """Returns the processor cores that this process may use."""
  if hasattr(os, 'sched_getaffinity'):
    return sorted(os.sched_getaffinity(0))
  return list(range(os.cpu_count() or 1))  # Not Linux.


def num_cores() -> int:
  """Returns the number of processor cores that this process may use."""
  return len(cores())


def suit(configs: Iterable[Mapping[str, Any]], num_cores: int) -> int:
  """Returns the largest number, up to `num_cores`, that divides all batches."""
  if jax.distributed.is_initialized():
    return 1  # The processes already share the machine.
  sizes = [
      config['training'][field]
      for config in configs
      for field in ('meta_batch_size', 'num_evaluation_tasks')
  ]
  return max(
      n for n in range(1, num_cores + 1) if not any(s % n for s in sizes)
  )
