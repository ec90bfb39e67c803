"""One holder at a time, whoever comes, dies, sleeps or changes the clock."""

import contextlib
import functools
import json
import multiprocessing
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import types
from typing import Any

import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.runs import locks
from modular_hyperteacher.runs import preemption
from modular_hyperteacher.runs import run_folder
from modular_hyperteacher.runs import scheduling
from tests.helpers import commands
from tests.helpers import disks


@pytest.fixture(name='folder')
def fixture_folder(tmp_path: pathlib.Path) -> run_folder.RunFolder:
  return run_folder.RunFolder(tmp_path / 'run')


def _lock_file(folder: run_folder.RunFolder) -> pathlib.Path:
  (path,) = folder.path.glob('.lock-*')
  return path


def _take(locks_: locks.Locks, folder: run_folder.RunFolder) -> locks.Lock:
  lock = locks_.acquire(folder)
  assert lock is not None
  return lock


def test_a_run_is_held_by_one_and_released(
    folder: run_folder.RunFolder,
) -> None:
  first, second = locks.Locks(), locks.Locks()
  lock = first.acquire(folder)
  assert second.acquire(folder) is None and first.acquire(folder) is None
  assert lock is not None and first.holder(folder)
  assert f'process {os.getpid()} on' in str(second.holder(folder))
  lock.check()
  lock.release()
  assert not list(folder.path.iterdir())
  _take(second, folder).release()


_HOLD = """
import pathlib, sys, time
from modular_hyperteacher.runs import locks, run_folder
folder = run_folder.RunFolder(pathlib.Path(sys.argv[1]))
lock = locks.Locks().acquire(folder)
print("held", flush=True)
time.sleep(60)
"""


def test_a_dead_holder_on_this_machine_is_known_at_once(
    folder: run_folder.RunFolder,
) -> None:
  process = subprocess.Popen(
      [sys.executable, '-c', _HOLD, str(folder.path)],
      cwd=commands.ROOT,
      stdout=subprocess.PIPE,
  )
  assert process.stdout is not None
  assert process.stdout.readline() == b'held\n'
  taker = locks.Locks()
  assert taker.acquire(folder) is None
  os.kill(process.pid, signal.SIGKILL)
  commands.wait_until(lambda: not locks._started(process.pid))
  # Not yet waited for, it is a zombie: dead all the same.
  assert os.path.exists(f'/proc/{process.pid}')
  _take(taker, folder).release()
  process.communicate()


def _pretend(folder: run_folder.RunFolder, **changes: Any) -> pathlib.Path:
  path = _lock_file(folder)
  holder = json.loads(path.read_text())
  stat = path.stat()
  path.write_text(json.dumps(holder | changes))
  os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
  return path


def test_another_process_with_the_same_number_does_not_count(
    folder: run_folder.RunFolder,
) -> None:
  locks.Locks().acquire(folder)
  _pretend(folder, started='1')
  assert locks.Locks().acquire(folder) is not None


@pytest.mark.parametrize('jump_s', [0, 10**8, -(10**8)])
def test_elsewhere_a_holder_counts_while_its_file_changes(
    folder: run_folder.RunFolder, monkeypatch: pytest.MonkeyPatch, jump_s: int
) -> None:
  now = [1000.0]
  monkeypatch.setattr(locks.time, 'monotonic', lambda: now[0])
  lock = _take(locks.Locks(beat_s=1e9), folder)
  path = _pretend(folder, host='elsewhere', machine='another')
  watcher = locks.Locks(stale_s=120)
  wall = time.time()
  for _ in range(5):  # The file changes, whatever its time of change says.
    wall += 10 + jump_s
    os.utime(path, (wall, wall))
    assert watcher.acquire(folder) is None
    now[0] += 100
  assert str(watcher.holder(folder)).endswith(' on elsewhere')
  assert watcher.acquire(folder) is None  # 100 seconds without a change
  now[0] += 30
  taken = watcher.acquire(folder)
  assert taken is not None
  with pytest.raises(locks.LostError, match='another one took over the run'):
    lock.check()
  taken.check()
  taken.release()


