"""Reads the checkpoints of earlier versions of this package: Orbax's folders.

They hold the arrays in `default`, the rows in metrics.csv, and in sha256 a
digest of either. Orbax is optional. It is imported only if there is such a
folder: importing it takes a second.
"""

import hashlib
import pathlib
from typing import Any

import jax
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher import untrusted


def read(folder: pathlib.Path, like: Any) -> tuple[Any, bytes | None]:
  """Returns a checkpoint's arrays and rows; the oldest have no rows.

  `like` is as for `checkpoints.Checkpoints.restore`. UserError if it cannot be
  read, or if Orbax is not installed.
  """
  try:
    import orbax.checkpoint as ocp
  except ImportError as error:
    raise errors.UserError(
        f'checkpoint {folder} is from an earlier version, which used Orbax; to'
        " read it, run: pip install 'orbax-checkpoint>=0.12'"
    ) from error
  alone = ocp.options.MultiprocessingOptions(
      primary_host=0, active_processes={0}
  )
  orbax = ocp.Checkpointer(
      ocp.StandardCheckpointHandler(multiprocessing_options=alone),
      multiprocessing_options=alone,
  )
  empty = jax.tree.map(lambda x: np.empty(np.shape(x), x.dtype), like)
  try:
    restored = orbax.restore(
        folder / 'default', args=ocp.args.StandardRestore(empty)
    )
    leaves = jax.tree_util.tree_leaves_with_path(restored)
    named = ((jax.tree_util.keystr(path), leaf) for path, leaf in leaves)
    digests = [files.hash_arrays(named)]
    rows = untrusted.read_bytes(folder / 'metrics.csv')
    if rows is not None:
      digests.append(hashlib.sha256(rows).hexdigest())
    if (folder / 'sha256').read_text().split('\n') != digests:
      raise ValueError('its digest is wrong')
  except Exception as error:  # Orbax raises many types for broken files.
    raise errors.UserError(
        f'checkpoint {folder}, from an earlier version, cannot be read'
        f' ({type(error).__name__}); try again, or delete it to resume from an'
        ' older one.'
    ) from error
  return restored, rows
