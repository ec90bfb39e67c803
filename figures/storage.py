"""Finished runs on disk: the folders that training left, and bundles of them.

A bundle is the small form that the repository carries, one folder per
experiment and preset:

  results.csv      one row per run, seed, kind, split and metric
  curves.csv       loss and accuracy at every evaluation
  provenance.json  run id -> config and sessions, as the run left them
  parameters/      of some of its runs, see `modular_hyperteacher.parameters`
"""

import pathlib
from typing import Any, Collection, NamedTuple

import pandas as pd

from modular_hyperteacher import errors
from modular_hyperteacher import results

KINDS = ('last', 'best_validation')
VALUE_COLUMNS = ('run_id', 'seed', 'kind', 'split', 'metric', 'value')
CURVE_COLUMNS = ('run_id', 'step', 'seed', 'split', 'metric', 'value')
_CURVE_SPLITS = ('valid', 'test', 'ood')
_CURVE_METRICS = ('loss', 'accuracy')


class FinishedRuns(NamedTuple):
  """The finished runs of one experiment at one preset."""

  values: pd.DataFrame  # Columns VALUE_COLUMNS; what is missing has no row.
  runs: dict[str, dict[str, Any]]  # Run id -> {'config', 'sessions'}.


def has_results(folder: pathlib.Path) -> bool:
  """Returns whether a folder holds a finished run or a bundle."""
  return _is_bundle(folder) or any(folder.glob('*/summary.json'))


def read(folder: pathlib.Path) -> FinishedRuns:
  """Returns the finished runs of `<experiment>/<preset>/`, in either form.

  Raises:
    UserError: if a file is damaged; names it.
  """
  if _is_bundle(folder):
    values = pd.read_csv(folder / 'results.csv', dtype={'value': str})
    # Python's own parser: the very same floats on every version of pandas.
    values['value'] = values['value'].map(float)
    stored = results.RunFolder(folder).read('provenance.json')
    return FinishedRuns(values, stored['runs'])
  rows, runs = [], {}
  for run in results.find_finished(folder):
    config, sessions = run.read('config.json'), run.read('provenance.json')
    try:
      runs[run.path.name] = {'config': config, **sessions}
      rows += _summary_rows(run.path.name, run.read('summary.json'))
    except (KeyError, TypeError, ValueError) as error:
      raise errors.UserError(
          f'--results: {run.path} is not a finished run as this version writes'
          ' it; move it away.'
      ) from error
  return FinishedRuns(pd.DataFrame(rows, columns=list(VALUE_COLUMNS)), runs)


def write_bundle(
    source: pathlib.Path,
    target: pathlib.Path,
    drop: Collection[str] = frozenset(),
) -> FinishedRuns:
  """Adds the finished runs in a folder to a bundle, and returns all it holds.

  Args:
    source: `<results>/<experiment>/<preset>/`, as training left it; may hold
      none.
    target: the bundle's folder. Runs that it holds already stay, unless they
      are among those added.
    drop: ids of runs that the bundle is not to hold.
  """
  places = [source, target] if _is_bundle(target) else [source]
  runs, values, curves = {}, [], []
  for place in places:
    finished = read(place)
    new = [r for r in finished.runs if r not in runs and r not in drop]
    runs |= {run_id: finished.runs[run_id] for run_id in new}
    values.append(finished.values[finished.values['run_id'].isin(new)])
    if new:
      of_place = read_curves(place)
      curves.append(of_place[of_place['run_id'].isin(new)])
  empty = pd.DataFrame(columns=list(CURVE_COLUMNS))
  target.mkdir(parents=True, exist_ok=True)
  bundle = FinishedRuns(pd.concat(values, ignore_index=True), runs)
  results.RunFolder(target).write('provenance.json', {'runs': runs})
  for name, table in (
      ('curves.csv', pd.concat([empty, *curves], ignore_index=True)),
      ('results.csv', bundle.values),
  ):
    results.write_atomically(target / name, table.to_csv(index=False))
  return bundle


def _is_bundle(folder):
  return (folder / 'results.csv').exists()


def _summary_rows(run_id, summary):
  """Yields the rows of a summary; null, an empty split, is left out."""
  for kind in KINDS:
    for split, metrics in summary[kind].items():
      for metric, values in metrics.items():
        for seed, value in zip(summary['seeds'], values, strict=True):
          if value is not None:
            yield run_id, seed, kind, split, metric, float(value)


def read_curves(folder: pathlib.Path) -> pd.DataFrame:
  """Returns loss and accuracy at every evaluation, columns CURVE_COLUMNS."""
  if _is_bundle(folder):
    return pd.read_csv(folder / 'curves.csv')
  curves = []
  for run in results.find_finished(folder):
    frame = run.read_metrics()
    frame = frame[
        frame['split'].isin(_CURVE_SPLITS)
        & frame['metric'].isin(_CURVE_METRICS)
    ]
    curves.append(frame.assign(run_id=run.path.name)[list(CURVE_COLUMNS)])
  return pd.concat(curves, ignore_index=True)
