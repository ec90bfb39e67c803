"""Saves and restores a run; a resumed run equals an uninterrupted one.

Orbax writes each checkpoint to a temporary folder that is then renamed, so a
kill at any moment leaves the previous one intact. Checkpoints hold only arrays
and rows, so loading one cannot execute code. Checksums of both detect damage;
the newest undamaged checkpoint is used.

Orbax's CheckpointManager is not used: it neither replaces the checkpoint of a
step nor falls back to an older one if the newest is damaged.
"""

from collections.abc import Iterable, Iterator
import contextlib
import errno
import hashlib
import os
import pathlib
import re
import shutil
import sys
import time
from typing import Any

from absl import logging
import jax
import numpy as np
import orbax.checkpoint as ocp

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted
from modular_hyperteacher.devices import multihost

# One to resume from, and one in case it is damaged.
_NUM_KEPT = 2
_ARRAYS = 'default'
_CHECKSUM = 'sha256'  # Of the arrays and, on the second line, of the rows.
_ROWS = 'metrics.csv'
_UNFINISHED = '.writing'
_REPLACED = '.replaced-'  # Followed by the step.
# Faults of the machine or its network: the file itself may be undamaged.
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

  Of several processes, only the first reads and writes.
  """

  def __init__(self, folder: pathlib.Path) -> None:
    self._folder = folder.absolute()
    # Rows of the restored checkpoint; None if it has none.
    self.rows: bytes | None = None
    first_alone = ocp.options.MultiprocessingOptions(
        primary_host=0, active_processes={0}
    )
    self._orbax = ocp.Checkpointer(
        ocp.StandardCheckpointHandler(multiprocessing_options=first_alone),
        multiprocessing_options=first_alone,
    )

  def steps(self) -> list[int]:
    """Returns the steps of all checkpoints, the newest first."""
    names = (path.name for path in self._folder.glob('*'))
    steps = (int(name) for name in names if re.fullmatch('0|[1-9][0-9]*', name))
    return sorted(steps, reverse=True)

  def save(self, step: int, tree: Any, rows: bytes = b'') -> None:
    """Saves a pytree of arrays and rows; replaces a checkpoint of this step.

    A run that was stopped during an evaluation saves the step twice: without
    and with the evaluation's rows. An equal checkpoint is not written again.

    Raises:
      StorageError: if writing fails; older checkpoints are unchanged.
    """
    checksum = f'{_checksum(tree)}\n{hashlib.sha256(rows).hexdigest()}'
    if not multihost.is_primary() or self._read_checksum(step) == checksum:
      return
    unfinished = self._folder / _UNFINISHED
    # Orbax logs tracebacks of its threads; we report one line.
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.FATAL)
    try:
      shutil.rmtree(unfinished, ignore_errors=True)  # of a killed process
      unfinished.mkdir(parents=True)
      with _silent_threads():
        self._orbax.save(unfinished / _ARRAYS, args=ocp.args.StandardSave(tree))
      (unfinished / _ROWS).write_bytes(rows)
      (unfinished / _CHECKSUM).write_text(checksum, 'utf-8')
      self._put(unfinished, step)
    except Exception as error:  # Orbax raises many types for full disks.
      _remove(unfinished)
      raise errors.StorageError(
          self._folder / str(step), _reason(error)
      ) from error
    finally:
      logging.set_verbosity(verbosity)
    for old in self.steps()[_NUM_KEPT:]:
      shutil.rmtree(self._folder / str(old), ignore_errors=True)

  def _read_checksum(self, step: int) -> str | None:
    content = untrusted.read_bytes(self._folder / str(step) / _CHECKSUM)
    return content.decode() if content else None

  def _put(self, path: pathlib.Path, step: int) -> None:
    """Renames a checkpoint to its step; a kill loses no checkpoint."""
    target = self._folder / str(step)
    aside = self._folder / f'{_REPLACED}{step}'
    if target.exists():
      target.rename(aside)
    path.rename(target)
    shutil.rmtree(aside, ignore_errors=True)

  def _undo_replacements(self) -> None:
    """Restores checkpoints that a killed process had moved aside."""
    for aside in self._folder.glob(f'{_REPLACED}*'):
      target = self._folder / aside.name.removeprefix(_REPLACED)
      if target.exists():
        shutil.rmtree(aside, ignore_errors=True)
      else:
        aside.rename(target)

  def restore(self, like: Any, newest_only: bool = False) -> Any | None:
    """Returns the newest undamaged checkpoint as host arrays, or None.

    Newer, damaged ones are reported on stderr and moved aside, so that later
    checkpoints can take their names.

    Args:
      like: a pytree of arrays with the expected structure and shapes.
      newest_only: do not fall back to an older checkpoint.

    Raises:
      UserError: if all checkpoints are damaged. They are left unchanged.
      MachineError: if reading fails because of a possibly temporary fault.
    """
    abstract = jax.tree.map(
        lambda x: np.empty(np.shape(x), np.asarray(x).dtype), like
    )
    restored = None
    if multihost.is_primary():
      restored = self._newest_sound(abstract, newest_only)
    if not multihost.broadcast_from_primary(np.array(restored is not None)):
      return None
    return multihost.broadcast_from_primary(
        abstract if restored is None else restored
    )

  def _newest_sound(self, abstract: Any, newest_only: bool) -> Any | None:
    damaged = {}
    self._undo_replacements()
    for step in self.steps()[: 1 if newest_only else None]:
      try:
        restored = self._read(step, abstract)
      except Exception as error:  # Orbax raises many types for broken files.
        number = _error_number(error)
        if number in _NOT_DAMAGE:
          raise errors.MachineError(
              f'cannot read checkpoint {self._folder / str(step)}:'
              f' {os.strerror(number)}. It is left unchanged; try again.'
          ) from error
        damaged[step] = error
        continue
      for damaged_step, error in damaged.items():
        self._set_aside(damaged_step, error, step)
      return restored
    if damaged:
      step, error = next(iter(damaged.items()))
      advice = f' All others are, too. Delete {self._folder} to start again.'
      raise errors.UserError(
          f'checkpoint {self._folder / str(step)} cannot be read'
          f' ({_reason(error)}): it is damaged or of another version.'
          f'{"" if newest_only else advice}'
      ) from error
    return None

  def _read(self, step: int, abstract: Any) -> Any:
    folder = self._folder / str(step)
    with _silent_threads():
      restored = self._orbax.restore(
          folder / _ARRAYS, args=ocp.args.StandardRestore(abstract)
      )
    checksum = self._read_checksum(step)
    if not checksum:
      raise ValueError('its checksum is missing')
    rows = untrusted.read_bytes(folder / _ROWS)
    found = [_checksum(restored)]
    # Checkpoints of earlier versions of this package have no rows.
    if rows is not None:
      found.append(hashlib.sha256(rows).hexdigest())
    if checksum.split('\n') != found:
      raise ValueError('its checksum is wrong')
    self.rows = rows
    return restored

  def _set_aside(self, step: int, error: Exception, used_step: int) -> None:
    path = self._folder / str(step)
    aside = self._folder.with_name(f'damaged-checkpoint-{step}')
    while aside.exists():
      aside = aside.with_name(f'{aside.name}-again')
    print(
        f'warning: checkpoint {path} is damaged ({_reason(error)}); moved to'
        f' {aside.name}, resuming from step {used_step} instead.',
        file=sys.stderr,
        flush=True,
    )
    path.rename(aside)


@contextlib.contextmanager
def _silent_threads() -> Iterator[None]:
  """Keeps Orbax's threads from printing tracebacks.

  After a failure the hook stays in place, because threads may print even after
  the call has returned; the caller reports the error.
  """
  hook = sys.unraisablehook
  sys.unraisablehook = lambda *_: None
  yield
  sys.unraisablehook = hook  # Not reached after a failure, see above.


def _checksum(tree: Any) -> str:
  leaves = jax.tree_util.tree_leaves_with_path(tree)
  return hash_arrays((jax.tree_util.keystr(p), leaf) for p, leaf in leaves)


def hash_arrays(named: Iterable[tuple[str, Any]]) -> str:
  """Returns a hash of all names, dtypes, shapes and bytes."""
  digest = hashlib.sha256()
  for name, leaf in named:
    array = np.asarray(leaf)
    digest.update(f'{name} {array.dtype.str} {array.shape}\n'.encode())
    digest.update(array.tobytes())
  return digest.hexdigest()


def _remove(folder: pathlib.Path) -> None:
  """Removes a folder that threads of Orbax may still be writing to."""
  for _ in range(20):
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
      return
    time.sleep(0.05)


def _error_number(error: Exception) -> int | None:
  """Returns the operating system's error number, if there is one."""
  found = re.search(r"os_error_code='(\d+)'", str(error))  # of Orbax's threads
  return int(found.group(1)) if found else getattr(error, 'errno', None)


def _reason(error: Exception) -> str:
  """Returns a short description of the error."""
  text = str(error)
  for known in (
      'its checksum is wrong',
      'its checksum is missing',
      'No space left on device',
  ):
    if known in text:
      return known
  if number := _error_number(error):
    return os.strerror(number)
  lines = [line.strip() for line in text.splitlines() if line.strip()]
  what = f': {untrusted.shorten(lines[0])}' if lines else ''
  return f'{type(error).__name__}{what}'
