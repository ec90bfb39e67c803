"""Compiles a sweep's next run while one run compiles or trains.

Tracing holds Python's lock, and compiling does not, so that together they use
two cores better than one after the other. Only on a CPU and in a single
process: a GPU's kernels are timed during compilation, and several processes
compile at the first call. The CPU time counts towards the run that trains.
"""

from collections.abc import Sequence
from concurrent import futures

import jax

from modular_hyperteacher.learning import programs
from modular_hyperteacher.runs import runner


class Ahead:
  """The programs of a sweep's runs."""

  def __init__(self, planned: Sequence[runner.PlannedRun]) -> None:
    self._planned = planned
    self._pool = futures.ThreadPoolExecutor(max_workers=2)
    self._begun: dict[int, futures.Future[programs.Programs]] = {}
    self._looks = jax.default_backend() == 'cpu' and jax.process_count() == 1

  def prepare(self, index: int) -> programs.Programs:
    """Returns a run's programs, and begins on those of the next unfinished."""
    if not self._looks:
      return self._planned[index].make_programs()
    rest = range(index + 1, len(self._planned))
    unfinished = (i for i in rest if not self._planned[i].folder.finished)
    # Others, which another process may train by now, are forgotten.
    self._begun = {
        i: self._begun.get(i) or self._pool.submit(self._compile, i)
        for i in (index, next(unfinished, index))
    }
    return self._begun.pop(index).result()

  def _compile(self, index: int) -> programs.Programs:
    compiled = self._planned[index].make_programs()
    compiled.compile(compiled.init())
    return compiled
