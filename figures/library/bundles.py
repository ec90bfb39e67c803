"""Finished runs on disk: folders that training wrote, and bundles of them.

A bundle is the small form that the repository holds, one folder per experiment
and preset:

  results.csv.gz   one row per run, seed, kind, split and metric
  curves.csv.gz    loss and accuracy at every evaluation
  provenance.json  run id -> config and sessions, as the run wrote them
  parameters/      of some of its runs, see `modular_hyperteacher.pretrained`
"""

from collections.abc import Collection, Iterator
import gzip
import pathlib
from typing import Any, NamedTuple

import pandas as pd

from modular_hyperteacher import errors
from modular_hyperteacher.runs import run_folder

KINDS = ('last', 'best_validation')
VALUE_COLUMNS = ('run_id', 'seed', 'kind', 'split', 'metric', 'value')
CURVE_COLUMNS = ('run_id', 'step', 'seed', 'split', 'metric', 'value')
_CURVE_SPLITS = ('valid', 'test', 'ood')
_CURVE_METRICS = ('loss', 'accuracy')
_RESULTS = 'results.csv.gz'
_CURVES = 'curves.csv.gz'


class FinishedRuns(NamedTuple):
  """The finished runs of one experiment at one preset."""

  values: pd.DataFrame  # Columns VALUE_COLUMNS; missing values have no row.
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
    values = pd.read_csv(folder / _RESULTS, dtype={'value': str})
    # Python parses floats the same way whatever the version of pandas.
    values['value'] = values['value'].map(float)
    stored: Any = run_folder.RunFolder(folder).read('provenance.json')
    return FinishedRuns(values, stored['runs'])
  rows: list[tuple[Any, ...]] = []
  runs = {}
  for run in run_folder.find_finished(folder):
    config: Any = run.read('config.json')
    provenance: Any = run.read('provenance.json')
    try:
      runs[run.path.name] = {'config': config, **provenance}
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
  """Adds the finished runs in a folder to a bundle, and returns the bundle.

  Args:
    source: `<results>/<experiment>/<preset>/`, which may hold no run.
    target: the bundle's folder. Its runs stay, unless `source` holds them too.
    drop: ids of runs to leave out of the bundle.
  """
  folders = [source, target] if _is_bundle(target) else [source]
  runs: dict[str, dict[str, Any]] = {}
  values, curves = [], []
  for folder in folders:
    finished = read(folder)
    new = [r for r in finished.runs if r not in runs and r not in drop]
    runs |= {run_id: finished.runs[run_id] for run_id in new}
    values.append(finished.values[finished.values['run_id'].isin(new)])
    if new:
      frame = read_curves(folder)
      curves.append(frame[frame['run_id'].isin(new)])
  empty = pd.DataFrame(columns=list(CURVE_COLUMNS))
  target.mkdir(parents=True, exist_ok=True)
  bundle = FinishedRuns(pd.concat(values, ignore_index=True), runs)
  run_folder.RunFolder(target).write('provenance.json', {'runs': runs})
  for name, table in (
      (_CURVES, pd.concat([empty, *curves], ignore_index=True)),
      (_RESULTS, bundle.values),
  ):
    run_folder.write_atomically(target / name, _compress(table))
  return bundle


def _compress(table: pd.DataFrame) -> bytes:
  """Returns a table as gzipped CSV of six digits: equal tables, equal bytes."""
  text = table.to_csv(index=False, float_format='%.6g')
  return gzip.compress(text.encode(), mtime=0)


def _is_bundle(folder: pathlib.Path) -> bool:
  return (folder / _RESULTS).exists()


def _summary_rows(
    run_id: str, summary: Any
) -> Iterator[tuple[str, int, str, str, str, float]]:
  """Yields the rows of summary.json, except nulls, which are empty splits."""
  for kind in KINDS:
    for split, metrics in summary[kind].items():
      for metric, values in metrics.items():
        for seed, value in zip(summary['seeds'], values, strict=True):
          if value is not None:
            yield run_id, seed, kind, split, metric, float(value)


def read_curves(folder: pathlib.Path) -> pd.DataFrame:
  """Returns loss and accuracy at every evaluation, columns CURVE_COLUMNS."""
  if _is_bundle(folder):
    return pd.read_csv(folder / _CURVES)
  curves = []
  for run in run_folder.find_finished(folder):
    frame = run.read_metrics()
    frame = frame[
        frame['split'].isin(_CURVE_SPLITS)
        & frame['metric'].isin(_CURVE_METRICS)
    ]
    curves.append(frame.assign(run_id=run.path.name)[list(CURVE_COLUMNS)])
  return pd.concat(curves, ignore_index=True)
