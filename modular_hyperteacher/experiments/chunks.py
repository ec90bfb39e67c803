"""How many tasks are computed together on a device."""

import jax

from modular_hyperteacher.experiments import components
from modular_hyperteacher.models import base as models

# Tasks computed together on accelerators, where a step is thousands of small
# kernels whose time hardly depends on the number of tasks. The second number
# bounds memory: adapted parameters of a chunk, all seeds. MAML needs 3-4 GiB.
_CHUNK_SIZE = 128
_MAX_CHUNK_PARAMS = 2**24
# Cap on adapted parameters per chunk on a CPU; a single task may exceed it.
_MAX_CPU_CHUNK_PARAMS = 2**20


def best(
    entry: components.TaskEntry,
    model_name: str,
    model: models.MetaModel,
    num_seeds: int,
) -> int:
  """Returns the best number of tasks per chunk, a power of two."""
  _, num_fast = models.count_params(model)
  if jax.default_backend() == 'cpu':
    number = entry.cpu_chunk_sizes.get(model_name, entry.cpu_chunk_size)
    number = number if num_fast else _CHUNK_SIZE
    most = _MAX_CPU_CHUNK_PARAMS // max(num_fast, 1)
  else:
    number = _CHUNK_SIZE
    most = _MAX_CHUNK_PARAMS // max(num_fast * num_seeds, 1)
  return min(number, 2 ** (max(most, 1).bit_length() - 1))
