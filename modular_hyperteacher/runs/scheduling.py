"""Acquires the runs of a sweep, which several launchers may share."""

from collections.abc import Callable, Iterator
import random
import sys
import time

from modular_hyperteacher.devices import multihost
from modular_hyperteacher.runs import locks
from modular_hyperteacher.runs import preemption
from modular_hyperteacher.runs import runner

# Sent by the first process to the others instead of a run's index.
_END = -1
_NOT_YET = -2


def acquire_runs(
    planned: list[runner.PlannedRun], guard: preemption.Guard, wait: bool = True
) -> Iterator[tuple[int, runner.PlannedRun, Callable[[], None]]]:
  """Yields each unfinished run while this process holds its lock.

  Each item is the run's index in `planned`, the run, and a function that raises
  if another process has taken it over. Runs that other launchers hold come
  last, once they are released or abandoned. If several processes train
  together, the first decides.

  Without `wait`, it skips runs whose holders are known to be alive. On other
  machines a live holder is detected within seconds, a dead one after two
  minutes.

  Raises:
    preemption.Interrupted: when a signal asks to stop.
    UserError: if a folder cannot be written to.
  """
  if not multihost.is_primary():
    while (index := guard.agree(_END)) != _END:
      if index != _NOT_YET:
        yield index, planned[index], lambda: None
    return
  for index, lock in _take(planned, guard, wait):
    try:
      guard.agree(index)
      yield index, planned[index], lock.check
    finally:
      lock.release()
  guard.agree(_END)


def _take(
    planned: list[runner.PlannedRun], guard: preemption.Guard, wait: bool
) -> Iterator[tuple[int, locks.Lock]]:
  """Yields index and lock of each unfinished run."""
  held = locks.Locks()
  waiting = {index: run.folder for index, run in enumerate(planned)}
  reported = {}
  while waiting:
    for index, folder in list(waiting.items()):
      if not folder.finished:
        lock = held.acquire(folder)
        if lock is None:
          continue
        if folder.finished:  # by another process, before we had the lock
          lock.release()
        else:
          yield index, lock
      del waiting[index]
    for index, folder in list(waiting.items()):
      if not wait and held.are_alive(folder):
        del waiting[index]
        continue
      holder = held.holder(folder)
      if wait and holder and reported.get(index) != holder:
        reported[index] = holder
        print(
            f'{folder.path.name}: {holder} is training it; waiting.',
            file=sys.stderr,
        )
    if waiting:
      guard.agree(_NOT_YET)
      # Random, so that waiting processes do not collide repeatedly.
      time.sleep(random.uniform(0.5, 1.5))
