"""What is left of a sweep, and what that will cost."""

import time
from typing import Any

from modular_hyperteacher.profiling import flops
from modular_hyperteacher.runs import records
from modular_hyperteacher.runs import runner

# A dry run answers in about a minute, however many programs a sweep has.
_MAX_COUNTING_S = 60.0


def saved_step(run: runner.PlannedRun) -> int:
  """Returns the outer steps that are done and saved."""
  if run.folder.finished:
    return run.spec.config['training']['num_outer_steps']
  names = (path.name for path in run.folder.checkpoints.glob('*'))
  return max((int(name) for name in names if name.isdigit()), default=0)


def estimate(
    left: list[runner.PlannedRun], runs: list[runner.PlannedRun]
) -> str:
  """Returns a sentence on what unfinished runs will cost.

  Args:
    left: the unfinished runs.
    runs: the whole sweep; models that were trained here tell their speed, in
      operations per second; of other models, operations are reported.
  """
  operations = _Operations(time.monotonic() + _MAX_COUNTING_S)
  speeds = _measure_speeds(runs, operations)
  hours, num_timed, num_unknown, total = 0.0, 0, 0, 0.0
  for run in left:
    config = run.spec.config
    steps = config['training']['num_outer_steps'] - saved_step(run)
    per_step = operations.per_step(config)
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
        ' of those trained here before'
    )
  if num_counted := len(left) - num_timed - num_unknown:
    parts.append(
        f'{num_counted} runs of models that were never timed here need'
        f' {total:.2g} operations, {total / 3.6e15:.2g} hours at 1 TFLOP/s'
    )
  if num_unknown:
    parts.append(f'that of {num_unknown} runs is unknown')
  return 'cost: ' + '; '.join(parts)


class _Operations:
  """Operations of an outer step; tracing a program takes seconds."""

  def __init__(self, deadline: float) -> None:
    self._deadline = deadline

  def per_step(self, config: dict[str, Any]) -> float | None:
    """Returns those of all seeds, or None if they are not known in time."""
    if time.monotonic() > self._deadline:
      return None
    per_seed = flops.outer_step(config)
    return per_seed and len(config['training']['seeds']) * per_seed


def _measure_speeds(
    runs: list[runner.PlannedRun], operations: _Operations
) -> dict[str, float]:
  """Returns model -> operations per second, of the sweep's runs so far."""
  totals: dict[str, list[float]] = {}
  for run in runs:
    stored = run.folder.read('provenance.json', records.Provenance)
    sessions = [
        session
        for session in (stored['sessions'] if stored else ())
        if {'first_step', 'last_step', 'wall_s'} <= session.keys()
    ]
    per_step = operations.per_step(run.spec.config) if sessions else None
    for session in sessions if per_step else ():
      steps = session['last_step'] - session['first_step']
      total = totals.setdefault(run.spec.config['model']['name'], [0.0, 0.0])
      total[0] += steps * per_step
      total[1] += session['wall_s']
  return {name: n / s for name, (n, s) in totals.items() if s}
