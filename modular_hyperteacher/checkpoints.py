"""Saving and restoring a run; a resumed run equals an unbroken one.

Orbax writes each checkpoint to a temporary folder and renames it, so that a
kill at any moment leaves the previous one intact. Arrays only: nothing that is
loaded can execute.
"""

import pathlib
import sys
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from modular_hyperteacher import errors

_NUM_KEPT = 2


class Checkpoints:
  """The checkpoints of one run, by outer step; the newest two are kept."""

  def __init__(self, folder: pathlib.Path):
    self._folder = folder
    self._manager = ocp.CheckpointManager(
        folder.absolute(),
        options=ocp.CheckpointManagerOptions(
            max_to_keep=_NUM_KEPT, enable_async_checkpointing=False
        ),
    )

  def save(self, step: int, tree: Any) -> None:
    """Saves a pytree of arrays under its step; a second save is a no-op."""
    if step not in self._manager.all_steps():
      self._manager.save(step, args=ocp.args.StandardSave(tree))

  def restore(self, like: Any) -> Any | None:
    """Returns the newest checkpoint as host arrays, or None if there is none.

    Args:
      like: a pytree of arrays with the structure and shapes to expect.

    Raises:
      UserError: if it cannot be read. Nothing is deleted.
    """
    step = self._manager.latest_step()
    if step is None:
      return None
    abstract = jax.tree.map(
        lambda x: np.empty(np.shape(x), np.asarray(x).dtype), like
    )
    hook = sys.unraisablehook
    # Threads that fail to read a broken file print tracebacks of their own,
    # even after the call has failed; the error below says all there is to say.
    sys.unraisablehook = lambda *_: None
    try:
      restored = self._manager.restore(
          step, args=ocp.args.StandardRestore(abstract)
      )
      sys.unraisablehook = hook
      return restored
    except Exception as error:  # Orbax raises many kinds for broken files.
      older = [s for s in self._manager.all_steps() if s != step]
      fallback = f'step {max(older)}' if older else 'the start'
      raise errors.UserError(
          f'checkpoint {self._folder / str(step)} cannot be read'
          f' ({type(error).__name__}): it is truncated, or of another'
          f' version. Delete this folder to go on from {fallback}.'
      ) from error
