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
    runs: the whole sweep; models that were trained here tell their speed, and
      of others the least operations are told.
  """
  seconds_per_step = _measure(runs)
  hours, timed, operations = 0.0, 0, 0.0
  for run in left:
    config = run.run.config
    steps = config['training']['num_outer_steps'] - saved_step(run)
    name = config['model']['name']
    if name in seconds_per_step:
      hours += steps * seconds_per_step[name] / 3600
      timed += 1
    else:
      seeds = len(config['training']['seeds'])
      operations += steps * seeds * flops.outer_step(config)
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


def _measure(runs):
  """Returns model -> seconds per outer step, of the sweep's runs so far."""
  totals = {}
  for run in runs:
    stored = run.folder.read('provenance.json') or {'sessions': []}
    for session in stored['sessions']:
      steps = session['last_step'] - session['first_step']
      total = totals.setdefault(run.run.config['model']['name'], [0.0, 0])
      total[0] += session['wall_s']
      total[1] += steps
  return {name: s / steps for name, (s, steps) in totals.items() if steps}
