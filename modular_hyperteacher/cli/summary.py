"""What the command line prints: before training, after a run, at the end."""

from collections.abc import Mapping
import math
import sys
from typing import Any

import numpy as np
import pandas as pd

from modular_hyperteacher.cli import formats
from modular_hyperteacher.experiments import published
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.runs import records
from modular_hyperteacher.runs import runner


def announce(
    planned: list[runner.PlannedRun], paper_runs: list[sweeps.Run]
) -> None:
  """Prints what will be trained and how it differs from the published scale."""
  print(headline(planned))
  for run in planned:
    if run.folder.path.parent != run.preset_folder:
      print(f'  {run.spec.run_id}: already trained in {run.folder.path}')
  changes: dict[str, list[str]] = {}
  for run in planned:
    for field, change in sweeps.deviations(run.spec, paper_runs).items():
      if field != 'training.seeds':
        changes.setdefault(field, []).append(
            f'{change["value"]} (published {change["published"]})'
        )
  if changes:
    print('NOT the published scale. Differences:')
    for field, values in changes.items():
      print(f'  {field}: {", ".join(dict.fromkeys(values))}')
  for run in planned:
    if run.folder.finished:
      continue
    for split, counts in run.count().items():
      if 0 in counts:
        print(
            f'  {run.spec.run_id}: split {split} is empty for {counts.count(0)}'
            f' of {len(counts)} seeds; its metrics are missing'
        )
  sys.stdout.flush()


def headline(planned: list[runner.PlannedRun]) -> str:
  """Returns how many runs a sweep has, and where their results go."""
  first = planned[0].spec
  finished = sum(run.folder.finished for run in planned)
  return (
      f'{first.experiment}, preset {first.preset}: {len(planned)} runs,'
      f' {finished} of them finished;'
      f' results in {planned[0].preset_folder}'
  )


def print_result(run: runner.PlannedRun) -> None:
  """Prints a finished run's main results on one line."""
  summary = _read(run)
  parts = [
      f'{split} {text}'
      for split in ('test', 'ood')
      if (text := _mean_and_error(summary, 'last', split))
  ]
  losses = summary['last'].get('test', {}).get('loss') or []
  # In JSON, NaN is None and infinity is text.
  if lost := sum(x is None or not math.isfinite(float(x)) for x in losses):
    parts.append(f'NO finite test loss for {lost} of {len(losses)} seeds')
  counts = summary['last'].get('train', {}).get('num_skipped', [])
  # Whether these were skipped depends on the config.
  if not_finite := int(sum(float(count or 0) for count in counts)):
    parts.append(f'{not_finite} gradients were not finite')
  print(f'{run.spec.run_id}: {", ".join(parts)}', flush=True)


def _read(run: runner.PlannedRun) -> Any:
  # Every finished run has a summary.
  return run.folder.read('summary.json', records.Summary)


def print_table(
    planned: list[runner.PlannedRun], paper_runs: list[sweeps.Run]
) -> None:
  """Prints the results of all runs: last evaluation, mean ± standard error."""
  rows = [_row(run, paper_runs) for run in planned]
  print()
  table = pd.DataFrame(rows, dtype=object).fillna('')
  print(table.to_string(index=False))
  print(
      '\nAccuracy (or loss) at the last step: mean ± standard error over seeds.'
      ' "best": at the lowest validation loss. "published": mean ± dispersion'
      ' as printed in the paper.'
  )


def _row(
    run: runner.PlannedRun, paper_runs: list[sweeps.Run]
) -> dict[str, Any]:
  config = run.spec.config
  summary = _read(run)
  diverged = summary.get('diverged', [])
  none = 'diverged' if diverged else ''
  swept = {
      field: value
      for field, value in run.spec.point.items()
      if field.partition('.')[0] in sweeps.DECISIVE
      and field not in ('model', 'task.task_support', 'task.meanings')
  }
  words = [field.rpartition('.')[2] for field in swept]
  return {
      'model': run.spec.model,
      'support': (
          config['task'].get('task_support', config['task'].get('meanings'))
      ),
      **{
          word if words.count(word) == 1 else field: value
          for word, (field, value) in zip(words, swept.items())
      },
      'test': _mean_and_error(summary, 'last', 'test') or none,
      'OOD': _mean_and_error(summary, 'last', 'ood') or none,
      'OOD best': _mean_and_error(summary, 'best_validation', 'ood') or none,
      'seeds': len(config['training']['seeds']),
      **({'diverged': len(diverged)} if diverged else {}),
      'published OOD': _published(run.spec, paper_runs),
      'scale': _scale(run.spec, paper_runs),
  }


def _scale(run: sweeps.Run, paper_runs: list[sweeps.Run]) -> str:
  if run.preset == 'paper' and sweeps.deviations(run, paper_runs):
    return 'paper, changed'
  return run.preset


def _published(run: sweeps.Run, paper_runs: list[sweeps.Run]) -> str | None:
  """Returns the accuracy of a run's M and K, None if there is not just one."""
  task = run.config['task']
  own = {f: task[f] for f in ('num_modules', 'max_active') if f in task}
  values = {
      published.accuracy(
          {**other.config, 'task': {**other.config['task'], **own}}, 'ood'
      )
      for other in sweeps.counterparts(run, paper_runs)
  }
  value = values.pop() if len(values) == 1 else None
  if value is None:
    return None
  error = '' if math.isnan(value[1]) else f' ± {value[1]:.3f}'
  return f'{value[0]:.3f}{error}'


def _mean_and_error(summary: Mapping[str, Any], kind: str, split: str) -> str:
  """Returns 'mean ± error' of accuracies, or else losses, of sound seeds."""
  metrics = summary[kind].get(split, {})
  values = metrics.get('accuracy', metrics.get('loss', ()))
  diverged = summary.get('diverged', ())
  kept = [v for s, v in zip(summary['seeds'], values) if s not in diverged]
  if not kept or None in kept:
    return ''
  numbers = [float(value) for value in kept]
  mean = formats.number(float(np.mean(numbers)))
  if len(numbers) == 1:
    return mean
  error = float(np.std(numbers, ddof=1)) / math.sqrt(len(numbers))
  return f'{mean} ± {formats.number(error)}'
