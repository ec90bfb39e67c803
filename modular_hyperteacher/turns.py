"""Whose turn it is: the runs of a sweep, where several launchers share them."""

import random
import sys
from typing import Callable, Iterator

import numpy as np

from modular_hyperteacher import interrupt
from modular_hyperteacher import locks
from modular_hyperteacher import processes
from modular_hyperteacher import runner


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
    wait: if False, runs that others train are left to them.

  Raises:
    interrupt.Interrupted: when a signal asks to stop.
    UserError: if a folder cannot be written to.
  """
  if not processes.is_first():
    while (place := int(processes.from_first(np.array(-1)))) >= 0:
      yield place, planned[place], lambda: None
    return
  for place, lock in _take(planned, guard, wait):
    try:
      processes.from_first(np.array(place))
      yield place, planned[place], lock.check
    finally:
      lock.release()
  processes.from_first(np.array(-1))


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
    if not wait:
      return
    for place, folder in waiting.items():
      holder = held.holder(folder)
      if holder and told.get(place) != holder:
        told[place] = holder
        print(
            f'{folder.path.name}: {holder} is training it; waiting.',
            file=sys.stderr,
        )
    if waiting:
      # Two that wait should not go on getting into each other's way.
      guard.sleep(random.uniform(0.5, 1.5))
