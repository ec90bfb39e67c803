"""One process trains a run at a time, even where several launchers share it.

Whoever wants a run puts a lock file of its own into the run's folder and looks
around: if there is another's, it takes its own back. So of two that come at
the same time at least one sees the other, and never do both go on.

A lock whose holder died is stale. On the holder's own machine that is known at
once, from the process table. From elsewhere it is known by watching: holders
touch their file every few seconds, and one that has not changed for two minutes
of the watcher's own clock is given up. No clock of two machines is compared,
and none that can be set: a jump of the time of day changes nothing.

A holder that was only suspended finds its lock gone when it wakes, and stops
(`Lock.check`).
"""

import json
import os
import pathlib
import socket
import threading
import time
from typing import NamedTuple
import uuid

from modular_hyperteacher import errors
from modular_hyperteacher import results

BEAT_S = 10.0
STALE_S = 120.0
_PATTERN = '.lock-*.json'


class Holder(NamedTuple):
  """A process, as others can recognise it."""

  host: str
  machine: str | None  # boot and process namespace; None if unknown
  pid: int
  started: str | None  # in ticks since boot

  def __str__(self) -> str:
    return f'process {self.pid} on {self.host}'


class LostError(errors.MachineError):
  """Another process has taken over the run."""


class Lock:
  """A run that this process holds; a thread keeps the lock fresh."""

  def __init__(self, path: pathlib.Path, beat_s: float):
    self._path = path
    self._released = threading.Event()
    self._thread = threading.Thread(
        target=self._beat, args=(beat_s,), daemon=True
    )
    self._thread.start()

  def _beat(self, beat_s):
    while not self._released.wait(beat_s):
      try:
        os.utime(self._path)
      except OSError:
        pass  # Gone, which `check` will tell, or a file server's bad moment.

  def check(self) -> None:
    """Raises LostError if the run is no longer this process's."""
    if not self._path.exists():
      raise LostError(
          f'{self._path.parent}: this process was suspended for so long that'
          ' another could take the run over; it goes on there.'
      )

  def release(self) -> None:
    """Lets others have the run."""
    self._released.set()
    self._thread.join()
    self._path.unlink(missing_ok=True)


class Locks:
  """Takes runs, and remembers for how long others' locks did not change."""

  def __init__(self, beat_s: float = BEAT_S, stale_s: float = STALE_S):
    self._beat_s = beat_s
    self._stale_s = stale_s
    self._seen: dict[pathlib.Path, _Sight] = {}

  def acquire(self, folder: results.RunFolder) -> Lock | None:
    """Returns the lock of a run, or None if another process has it.

    Raises:
      UserError: if the folder cannot be written to.
    """
    folder.create()
    stale = self._find(folder.path)
    if not all(self._is_stale(path) for path in stale):
      return None
    own = folder.path / _PATTERN.replace('*', uuid.uuid4().hex)
    _create(own)
    if self._find(folder.path) - stale != {own}:
      own.unlink(missing_ok=True)  # Another came at the same time.
      return None
    for path in stale:
      path.unlink(missing_ok=True)
    return Lock(own, self._beat_s)

  def holder(self, folder: results.RunFolder) -> Holder | None:
    """Returns who has a run, if anybody has and can be told."""
    for path in sorted(self._find(folder.path)):
      if not self._is_stale(path) and (holder := _read(path)):
        return holder
    return None

  def are_alive(self, folder: results.RunFolder) -> bool:
    """Whether a process is known to live that has a run.

    Of one on another machine this is known once its file has changed, which
    it does every few seconds; until then, False.
    """
    return any(
        _is_alive(_read(path))
        or (path in self._seen and self._seen[path].has_changed)
        for path in self._find(folder.path)
    )

  def is_free(self, folder: results.RunFolder) -> bool:
    """Whether nobody has a run, as far as can be told by now."""
    return all(self._is_stale(path) for path in self._find(folder.path))

  def _find(self, path):
    return set(path.glob(_PATTERN))

  def _is_stale(self, path):
    alive = _is_alive(_read(path))
    if alive is not None:
      return not alive
    try:
      changed = path.stat().st_mtime_ns
    except FileNotFoundError:
      return False  # Released just now; look again next time.
    now = time.monotonic()
    sight = self._seen.get(path)
    if sight is None or changed != sight.changed:
      sight = _Sight(changed, now, has_changed=sight is not None)
      self._seen[path] = sight
    return now - sight.since > self._stale_s


class _Sight(NamedTuple):
  """What was seen of a lock file that another machine may keep fresh."""

  changed: int  # when, by the file's own time
  since: float  # our own clock, when it was first seen so
  has_changed: bool  # since it was first seen at all


def _create(path: pathlib.Path) -> None:
  pid = os.getpid()
  holder = Holder(socket.gethostname(), _machine(), pid, _started(pid))
  # Whole or not at all: nobody could tell whose an empty one is.
  unfinished = path.with_suffix('.new')
  try:
    unfinished.write_text(json.dumps(holder._asdict()))
    unfinished.rename(path)
  except OSError as error:
    unfinished.unlink(missing_ok=True)
    raise errors.StorageError(path, error.strerror) from error


def _read(path) -> Holder | None:
  try:
    return Holder(**json.loads(path.read_text()))
  except (OSError, TypeError, ValueError):
    return None


def _is_alive(holder: Holder | None) -> bool | None:
  """Whether a holder lives; None if the process table cannot tell."""
  if not (holder and holder.machine and holder.machine == _machine()):
    return None
  started = _started(holder.pid)
  if started is None:
    try:
      os.kill(holder.pid, 0)
    except PermissionError:
      return None  # It, or a later one of that number, is hidden from us.
    except ProcessLookupError:
      pass
  return started == holder.started


def _machine() -> str | None:
  """Identifies what process numbers are unique in, until it is started anew."""
  try:
    boot = pathlib.Path('/proc/sys/kernel/random/boot_id').read_text().strip()
    return f'{boot}/{os.stat("/proc/self/ns/pid").st_ino}'
  except OSError:
    return None  # Not Linux.


def _started(pid: int) -> str | None:
  """Returns when a process started; None if it is dead, or hidden."""
  try:
    stat = pathlib.Path(f'/proc/{pid}/stat').read_text()
  except OSError:
    return None
  # The name, in brackets, may hold anything.
  state, *fields = stat.rpartition(')')[2].split()
  return None if state in 'ZX' else fields[18]
