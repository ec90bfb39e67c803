"""Finished runs on disk: folders that training wrote, and bundles of them.

A bundle is the small form that the repository holds, one folder per experiment
and preset:

  results.csv.gz   one row per run, seed, kind, split and metric
  curves.csv.gz    loss, accuracy and so on at every evaluation
  provenance.json  run id -> config and sessions, as the run wrote them
  parameters/      trained parameters of some runs, see
                   `modular_hyperteacher.pretrained`
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
import dataclasses
import gzip
import hashlib
import io
import pathlib
import sys
from typing import Any, NamedTuple
import zlib

import pandas as pd

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher import untrusted
from modular_hyperteacher.runs import records
from modular_hyperteacher.runs import run_folder
from modular_hyperteacher.runs import store
from modular_hyperteacher.untrusted import tables

VALUE_COLUMNS = ('run_id', 'seed', 'kind', 'split', 'metric', 'value')
DIVERGED = 'diverged'  # Metric of a seed whose last loss is not finite.
CURVE_COLUMNS = ('run_id', 'step', 'seed', 'split', 'metric', 'value')
# Whatever claims compare, so that effects over training can be drawn.
CURVE_SPLITS = r'valid|test|unrelated|ood(_\w+)?'
CURVE_METRICS = (
    r'loss|variance|pooled_relative_loss|refit_relative_loss_max'
    r'|accuracy(_all|_withheld)?|closed(_\w+)?|(term|rule)_f1_\w+'
    r'|(prediction_|relative_)?r2|decoding_r2(_\w+)?'
    r'|alignment|identification_residual_direct'
)
_RESULTS = 'results.csv.gz'
_CURVES = 'curves.csv.gz'


@dataclasses.dataclass(frozen=True, eq=False)
class Run(store.Finished):
  """A finished run, and its provenance.

  Attributes:
    sessions: the sessions of its training.
    drawn: seed -> the digest of the tasks that it learned, if known.
  """

  sessions: list[records.Session]
  drawn: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class FinishedRuns(NamedTuple):
  """The finished runs of one experiment at one preset."""

  values: pd.DataFrame  # Columns VALUE_COLUMNS; missing values have no row.
  runs: dict[str, Run]  # By run id.


def has_results(folder: pathlib.Path) -> bool:
  """Returns whether a folder holds a finished run or a bundle.

  A folder that cannot be read counts as empty, with a warning on stderr.
  """
  try:
    return _is_bundle(folder) or any(folder.glob('*/summary.json'))
  except errors.UserError as error:
    _warn(error)
    return False


def read(folder: pathlib.Path) -> FinishedRuns:
  """Returns the finished runs of `<experiment>/<preset>/`, in either form.

  Damaged runs and bundles are skipped with a warning on stderr.
  """
  rows: list[tuple[Any, ...]] = []
  runs = {}
  if _is_bundle(folder):
    try:
      return _read_bundle(folder)
    except errors.UserError as error:
      _warn(error)
  for run in _find_finished(folder):
    try:
      values, runs[run.path.name] = _read_run(run)
      rows += values
    except errors.UserError as error:
      _warn(error)
  return FinishedRuns(pd.DataFrame(rows, columns=list(VALUE_COLUMNS)), runs)


def _find_finished(folder: pathlib.Path) -> Iterator[run_folder.RunFolder]:
  """Yields the finished runs in a folder, links included, in order."""
  for path in sorted(folder.glob('*')):
    run = run_folder.RunFolder(path)
    try:
      if run.finished:
        yield run
    except errors.UserError as error:
      _warn(error)


def _warn(error: Exception) -> None:
  print(errors.line(f'warning: {error} It is left out.'), file=sys.stderr)


def _read_record(folder: pathlib.Path) -> records.Bundle:
  """Returns a bundle's provenance.json; UserError if missing or damaged."""
  stored = run_folder.RunFolder(folder).read('provenance.json', records.Bundle)
  if stored is None:
    raise errors.UserError(f'{folder} has no provenance.json.')
  return stored


def _read_bundle(folder: pathlib.Path) -> FinishedRuns:
  stored: Any = _read_record(folder)
  for run_id, run in stored['runs'].items():
    records.check_run(run_id, run['config'], str(folder))
  values = _read_table(folder, _RESULTS, VALUE_COLUMNS, stored)
  runs = {r: Run(folder, r, **run) for r, run in stored['runs'].items()}
  return FinishedRuns(values, runs)


def _read_run(run: run_folder.RunFolder) -> tuple[list[tuple[Any, ...]], Run]:
  """Returns the rows of a run's summary, and the run."""
  config: Any = run.read('config.json', records.Config)
  provenance: Any = run.read('provenance.json', records.Provenance)
  summary = run.read('summary.json', records.Summary)
  if config is None or provenance is None:
    raise errors.UserError(f'{run.path} lacks config.json or provenance.json.')
  records.check_seeds(summary, config, str(run.path))
  untrusted.check_name(run.path.name, 'a run id')
  records.check_run(run.path.name, config, str(run.path))
  rows = list(_summary_rows(run.path.name, summary))
  return rows, Run(run.path.parent, run.path.name, config, **provenance)


