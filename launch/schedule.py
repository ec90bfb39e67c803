"""Computes which runs fit into a time budget on several workers."""

from collections.abc import Iterable
import heapq
from typing import NamedTuple


class Need(NamedTuple):
  """Seconds that a run takes."""

  lead_s: float  # until there is something to save
  total_s: float  # until it is finished


def schedule(
    needs: Iterable[Need | None], num_workers: int, budget_s: float
) -> tuple[list[float | None], float]:
  """Assigns each run, in order, to the worker that is free first.

  The schedule ends at the first run whose need is None.

  Returns:
    For each run, the seconds until it would be finished, even if the budget
    ends before, or None if it could not save anything within the budget. And
    the longest idle time of a worker within the budget, in seconds.
  """
  free = [0.0] * num_workers
  ends: list[float | None] = []
  for need in needs:
    if need is None:
      break
    if free[0] + need.lead_s > budget_s:
      ends.append(None)
    else:
      ends.append(free[0] + need.total_s)
      heapq.heapreplace(free, min(free[0] + need.total_s, budget_s))
  return ends, budget_s - free[0]
