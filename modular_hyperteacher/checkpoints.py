"""Saving and restoring a run; a resumed run equals an unbroken one.

Orbax writes each checkpoint to a temporary folder that is then renamed, so that
a kill at any moment leaves the previous one intact. Arrays only: nothing that
is loaded can execute. A checksum of the arrays tells a damaged checkpoint; the
newest sound one is used.
"""

import contextlib
import errno
import hashlib
import os
import pathlib
import re
import shutil
import sys
from typing import Any

from absl import logging
import jax
import numpy as np
import orbax.checkpoint as ocp

from modular_hyperteacher import errors
from modular_hyperteacher import processes

# One to go on from, and one in case it is damaged.
_NUM_KEPT = 2
_ARRAYS = 'default'
_CHECKSUM = 'sha256'
_UNFINISHED = '.writing'
_REPLACED = '.replaced-'  # And the step.
# Faults of the machine or its network, which say nothing of a file's content.
_NOT_DAMAGE = {
    errno.EACCES,
    errno.EIO,
    errno.ELOOP,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.EPERM,
    errno.ESTALE,
    errno.ETIMEDOUT,
}


class Checkpoints:
  """The checkpoints of one run, by outer step; the newest two are kept.

  Of several processes, the first reads and writes, for all of them.
  """

  def __init__(self, folder: pathlib.Path):
    self._folder = folder.absolute()
    first_alone = ocp.options.MultiprocessingOptions(
        primary_host=0, active_processes={0}
    )
    self._orbax = ocp.Checkpointer(
        ocp.StandardCheckpointHandler(multiprocessing_options=first_alone),
        multiprocessing_options=first_alone,
    )

  def _steps(self):
    """Returns the steps of all checkpoints, the newest first."""
    names = (path.name for path in self._folder.glob('*'))
    return sorted((int(name) for name in names if name.isdigit()), reverse=True)

  def save(self, step: int, tree: Any) -> None:
    """Saves a pytree of arrays under its step, in place of any other.

    Nothing is written if it is there already. A run that was stopped while it
    evaluated has saved the step, and saves it again with what evaluating found.

    Raises:
      StorageError: if it cannot be written; older checkpoints are as before.
    """
    if not processes.is_first() or self._holds(step, tree):
      return
    unfinished = self._folder / _UNFINISHED
    # Orbax logs the traceback of each of its threads; ours is one line.
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.FATAL)
    try:
      shutil.rmtree(unfinished, ignore_errors=True)  # of a killed process
      unfinished.mkdir(parents=True)
      with _silent_threads():
        self._orbax.save(
            unfinished / _ARRAYS, args=ocp.args.StandardSave(tree)
        )
      (unfinished / _CHECKSUM).write_text(_checksum(tree))
      self._put(unfinished, step)
    except Exception as error:  # Orbax raises many kinds for full disks.
      shutil.rmtree(unfinished, ignore_errors=True)
      raise errors.StorageError(
          self._folder / str(step), _reason(error)
      ) from error
    finally:
      logging.set_verbosity(verbosity)
    for old in self._steps()[_NUM_KEPT:]:
      shutil.rmtree(self._folder / str(old), ignore_errors=True)

  def _holds(self, step, tree):
    checksum = self._folder / str(step) / _CHECKSUM
    return checksum.exists() and checksum.read_text() == _checksum(tree)

  def _put(self, path, step):
    """Moves a checkpoint to its place; a kill in between loses neither."""
    place = self._folder / str(step)
    aside = self._folder / f'{_REPLACED}{step}'
    if place.exists():
      place.rename(aside)
    path.rename(place)
    shutil.rmtree(aside, ignore_errors=True)

  def _undo_replacements(self):
    """Puts back what a killed process had moved aside."""
    for aside in self._folder.glob(f'{_REPLACED}*'):
      place = self._folder / aside.name.removeprefix(_REPLACED)
      if place.exists():
        shutil.rmtree(aside, ignore_errors=True)
      else:
        aside.rename(place)

  def restore(self, like: Any, newest_only: bool = False) -> Any | None:
    """Returns the newest sound checkpoint as host arrays, or None.

    Damaged ones that are newer are named on stderr and moved aside, out of
    the way of the ones that are to come.

    Args:
      like: a pytree of arrays with the structure and shapes to expect.
      newest_only: take no older one in place of a damaged one.

    Raises:
      UserError: if there are checkpoints, but none is sound. Nothing is moved
        or deleted.
      MachineError: if the newest cannot be read now; another time it may.
    """
    abstract = jax.tree.map(
        lambda x: np.empty(np.shape(x), np.asarray(x).dtype), like
    )
    restored = None
    if processes.is_first():
      restored = self._newest_sound(abstract, newest_only)
    if not processes.from_first(np.array(restored is not None)):
      return None
    return processes.from_first(abstract if restored is None else restored)

  def _newest_sound(self, abstract, newest_only):
    damaged = {}
    self._undo_replacements()
    for step in self._steps()[: 1 if newest_only else None]:
      try:
        restored = self._read(step, abstract)
      except Exception as error:  # Orbax raises many kinds for broken files.
        number = _error_number(error)
        if number in _NOT_DAMAGE:
          raise errors.MachineError(
              f'cannot read checkpoint {self._folder / str(step)}:'
              f' {os.strerror(number)}. It was left as it is; try again.'
          ) from error
        damaged[step] = error
        continue
      self._set_aside(damaged, step)
      return restored
    if damaged:
      step, error = next(iter(damaged.items()))
      consequence = (
          '.'
          if newest_only
          else f', and there is no older one that can. Delete {self._folder} to'
          ' go on from the start.'
      )
      raise errors.UserError(
          f'checkpoint {self._folder / str(step)} cannot be read'
          f' ({_reason(error)}): it is damaged, or of another version'
          f'{consequence}'
      ) from error
    return None

  def _read(self, step, abstract):
    folder = self._folder / str(step)
    with _silent_threads():
      restored = self._orbax.restore(
          folder / _ARRAYS, args=ocp.args.StandardRestore(abstract)
      )
    checksum = folder / _CHECKSUM
    # Checkpoints of earlier versions of this package have no checksum.
    if checksum.exists() and checksum.read_text() != _checksum(restored):
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
      while aside.exists():
        aside = aside.with_name(f'{aside.name}-again')
      path.rename(aside)


@contextlib.contextmanager
def _silent_threads():
  """Lets no thread of Orbax's print a traceback of its own.

  Where reading or writing fails, they do so even after the call has failed, so
  the silence stays; the caller says all there is to say.
  """
  hook = sys.unraisablehook
  sys.unraisablehook = lambda *_: None
  yield
  sys.unraisablehook = hook  # Not after a failure: threads may still speak.


def _checksum(tree: Any) -> str:
  """Returns a hash of all names, types, shapes and bytes."""
  digest = hashlib.sha256()
  for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
    array = np.asarray(leaf)
    name = jax.tree_util.keystr(path)
    digest.update(f'{name} {array.dtype.str} {array.shape}\n'.encode())
    digest.update(array.tobytes())
  return digest.hexdigest()


def _error_number(error: Exception) -> int | None:
  """Returns the operating system's error number, if that is what it is."""
  told = re.search(r"os_error_code='(\d+)'", str(error))  # by Orbax's threads
  return int(told.group(1)) if told else getattr(error, 'errno', None)


def _reason(error: Exception) -> str:
  """Returns what went wrong, in a few words."""
  text = str(error)
  for known in ('its checksum is wrong', 'No space left on device'):
    if known in text:
      return known
  return type(error).__name__
