"""Estimates the cost of the unfinished runs of a sweep."""

from collections.abc import Callable
import time
from typing import Any

from modular_hyperteacher.profiling import flops
from modular_hyperteacher.runs import checkpoints
from modular_hyperteacher.runs import records
from modular_hyperteacher.runs import runner

# Bounds the time of a dry run of a sweep with many programs.
_MAX_COUNTING_S = 60.0


def saved_step(run: runner.PlannedRun) -> int:
  """Returns the outer steps that are done and saved."""
  if run.folder.finished:
    return run.spec.config['training']['num_outer_steps']
  steps = checkpoints.Checkpoints(run.folder.checkpoints).steps()
  return max(steps, default=0)


def estimate(
    left: list[runner.PlannedRun], runs: list[runner.PlannedRun]
) -> str:
  """Returns a sentence on the cost of unfinished runs.

  If a model has been trained in the sweep, its speed in operations per second
  gives hours; else the operations are reported.
  """
  deadline = time.monotonic() + _MAX_COUNTING_S

  def count(config: dict[str, Any]) -> float | None:
    """Returns the operations per step of all seeds; None if unknown in time."""
    if time.monotonic() > deadline:  # Tracing a program takes seconds.
      return None
    per_seed = flops.outer_step(config)
    return per_seed and len(config['training']['seeds']) * per_seed

  speeds = _measure_speeds(runs, count)
  hours, num_timed, num_unknown, total = 0.0, 0, 0, 0.0
  for run in left:
    config = run.spec.config
    steps = config['training']['num_outer_steps'] - saved_step(run)
    per_step = count(config)
    speed = speeds.get(config['model']['name'])
    if per_step is None:
      num_unknown += 1
    elif speed:
      hours += steps * per_step / speed / 3600
      num_timed += 1
    else:
      total += steps * per_step
  parts = []
  if num_timed:
    parts.append(
        f'{num_timed} runs take {hours:.2g} hours of one worker, at the speed'
        ' of earlier runs'
    )
  if num_counted := len(left) - num_timed - num_unknown:
    parts.append(
        f'{num_counted} runs of models that were never timed here need'
        f' {total:.2g} operations: {total / 3.6e15:.2g} hours at 1 TFLOP/s'
    )
  if num_unknown:
    parts.append(f'unknown for {num_unknown} runs')
  return 'cost: ' + '; '.join(parts)


def _measure_speeds(
    runs: list[runner.PlannedRun],
    count: Callable[[dict[str, Any]], float | None],
) -> dict[str, float]:
  """Returns model -> operations per second of the sweep's runs so far."""
  totals: dict[str, list[float]] = {}
  for run in runs:
    stored = run.folder.read('provenance.json', records.Provenance)
    sessions = [
        session
        for session in (stored['sessions'] if stored else ())
        if {'first_step', 'last_step', 'wall_s'} <= session.keys()
    ]
    per_step = count(run.spec.config) if sessions else None
    for session in sessions if per_step else ():
      steps = session['last_step'] - session['first_step']
      total = totals.setdefault(run.spec.config['model']['name'], [0.0, 0.0])
      total[0] += steps * per_step
      total[1] += session['wall_s']
  return {name: n / s for name, (n, s) in totals.items() if s}