def test_a_holder_keeps_its_file_fresh(folder: run_folder.RunFolder) -> None:
  lock = _take(locks.Locks(beat_s=0.01), folder)
  before = _lock_file(folder).stat().st_mtime_ns
  commands.wait_until(
      lambda: _lock_file(folder).stat().st_mtime_ns > before, timeout=10
  )
  lock.release()


def test_a_lock_file_that_says_nothing_is_watched(
    folder: run_folder.RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
  now = [0.0]
  monkeypatch.setattr(locks.time, 'monotonic', lambda: now[0])
  folder.create()
  (folder.path / '.lock-empty.json').write_text('')
  taker = locks.Locks(stale_s=5)
  assert taker.acquire(folder) is None
  assert taker.holder(folder) == 'an unknown process'
  now[0] += 6
  assert taker.acquire(folder) is not None


def test_a_full_disk_leaves_no_lock_behind(tmp_path: pathlib.Path) -> None:
  with disks.mounted(tmp_path / 'disk', 'size=64k') as disk:
    folder = run_folder.RunFolder(disk / 'run')
    folder.create()
    with contextlib.suppress(OSError), open(disk / 'filler', 'wb') as file:
      while True:
        file.write(bytes(4096))
        file.flush()
    with pytest.raises(errors.StorageError, match='No space'):
      locks.Locks().acquire(folder)
    assert not list(folder.path.iterdir())
    (disk / 'filler').unlink()
    _take(locks.Locks(), folder).release()


def _in_turn(
    folder: run_folder.RunFolder,
    monkeypatch: pytest.MonkeyPatch,
    stale_s: float,
) -> list[int]:
  """Returns what a launcher's worker takes of a run."""
  monkeypatch.setattr(
      scheduling.locks, 'Locks', functools.partial(locks.Locks, stale_s=stale_s)
  )
  with preemption.Guard() as guard:
    planned: list[Any] = [types.SimpleNamespace(folder=folder)]
    return [
        index
        for index, _, _ in scheduling.acquire_runs(planned, guard, wait=False)
    ]


def test_workers_take_over_from_a_machine_that_died(
    folder: run_folder.RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
  lock = _take(locks.Locks(beat_s=1e9), folder)
  _pretend(folder, host='elsewhere', machine='another')
  assert _in_turn(folder, monkeypatch, stale_s=1) == [0]
  with pytest.raises(locks.LostError):
    lock.check()


def test_workers_leave_a_run_to_a_machine_that_lives(
    folder: run_folder.RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
  lock = _take(locks.Locks(beat_s=0.2), folder)
  _pretend(folder, host='elsewhere', machine='another')
  started = time.monotonic()
  assert not _in_turn(folder, monkeypatch, stale_s=60)
  assert time.monotonic() - started < 30
  lock.check()
  lock.release()


def _contend(path: pathlib.Path, seed: int) -> None:
  """Takes a run 40 times; being alone with it is checked by a second file."""
  generator = random.Random(seed)
  folder, taker = run_folder.RunFolder(path), locks.Locks()
  won = 0
  while won < 40:
    lock = taker.acquire(folder)
    if lock is None:
      time.sleep(generator.uniform(0, 0.002))
      continue
    descriptor = os.open(path / 'alone', os.O_CREAT | os.O_EXCL)
    os.close(descriptor)
    os.unlink(path / 'alone')
    lock.release()
    won += 1


@pytest.mark.slow
def test_four_processes_never_hold_a_run_together(
    folder: run_folder.RunFolder,
) -> None:
  context = multiprocessing.get_context('spawn')
  contenders = [
      context.Process(target=_contend, args=(folder.path, seed))
      for seed in range(4)
  ]
  for process in contenders:
    process.start()
  for process in contenders:
    process.join(60)
    assert process.exitcode == 0
