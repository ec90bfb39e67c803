"""One run over several processes: joining them and sharing values.

JAX's own runtime joins the processes (`jax.distributed`); `pmap` then spans
the devices of all of them. Every process takes the same steps. Process 0 alone
touches the results folder, and tells the others what it found there.
"""

import re
from typing import Any

import jax
from jax.experimental import multihost_utils
import numpy as np

from modular_hyperteacher import errors

# How long after the death of one process the others end too. Long enough to
# survive a network interruption, short enough not to pay for idle devices.
_HEARTBEAT_TIMEOUT_S = 60


def join(
    coordinator: str | None, num_processes: int | None, process_id: int | None
) -> None:
  """Connects this process with the others; call before JAX does anything.

  Args:
    coordinator: HOST:PORT of process 0; None lets JAX find everything by
      itself, as it can under SLURM, on TPU pods, under Open MPI and on
      Kubernetes.
    num_processes: how many there are.
    process_id: which one this is, 0 <= process_id < num_processes.

  Raises:
    UserError: if the arguments do not fit, or nothing can be found.
  """
  given = {
      '--coordinator': coordinator,
      '--num_processes': num_processes,
      '--process_id': process_id,
  }
  missing = [name for name, value in given.items() if value is None]
  if len(missing) in (1, 2):
    raise errors.UserError(
        f'{" and ".join(missing)} must be given too: processes are joined by'
        f' {", ".join(given)}, or by --distributed alone.'
    )
  if (
      process_id is not None
      and num_processes is not None
      and not 0 <= process_id < num_processes
  ):
    raise errors.UserError(
        f'--process_id is {process_id}; it must be at least 0 and less than'
        f' --num_processes, which is {num_processes}.'
    )
  if coordinator is not None and not re.fullmatch(r'\S+:\d{1,5}', coordinator):
    raise errors.UserError(
        f"--coordinator is '{coordinator}'; it must be HOST:PORT."
    )
  jax.config.update('jax_cpu_collectives_implementation', 'gloo')
  # It would intercept SIGTERM, which `runs.preemption` handles.
  jax.config.update('jax_enable_preemption_service', False)
  try:
    jax.distributed.initialize(
        coordinator,
        num_processes,
        process_id,
        heartbeat_timeout_seconds=_HEARTBEAT_TIMEOUT_S,
    )
  except (RuntimeError, ValueError) as error:
    raise errors.UserError(
        f'the processes could not be joined ({_first_line(error)}); see'
        ' --coordinator, --num_processes, --process_id and --distributed.'
    ) from error


def _first_line(error: Exception) -> str:
  return (str(error).splitlines() or [type(error).__name__])[0]


def number() -> int:
  """Returns how many processes compute together."""
  # `jax.process_count` alone would start the backend of a single process.
  return jax.process_count() if jax.distributed.is_initialized() else 1


def is_primary() -> bool:
  """Whether this is process 0, which writes results."""
  return number() == 1 or jax.process_index() == 0


def broadcast_from_primary(tree: Any) -> Any:
  """Returns process 0's tree of host arrays, on all processes, bit for bit.

  Args:
    tree: numpy arrays; the others' have the same shapes and types.
  """
  if number() == 1:
    return tree
  # As bytes: JAX broadcasts by adding zeros, and -0.0 + 0.0 is 0.0.
  arrays = jax.tree.map(np.asarray, tree)
  as_bytes = jax.tree.map(
      lambda x: np.frombuffer(x.tobytes(), np.uint8), arrays
  )
  received = multihost_utils.broadcast_one_to_all(as_bytes)
  return jax.tree.map(
      lambda x, b: np.frombuffer(np.asarray(b).tobytes(), x.dtype).reshape(
          x.shape
      ),
      arrays,
      received,
  )


def gather(values: Any) -> np.ndarray:
  """Returns the values of all processes, `[processes, ...]`."""
  values = np.asarray(values)
  if number() == 1:
    return values[None]
  return np.asarray(multihost_utils.process_allgather(values))


def shutdown() -> None:
  """Disconnects from the other processes, once all have called this."""
  if number() > 1:
    jax.distributed.shutdown()