def _read_table(
    folder: pathlib.Path, name: str, columns: Sequence[str], stored: Any
) -> pd.DataFrame:
  """Returns a table of a bundle after checking its hash and run ids."""
  path = folder / name
  packed = untrusted.read_bytes(path)
  if packed is None:
    raise errors.UserError(f'{path} is missing.')
  untrusted.check_digest(path, packed, stored.get('sha256', {}).get(name))
  try:
    with gzip.open(io.BytesIO(packed)) as file:
      content = file.read(untrusted.MAX_BYTES + 1)
  except (EOFError, OSError, zlib.error) as error:
    raise errors.UserError(f'{path} cannot be unpacked ({error}).') from error
  if len(content) > untrusted.MAX_BYTES:
    raise errors.UserError(
        f'{path} unpacks to more than {untrusted.MAX_BYTES} bytes.'
    )
  table = tables.parse(path, content, columns)
  known, in_table = stored['runs'].keys(), set(table['run_id'])
  if lost := known - in_table:
    raise errors.UserError(f'{path} has no row of {sorted(lost)[0]}.')
  if unknown := in_table - known:
    name = untrusted.shorten(sorted(unknown, key=str)[0])
    raise errors.UserError(f'{path} has rows of {name}, of an unknown run.')
  if table.duplicated(list(columns[:-1])).any():
    raise errors.UserError(f'{path} has two rows for one value.')
  return table


def read_whole(folder: pathlib.Path) -> tuple[FinishedRuns, pd.DataFrame]:
  """Returns the runs whose results and curves can be read, and all curves."""
  finished, curves = read(folder), read_curves(folder)
  kept = set(curves['run_id'])
  runs = {
      run_id: run for run_id, run in finished.runs.items() if run_id in kept
  }
  values = finished.values[finished.values['run_id'].isin(runs)]
  return FinishedRuns(values, runs), curves


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

  Raises:
    UserError: if the bundle is damaged.
  """
  folders = [source]
  if _is_bundle(target):
    # These raise if the bundle is damaged: replacing it would lose its runs.
    _read_bundle(target)
    _read_table(target, _CURVES, CURVE_COLUMNS, _read_record(target))
    folders.append(target)
  runs: dict[str, Run] = {}
  values, curves = [], []
  for folder in folders:
    finished, frame = read_whole(folder)
    new = [r for r in finished.runs if r not in runs and r not in drop]
    runs |= {run_id: finished.runs[run_id] for run_id in new}
    values.append(finished.values[finished.values['run_id'].isin(new)])
    curves.append(frame[frame['run_id'].isin(new)])
  target.mkdir(parents=True, exist_ok=True)
  bundle = FinishedRuns(pd.concat(values, ignore_index=True), runs)
  curve = pd.concat(curves, ignore_index=True)
  # Empty values say nothing, but for losses, which tell that a seed diverged.
  curve = curve[curve['value'].notna() | (curve['metric'] == 'loss')]
  packed = {
      _CURVES: _compress(curve),
      _RESULTS: _compress(bundle.values),
  }
  digests = {n: hashlib.sha256(x).hexdigest() for n, x in packed.items()}
  stored = {
      run_id: (
          {'config': run.config, 'sessions': run.sessions}
          | ({'drawn': run.drawn} if run.drawn else {})
      )
      for run_id, run in runs.items()
  }
  record = files.encode_record({'runs': stored, 'sha256': digests})
  contents = {**packed, 'provenance.json': record}
  files.write_together({target / n: x for n, x in contents.items()})
  return bundle


def _compress(table: pd.DataFrame) -> bytes:
  """Returns gzipped CSV of six digits; equal tables give equal bytes."""
  # An empty table makes columns of objects, whose digits are not rounded.
  table = table.astype({'value': float})
  text = table.to_csv(index=False, float_format='%.6g')
  return gzip.compress(text.encode(), mtime=0)


def _is_bundle(folder: pathlib.Path) -> bool:
  return files.exists(folder / _RESULTS)


def _summary_rows(
    run_id: str, summary: Any
) -> Iterator[tuple[str, int, str, str, str, float]]:
  """Yields the rows of summary.json; nulls (empty splits) have none.

  A diverged seed has a single row of kind 'last': its metric `DIVERGED` is 1.
  """
  diverged = summary.get('diverged', ())
  for seed in diverged:
    yield run_id, seed, 'last', 'valid', DIVERGED, 1.0
  for kind in records.KINDS:
    for split, metrics in summary[kind].items():
      for metric, values in metrics.items():
        for seed, value in zip(summary['seeds'], values, strict=True):
          if value is not None and (kind != 'last' or seed not in diverged):
            yield run_id, seed, kind, split, metric, float(value)


def read_curves(folder: pathlib.Path) -> pd.DataFrame:
  """Returns metrics at every evaluation, columns CURVE_COLUMNS.

  These are the metrics that claims compare.

  Damaged curves are skipped with a warning on stderr.
  """
  curves = []
  if _is_bundle(folder):
    try:
      stored = _read_record(folder)
      return _read_table(folder, _CURVES, CURVE_COLUMNS, stored)
    except errors.UserError as error:
      _warn(error)
  for run in _find_finished(folder):
    try:
      frame = run.read_metrics()
    except errors.UserError as error:
      _warn(error)
      continue
    frame = frame[
        frame['split'].str.fullmatch(CURVE_SPLITS)
        & frame['metric'].str.fullmatch(CURVE_METRICS)
    ]
    curves.append(frame.assign(run_id=run.path.name)[list(CURVE_COLUMNS)])
  empty = pd.DataFrame(columns=list(CURVE_COLUMNS))
  return pd.concat(curves or [empty], ignore_index=True)
