"""Saves and restores a run; a resumed run equals an uninterrupted one.

A checkpoint is one .npz file of arrays, rows and a digest of both, which
replaces another atomically: a kill at any moment leaves the previous one, and
loading one executes nothing. The newest undamaged checkpoint is used.

Every process holds the whole state, so the first of them alone reads and
writes, and broadcasts what it reads.
"""

import pathlib
import re
import sys
from typing import Any

import jax
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher import untrusted
from modular_hyperteacher.devices import multihost
from modular_hyperteacher.untrusted import npz

# One to resume from, and one in case it is damaged.
_NUM_KEPT = 2
_NAME = re.compile(r'(0|[1-9][0-9]*)\.npz')
_ROWS, _DIGEST = 'rows', 'sha256'
_OWN = {
    _ROWS: npz.Expected((None,), 'u', untrusted.MAX_BYTES),
    _DIGEST: npz.Expected((64,), 'u'),
}


class Checkpoints:
  """The checkpoints of one run, by outer step; the newest two are kept."""

  def __init__(self, folder: pathlib.Path) -> None:
    self._folder = folder.absolute()
    self.rows = b''  # Of the restored checkpoint.
    # Step and digest of what this process restored or saved last.
    self._last: tuple[int, str] | None = None

  def steps(self) -> list[int]:
    """Returns the steps of all checkpoints, the newest first."""
    return [step for step, _ in self._list()]

  def _list(self) -> list[tuple[int, pathlib.Path]]:
    matches = ((_NAME.fullmatch(p.name), p) for p in self._folder.glob('*'))
    return sorted(((int(m[1]), p) for m, p in matches if m), reverse=True)

  def save(self, step: int, tree: Any, rows: bytes = b'') -> None:
    """Saves a pytree of arrays and rows; replaces a checkpoint of this step.

    A run that was stopped during an evaluation saves the step twice: without
    and with the evaluation's rows. An equal checkpoint is not written again.

    Raises:
      StorageError: if writing fails; older checkpoints are unchanged.
    """
    if not multihost.is_primary():
      return
    arrays = _named(tree) | {_ROWS: np.frombuffer(rows, np.uint8)}
    digest = files.hash_arrays(arrays.items())
    if self._last == (step, digest):
      return
    arrays[_DIGEST] = np.frombuffer(digest.encode(), np.uint8)
    path = self._folder / f'{step}.npz'
    try:
      self._folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
      raise errors.StorageError(path, error) from error
    files.write_atomically(path, files.encode_arrays(arrays))
    self._last = step, digest
    for _, old in self._list()[_NUM_KEPT:]:
      old.unlink(missing_ok=True)

  def restore(self, like: Any, newest_only: bool = False) -> Any | None:
    """Returns the newest undamaged checkpoint as host arrays, or None.

    Newer, damaged ones are reported on stderr and moved aside.

    Args:
      like: a pytree of arrays with the expected structure, shapes and dtypes.
      newest_only: do not fall back to an older checkpoint.

    Raises:
      UserError: if all checkpoints are damaged. They are left unchanged.
      MachineError: if reading fails because of a possibly temporary fault.
    """
    restored = None
    if multihost.is_primary():
      restored = self._newest_sound(like, newest_only)
    if not multihost.broadcast_from_primary(np.array(restored is not None)):
      return None
    return multihost.broadcast_from_primary(
        like if restored is None else restored
    )

  def _newest_sound(self, like: Any, newest_only: bool) -> Any | None:
    damaged = []
    for step, path in self._list()[: 1 if newest_only else None]:
      try:
        restored = self._read(step, path, like)
      except npz.DamagedError as error:
        damaged.append((path, error))
        continue
      for broken, error in damaged:
        _set_aside(broken, error, step)
      return restored
    if damaged:
      advice = f' All others are, too. Delete {self._folder} to start again.'
      raise errors.UserError(
          f'checkpoint {damaged[0][1]} It is damaged or of another version.'
          f'{"" if newest_only else advice}'
      ) from damaged[0][1]
    return None

  def _read(self, step: int, path: pathlib.Path, like: Any) -> Any:
    named = _named(like)
    expected = {
        name: npz.Expected(x.shape, x.dtype.kind, x.nbytes)
        for name, x in named.items()
    }
    try:
      with untrusted.open_file(path) as file:
        arrays = npz.parse(path, file, expected | _OWN)
    except OSError as error:
      raise errors.MachineError(
          f'cannot read checkpoint {path}: {error.strerror}. It is left'
          ' unchanged; try again.'
      ) from error
    digest = arrays.pop(_DIGEST).tobytes()
    same = all(arrays[name].dtype == x.dtype for name, x in named.items())
    if not same or files.hash_arrays(arrays.items()).encode() != digest:
      raise npz.DamagedError(f'{path} does not match its digest.')
    self.rows = arrays.pop(_ROWS).tobytes()
    self._last = step, digest.decode()
    return jax.tree.unflatten(jax.tree.structure(like), arrays.values())


def _named(tree: Any) -> dict[str, np.ndarray]:
  """Returns the leaves by their paths, in their order."""
  leaves = jax.tree_util.tree_leaves_with_path(tree)
  return {jax.tree_util.keystr(p): np.asarray(leaf) for p, leaf in leaves}


def _set_aside(path: pathlib.Path, error: Exception, used_step: int) -> None:
  """Moves a damaged file, so that a later checkpoint can take its name."""
  aside = path.parent.with_name(f'damaged-checkpoint-{path.name}')
  while aside.exists():
    aside = aside.with_name(f'{aside.name}-again')
  print(
      f'warning: checkpoint {error} Moved to {aside.name}, resuming from step'
      f' {used_step} instead.',
      file=sys.stderr,
      flush=True,
  )
  path.rename(aside)
