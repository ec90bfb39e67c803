"""Saving and restoring a run; a resumed run equals an unbroken one.

Orbax writes each checkpoint to a temporary folder and renames it, so that a
kill at any moment leaves the previous one intact. Arrays only: nothing that is
loaded can execute. A checksum of the arrays tells a damaged checkpoint; the
newest sound one is used.
"""

import hashlib
import pathlib
import sys
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from modular_hyperteacher import errors
from modular_hyperteacher import processes

# One to go on from, and one in case it is damaged.
_NUM_KEPT = 2
_CHECKSUM = 'sha256'


class Checkpoints:
  """The checkpoints of one run, by outer step; the newest two are kept.

  Of several processes, the first reads and writes, for all of them.
  """

  def __init__(self, folder: pathlib.Path):
    self._folder = folder
    if not processes.is_first():
      return
    folder.mkdir(parents=True, exist_ok=True)
    self._manager = ocp.CheckpointManager(
        folder.absolute(),
        options=ocp.CheckpointManagerOptions(
            max_to_keep=_NUM_KEPT,
            enable_async_checkpointing=False,
            create=False,
            multiprocessing_options=ocp.options.MultiprocessingOptions(
                primary_host=0, active_processes={0}
            ),
        ),
    )

  def save(self, step: int, tree: Any) -> None:
    """Saves a pytree of arrays under its step; a second save is a no-op.

    Raises:
      StorageError: if it cannot be written; older checkpoints are as before.
    """
    if not processes.is_first() or step in self._manager.all_steps():
      return
    try:
      self._manager.save(
          step,
          args=ocp.args.StandardSave(tree),
          custom_metadata={_CHECKSUM: _checksum(tree)},
      )
    except Exception as error:  # Orbax raises many kinds for full disks.
      raise errors.StorageError(
          self._folder / str(step), error, self._manager.latest_step()
      ) from error

  def restore(self, like: Any) -> Any | None:
    """Returns the newest sound checkpoint as host arrays, or None.

    Damaged ones that are newer are named on stderr and moved aside, out of
    the way of the ones that are to come.

    Args:
      like: a pytree of arrays with the structure and shapes to expect.

    Raises:
      UserError: if there are checkpoints, but none is sound. Nothing is moved
        or deleted.
    """
    abstract = jax.tree.map(
        lambda x: np.empty(np.shape(x), np.asarray(x).dtype), like
    )
    restored = self._newest_sound(abstract) if processes.is_first() else None
    if not processes.from_first(np.array(restored is not None)):
      return None
    return processes.from_first(abstract if restored is None else restored)

  def _newest_sound(self, abstract):
    damaged = {}
    for step in sorted(self._manager.all_steps(), reverse=True):
      try:
        restored = self._read(step, abstract)
      except Exception as error:  # Orbax raises many kinds for broken files.
        damaged[step] = error
        continue
      self._set_aside(damaged, step)
      return restored
    if damaged:
      step, error = next(iter(damaged.items()))
      raise errors.UserError(
          f'checkpoint {self._folder / str(step)} cannot be read'
          f' ({_reason(error)}): it is damaged, or of another version, and'
          f' there is no older one that can. Delete {self._folder} to go on'
          ' from the start.'
      ) from error
    return None

  def _read(self, step, abstract):
    hook = sys.unraisablehook
    # Threads that fail to read a broken file print tracebacks of their own,
    # even after the call has failed; the caller says all there is to say.
    sys.unraisablehook = lambda *_: None
    restored = self._manager.restore(
        step, args=ocp.args.StandardRestore(abstract)
    )
    expected = (self._manager.metadata(step).custom_metadata or {}).get(
        _CHECKSUM
    )
    sys.unraisablehook = hook
    # Checkpoints of earlier versions of this package have no checksum.
    if expected is not None and expected != _checksum(restored):
      raise ValueError('its checksum is wrong')
    return restored

  def _set_aside(self, damaged, sound_step):
    for step, error in damaged.items():
      path = self._folder / str(step)
      aside = self._folder.with_name(f'damaged-checkpoint-{step}')
      print(
          f'warning: checkpoint {path} is damaged ({_reason(error)}); moved to'
          f' {aside.name}, going on from step {sound_step} instead.',
          file=sys.stderr,
          flush=True,
      )
      _replace_folder(path, aside)
    if damaged:
      self._manager.reload()


def _checksum(tree: Any) -> str:
  """Returns a hash of all names, types, shapes and bytes."""
  digest = hashlib.sha256()
  for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
    array = np.asarray(leaf)
    name = jax.tree_util.keystr(path)
    digest.update(f'{name} {array.dtype.str} {array.shape}\n'.encode())
    digest.update(array.tobytes())
  return digest.hexdigest()


def _reason(error: Exception) -> str:
  """Returns what went wrong, in a few words."""
  if isinstance(error, ValueError) and 'checksum' in str(error)[:30]:
    return str(error)
  return type(error).__name__


def _replace_folder(source: pathlib.Path, target: pathlib.Path) -> None:
  """Renames a folder, under another name if the target exists."""
  number = 0
  free = target
  while free.exists():
    number += 1
    free = target.with_name(f'{target.name}-{number}')
  source.rename(free)
