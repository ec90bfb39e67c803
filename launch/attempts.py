"""Decides which runs are sent to workers again."""

import sys
from typing import NamedTuple

from absl import flags

from modular_hyperteacher.launch import cost
from modular_hyperteacher.launch import worker
from modular_hyperteacher.runs import runner

# Time between two attempts at a run that another launcher is training.
HELD_AGAIN_S = 2.0


class Attempt(NamedTuple):
  """Runs that are sent to a worker together."""

  bundle: list[runner.PlannedRun]
  failures: int = 0  # so far
  held: bool = False  # by another launcher
  saved_steps: int = 0  # when they were sent


def attempt(
    bundle: list[runner.PlannedRun], failures: int = 0, held: bool = False
) -> Attempt:
  """Returns an attempt that continues from the saved steps."""
  return Attempt(bundle, failures, held, sum(map(cost.saved_step, bundle)))


def take_back(
    tried: Attempt, outcomes: dict[str, str] | str, unfinished: dict[str, str]
) -> list[Attempt]:
  """Returns the attempts that should follow an attempt.

  Its outcomes are what `worker.train` returned, or how the worker died. Adds
  runs that are given up to `unfinished`, run id -> why.
  """
  if isinstance(outcomes, str):
    return _after_a_death(tried, worker.FAILED + outcomes, unfinished)
  held, failed = [], []
  for run in tried.bundle:
    outcome = outcomes[run.spec.run_id]
    if outcome == worker.HELD:
      held.append(run)
    elif (
        outcome.startswith(worker.FAILED)
        and tried.failures < flags.FLAGS.retries
    ):
      failed.append(run)
    elif outcome != worker.FINISHED:
      unfinished[run.spec.run_id] = outcome
  again = []
  if held:
    again.append(attempt(held, tried.failures, held=True))
  if failed:
    again.append(attempt(failed, tried.failures + 1))
  return again


def _after_a_death(
    tried: Attempt, reason: str, unfinished: dict[str, str]
) -> list[Attempt]:
  """Returns the attempts that should follow the death of a worker."""
  left = [run for run in tried.bundle if not run.folder.finished]
  # A run that made progress is not to blame: the machine was preempted.
  progressed = sum(map(cost.saved_step, tried.bundle)) > tried.saved_steps
  failures = tried.failures + (not progressed)
  given_up = len(left) == 1 and failures > flags.FLAGS.retries
  for run in left:
    print(
        f'warning: {run.spec.run_id}: {reason.removeprefix(worker.FAILED)};'
        f' {"given up" if given_up else "tried again"}.',
        file=sys.stderr,
        flush=True,
    )
  if len(left) > 1:
    # Any of them may be the cause; alone, they will show which.
    return [attempt([run], tried.failures) for run in left]
  if given_up:
    unfinished |= {run.spec.run_id: reason for run in left}
    return []
  return [attempt([run], failures) for run in left]
