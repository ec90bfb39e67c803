"""Which runs fit into a budget, trained in order on several workers."""

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

  Args:
    needs: of the runs; the schedule ends at the first None.
    num_workers: how many runs are trained at once.
    budget_s: seconds until all workers stop.

  Returns:
    When each run would be finished, in seconds from now, even if the budget
    ends before; None for a run that could not save anything within it. And the
    seconds of the budget that one worker, at least, has nothing to do.
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
