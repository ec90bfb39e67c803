"""The progress of a whole sweep on the terminal."""

import sys
import time

import tqdm

from modular_hyperteacher.cli import summary
from modular_hyperteacher.launch import cost
from modular_hyperteacher.launch import plan as plans
from modular_hyperteacher.runs import runner

# Share of a launcher's time spent on reading the results folder.
_SHARE_OF_LOOKING = 0.02


class Progress:
  """The progress of a whole sweep, read from its folder."""

  def __init__(self, plan: plans.Plan) -> None:
    self._left = [run for bundle in plan.bundles for run in bundle]
    self._num_runs = len(self._left)
    self._done = 0
    self._next_look = 0.0
    total = sum(self._total(run) for run in self._left)
    self._bar = tqdm.tqdm(
        total=total,
        initial=sum(map(cost.saved_step, self._left)),
        unit='step',
        mininterval=0.5 if sys.stderr.isatty() else 20,
        file=sys.stderr,
        disable=plan.limits.get('measure', False),
    )

  def __enter__(self) -> 'Progress':
    return self

  def __exit__(self, *_: object) -> None:
    self._look()
    self._bar.close()

  def _total(self, run: runner.PlannedRun) -> int:
    return run.spec.config['training']['num_outer_steps']

  def update(self) -> None:
    """Shows saved progress and prints new results; call it often.

    Reads the folder rarely if that is slow: a sweep may have many runs, and its
    folder may be on a network file system.
    """
    started = time.monotonic()
    if started >= self._next_look:
      self._look()
      ended = time.monotonic()
      self._next_look = ended + (ended - started) / _SHARE_OF_LOOKING

  def _look(self) -> None:
    for run in [run for run in self._left if run.folder.finished]:
      self._left.remove(run)
      self._done += self._total(run)
      with self._bar.external_write_mode(file=sys.stdout):
        summary.print_result(run)
    finished = self._num_runs - len(self._left)
    self._bar.set_description(f'{finished}/{self._num_runs} runs', False)
    steps = self._done + sum(map(cost.saved_step, self._left))
    self._bar.update(steps - self._bar.n)
