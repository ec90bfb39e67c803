"""Locks that let only one process at a time train a run.

To acquire a run, a process creates its own lock file in the run's folder, then
lists the folder: if it finds another lock file, it deletes its own and gives
up. Of two processes that try at the same time, at least one sees the other's
file, so they never both train.

A lock whose holder died is stale. On the holder's machine the process table
shows this at once. Elsewhere, a lock is stale if its file has not changed for
two minutes by the observer's monotonic clock: holders touch it every few
seconds. The clocks of different machines are never compared. A holder that was
suspended may find its lock gone when it resumes; it then stops (`Lock.check`).

filelock does not fit: it has no leases, so either nobody sees who holds a lock
on another machine, or the lock outlives a killed holder. flufl.lock has leases,
but compares the clocks of different machines.
"""

import json
import os
import pathlib
import socket
import threading
import time
from typing import NamedTuple, TypedDict
import uuid

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher import untrusted
from modular_hyperteacher.runs import run_folder

BEAT_S = 10.0
STALE_S = 120.0
_PATTERN = '.lock-*.json'


class Holder(TypedDict):
  """A lock file: the process that holds the lock."""

  host: untrusted.Name
  machine: str | None  # boot and process namespace; None if unknown
  pid: int
  started: str | None  # in ticks since boot


class LostError(errors.MachineError):
  """Another process has taken over the run."""


class Lock:
  """A run that this process holds; a thread keeps the lock fresh."""

  def __init__(self, path: pathlib.Path, beat_s: float) -> None:
    self._path = path
    self._released = threading.Event()
    self._thread = threading.Thread(
        target=self._beat, args=(beat_s,), daemon=True
    )
    self._thread.start()

  def _beat(self, beat_s: float) -> None:
    while not self._released.wait(beat_s):
      try:
        os.utime(self._path)
      except OSError:
        pass  # Deleted, which `check` reports, or a brief file-server fault.

  def check(self) -> None:
    """Raises LostError if another process has taken over the run."""
    if not files.exists(self._path):
      raise LostError(
          f'{self._path.parent}: this process was suspended for so long that'
          ' another one took over the run.'
      )

  def release(self) -> None:
    """Releases the run."""
    self._released.set()
    self._thread.join()
    self._path.unlink(missing_ok=True)


class Locks:
  """Acquires runs; tracks when other processes' locks last changed."""

  def __init__(self, beat_s: float = BEAT_S, stale_s: float = STALE_S) -> None:
    self._beat_s = beat_s
    self._stale_s = stale_s
    self._seen: dict[pathlib.Path, _Sight] = {}

  def acquire(self, folder: run_folder.RunFolder) -> Lock | None:
    """Returns the lock of a run, or None if another process holds it."""
    folder.create()
    stale = self._find(folder.path)
    if not all(self._is_stale(path) for path in stale):
      return None
    own = folder.path / _PATTERN.replace('*', uuid.uuid4().hex)
    _create(own)
    if self._find(folder.path) - stale != {own}:
      own.unlink(missing_ok=True)  # Another process tried at the same time.
      return None
    for path in stale:
      path.unlink(missing_ok=True)
    return Lock(own, self._beat_s)

  def holder(self, folder: run_folder.RunFolder) -> str | None:
    """Returns who holds a run, for a message; None if it is free."""
    paths = self._find(folder.path)
    held = [_read(path) for path in sorted(paths) if not self._is_stale(path)]
    if not held:
      return None
    known = (f'process {h["pid"]} on {h["host"]}' for h in held if h)
    return next(known, 'an unknown process')

  def are_alive(self, folder: run_folder.RunFolder) -> bool:
    """Whether a holder is known to be alive; elsewhere, that takes seconds."""
    return any(
        _is_alive(_read(path))
        or (path in self._seen and self._seen[path].has_changed)
        for path in self._find(folder.path)
    )

  def _find(self, path: pathlib.Path) -> set[pathlib.Path]:
    paths = set(path.glob(_PATTERN))
    for lock in paths:
      # One that was just released does not exist any more.
      if lock.is_symlink() or (not lock.is_file() and lock.exists()):
        raise errors.UserError(f'--results: {lock} is not a file; delete it.')
    return paths

  def _is_stale(self, path: pathlib.Path) -> bool:
    alive = _is_alive(_read(path))
    if alive is not None:
      return not alive
    try:
      changed = path.stat().st_mtime_ns
    except FileNotFoundError:
      return False  # Just released; the next call will see it.
    now = time.monotonic()
    sight = self._seen.get(path)
    if sight is None or changed != sight.changed:
      sight = _Sight(changed, now, has_changed=sight is not None)
      self._seen[path] = sight
    return now - sight.since > self._stale_s


class _Sight(NamedTuple):
  """The last observation of a lock file held on another machine."""

  changed: int  # the file's modification time
  since: float  # our monotonic clock when this time was first seen
  has_changed: bool  # since the file was first seen


def _create(path: pathlib.Path) -> None:
  pid = os.getpid()
  holder = Holder(
      host=socket.gethostname(),
      machine=_machine(),
      pid=pid,
      started=_started(pid),
  )
  # Written atomically: an empty lock file would not identify its holder.
  unfinished = path.with_suffix('.new')
  try:
    unfinished.write_text(json.dumps(holder), 'utf-8')
    unfinished.rename(path)
  except OSError as error:
    unfinished.unlink(missing_ok=True)
    raise errors.StorageError(path, error) from error


def _read(path: pathlib.Path) -> Holder | None:
  try:
    return untrusted.read_json(path, Holder)
  except (errors.MachineError, errors.UserError):
    return None


def _is_alive(holder: Holder | None) -> bool | None:
  """Whether a holder is alive; None if the process table cannot tell."""
  if not holder or not holder['machine'] or holder['machine'] != _machine():
    return None
  pid = holder['pid']
  started = _started(pid)
  if started is None:
    try:
      os.kill(pid, 0)
    except PermissionError:
      return None  # This process, or a later one with its id, is hidden.
    except (OverflowError, ProcessLookupError):
      return False
  return started == holder['started']


def _machine() -> str | None:
  """Identifies the boot and process namespace; process ids are unique in it."""
  try:
    boot = (
        pathlib.Path('/proc/sys/kernel/random/boot_id')
        .read_text('utf-8')
        .strip()
    )
    return f'{boot}/{os.stat("/proc/self/ns/pid").st_ino}'
  except OSError:
    return None  # Not Linux.


def _started(pid: int) -> str | None:
  """Returns when a process started; None if it is dead, or hidden."""
  try:
    stat = pathlib.Path(f'/proc/{pid}/stat').read_text('utf-8')
  except OSError:
    return None
  # The name, in brackets, may contain spaces and brackets.
  state, *fields = stat.rpartition(')')[2].split()
  return None if state in 'ZX' else fields[18]
