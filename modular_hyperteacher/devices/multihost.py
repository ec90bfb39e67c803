"""One run over several processes: joining them and sharing values.

JAX's runtime joins the processes (`jax.distributed`); `pmap` then spans the
devices of all of them. Every process takes the same steps. Only process 0
writes to the results folder and reads checkpoints, which it broadcasts.
"""

import re
from typing import Any

import jax
from jax.experimental import multihost_utils
import numpy as np

from modular_hyperteacher import errors

# When one process dies, the others exit after this time. Long enough to survive
# a network interruption, short enough not to pay for idle devices.
_HEARTBEAT_TIMEOUT_S = 60


def join(
    coordinator: str | None, num_processes: int | None, process_id: int | None
) -> None:
  """Connects this process with the others; call before JAX is initialised.

  `coordinator` is HOST:PORT of process 0. If all arguments are None, JAX finds
  the processes by itself: under SLURM, on TPU pods, under Open MPI, on
  Kubernetes.

  Raises:
    UserError: if the arguments are inconsistent, or joining fails.
  """
  given = {
      '--coordinator': coordinator,
      '--num_processes': num_processes,
      '--process_id': process_id,
  }
  missing = [name for name, value in given.items() if value is None]
  if len(missing) in (1, 2):
    raise errors.UserError(
        f'{" and ".join(missing)} must be given too. To join processes, give'
        f' {", ".join(given)}, or only --distributed.'
    )
  if not (coordinator is None or num_processes is None or process_id is None):
    rule = 'it must be at least 0 and less than --num_processes, which is'
    valid = 0 <= process_id < num_processes
    errors.require(valid, '--process_id', process_id, f'{rule} {num_processes}')
    is_address = re.fullmatch(r'\S+:\d{1,5}', coordinator)
    rule = 'it must be HOST:PORT'
    errors.require(is_address, '--coordinator', f"'{coordinator}'", rule)
  jax.config.update('jax_cpu_collectives_implementation', 'gloo')
  # The service would intercept SIGTERM, which `runs.preemption` handles.
  jax.config.update('jax_enable_preemption_service', False)
  try:
    jax.distributed.initialize(
        coordinator,
        num_processes,
        process_id,
        heartbeat_timeout_seconds=_HEARTBEAT_TIMEOUT_S,
    )
  except (RuntimeError, ValueError) as error:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    raise errors.UserError(
        f'the processes could not be joined ({reason}); see'
        ' --coordinator, --num_processes, --process_id and --distributed.'
    ) from error


def number() -> int:
  """Returns the number of joined processes."""
  # `jax.process_count` alone would start the backend of a single process.
  return jax.process_count() if jax.distributed.is_initialized() else 1


def is_primary() -> bool:
  """Whether this is process 0, which writes results."""
  return number() == 1 or jax.process_index() == 0


def broadcast_from_primary(tree: Any) -> Any:
  """Returns process 0's tree of NumPy arrays, bit for bit.

  The other processes pass a tree of the same structure, shapes and dtypes.
  """
  if number() == 1:
    return tree
  # As bytes: JAX broadcasts by adding zeros, and -0.0 + 0.0 is 0.0.
  arrays, structure = jax.tree.flatten(jax.tree.map(np.asarray, tree))
  received = multihost_utils.broadcast_one_to_all(
      [np.frombuffer(x.tobytes(), np.uint8) for x in arrays]
  )
  return structure.unflatten(
      np.frombuffer(np.asarray(b).tobytes(), x.dtype).reshape(x.shape)
      for x, b in zip(arrays, received)
  )


def gather(values: Any) -> np.ndarray:
  """Returns the values of all processes, `[processes, ...]`."""
  values = np.asarray(values)
  if number() == 1:
    return values[None]
  return np.asarray(multihost_utils.process_allgather(values))


def shutdown() -> None:
  """Disconnects from the other processes; waits until all call this."""
  if number() > 1:
    jax.distributed.shutdown()
