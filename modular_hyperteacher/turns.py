"""Whose turn it is: the runs of a sweep, where several launchers share them."""

import random
import sys
import time
from typing import Callable, Iterator

from modular_hyperteacher import interrupt
from modular_hyperteacher import locks
from modular_hyperteacher import processes
from modular_hyperteacher import runner

# What the first process tells the others in place of a run.
_END = -1
_NOT_YET = -2


def in_turn(
    planned: list[runner.PlannedRun], guard: interrupt.Guard, wait: bool = True
) -> Iterator[tuple[int, runner.PlannedRun, Callable[[], None]]]:
  """Yields each unfinished run once it is this process's to train.

  Runs that other launchers train are left until last, and waited for: they
  may be finished then, or abandoned. With each run and its place comes a
  function that raises if another process has taken it over. Of several
  processes that train together, the first decides.

  Args:
    planned: the runs.
    guard: obeyed while waiting.
    wait: if False, runs are left to others that are known to be at work. Of
      processes on other machines this is known after some seconds, and that
      they are not after two minutes.

  Raises:
    interrupt.Interrupted: when a signal asks to stop.
    UserError: if a folder cannot be written to.
  """
  if not processes.is_first():
    while (place := guard.agree(_END)) != _END:
      if place != _NOT_YET:
        yield place, planned[place], lambda: None
    return
  for place, lock in _take(planned, guard, wait):
    try:
      guard.agree(place)
      yield place, planned[place], lock.check
    finally:
      lock.release()
  guard.agree(_END)


def _take(planned, guard, wait):
  """Yields the places and locks of runs that nobody else is training."""
  held = locks.Locks()
  waiting = {place: run.folder for place, run in enumerate(planned)}
  told = {}
  while waiting:
    for place, folder in list(waiting.items()):
      if not folder.finished:
        lock = held.acquire(folder)
        if lock is None:
          continue
        if folder.finished:  # by another, between the two looks
          lock.release()
        else:
          yield place, lock
      del waiting[place]
    for place, folder in list(waiting.items()):
      if not wait and held.are_alive(folder):
        del waiting[place]
        continue
      holder = held.holder(folder)
      if not holder and not held.is_free(folder):
        holder = 'a process that cannot be told'
      if wait and holder and told.get(place) != holder:
        told[place] = holder
        print(
            f'{folder.path.name}: {holder} is training it; waiting.',
            file=sys.stderr,
        )
    if waiting:
      guard.agree(_NOT_YET)
      # Two that wait should not go on getting into each other's way.
      time.sleep(random.uniform(0.5, 1.5))
