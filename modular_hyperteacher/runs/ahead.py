"""Compiles a sweep's next run while one run compiles or trains.

Tracing holds Python's lock, and compiling does not, so that together they use
two cores better than one after the other. Only on a CPU and in a single
process: a GPU's kernels are timed during compilation, and several processes
compile at the first call. The CPU time counts towards the run that trains.
"""

from collections.abc import Sequence
from concurrent import futures
from typing import Any

import jax

from modular_hyperteacher.learning import programs
from modular_hyperteacher.runs import locks
from modular_hyperteacher.runs import runner


class Ahead:
  """The programs of a sweep's runs.

  A context manager: after it, no compilation is started.
  """

  def __init__(self, planned: Sequence[runner.PlannedRun]) -> None:
    self._planned = planned
    self._locks = locks.Locks()
    self._pool = futures.ThreadPoolExecutor(max_workers=2)
    self._begun: dict[int, futures.Future[programs.Programs]] = {}
    self._looks = jax.default_backend() == 'cpu' and jax.process_count() == 1

  def __enter__(self) -> 'Ahead':
    return self

  def __exit__(self, *unused_args: Any) -> None:
    self._pool.shutdown(wait=False, cancel_futures=True)

  def prepare(self, index: int) -> programs.Programs:
    """Returns a run's programs, and begins on those of the next run."""
    if not self._looks:
      return self._planned[index].make_programs()
    wanted = [index, *self._next(index)]
    for other in self._begun.keys() - wanted:
      self._begun.pop(other).cancel()
    for i in wanted:
      if i not in self._begun:
        self._begun[i] = self._pool.submit(self._compile, i)
    return self._begun.pop(index).result()

  def _next(self, index: int) -> list[int]:
    """Returns the index of the next run that this process may train, if any."""
    for i in range(index + 1, len(self._planned)):
      folder = self._planned[i].folder
      if not folder.finished and self._locks.holder(folder) is None:
        return [i]
    return []

  def _compile(self, index: int) -> programs.Programs:
    compiled = self._planned[index].make_programs()
    # Shapes suffice; two states at a time might not fit into memory.
    compiled.compile(compiled.compile_init())
    return compiled
