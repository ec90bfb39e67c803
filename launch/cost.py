"""What is left of a sweep, and what that will cost."""

from modular_hyperteacher import flops
from modular_hyperteacher import runner


def saved_step(run: runner.PlannedRun) -> int:
  """Returns the outer steps that are done and saved."""
  if run.folder.finished:
    return run.run.config['training']['num_outer_steps']
  names = (path.name for path in run.folder.checkpoints.glob('*'))
  return max((int(name) for name in names if name.isdigit()), default=0)


def estimate(
    left: list[runner.PlannedRun], runs: list[runner.PlannedRun]
) -> str:
  """Returns a sentence on what unfinished runs will cost.

  Args:
    left: the unfinished runs.
    runs: the whole sweep; models that were trained here tell their speed, in
      operations per second, and of others the least operations are told.
  """
  speeds = _measure(runs)
  hours, timed, operations = 0.0, 0, 0.0
  for run in left:
    config = run.run.config
    steps = config['training']['num_outer_steps'] - saved_step(run)
    needed = steps * _step(config)
    speed = speeds.get(config['model']['name'])
    if speed:
      hours += needed / speed / 3600
      timed += 1
    else:
      operations += needed
  parts = []
  if timed:
    parts.append(
        f'{timed} runs take {hours:.2g} hours of one worker, at the speed of'
        ' those trained here before'
    )
  if timed < len(left):
    parts.append(
        f'{len(left) - timed} runs of models that were never timed here need'
        f' at least {operations:.2g} operations, {operations / 3.6e15:.2g}'
        ' hours at 1 TFLOP/s'
    )
  return 'cost: ' + '; '.join(parts)


def _step(config):
  """Returns the least operations of an outer step of all seeds."""
  return len(config['training']['seeds']) * flops.outer_step(config)


def _measure(runs):
  """Returns model -> operations per second, of the sweep's runs so far."""
  totals = {}
  for run in runs:
    config = run.run.config
    stored = run.folder.read('provenance.json') or {'sessions': []}
    for session in stored['sessions']:
      steps = session['last_step'] - session['first_step']
      total = totals.setdefault(config['model']['name'], [0.0, 0.0])
      total[0] += steps * _step(config)
      total[1] += session['wall_s']
  return {name: n / s for name, (n, s) in totals.items() if s}
