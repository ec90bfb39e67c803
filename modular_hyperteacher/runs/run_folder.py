"""Writes and reads the files of a run.

`results/<experiment>/<preset>/<run id>/` holds

  config.json      what was run
  metrics.csv      long form: step, seed, split, metric, value
  summary.json     written last, so a run is finished if this file exists
  provenance.json  commit, versions, device, wall time
  checkpoints/

Files are replaced atomically. Nothing is pickled.
"""

from collections.abc import Iterable, Mapping, Sequence
import contextlib
import csv
import dataclasses
import hashlib
import io
import json
import math
import os
import pathlib
import tempfile
from typing import Any
import uuid

import pandas as pd

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted
from modular_hyperteacher.runs import records

_UNFINISHED = '.writing-%s'
COLUMNS = ('step', 'seed', 'split', 'metric', 'value')
_METRICS = 'metrics.csv'
_PARSED = {'step': int, 'seed': int, 'value': float}  # Other columns are text.


@dataclasses.dataclass(frozen=True)
class RunFolder:
  """The folder of one run."""

  path: pathlib.Path

  @property
  def checkpoints(self) -> pathlib.Path:
    """The folder of the checkpoints."""
    return self.path / 'checkpoints'

  @property
  def finished(self) -> bool:
    """Whether the run is complete."""
    try:
      return (self.path / 'summary.json').exists()
    except PermissionError as error:
      raise errors.UserError(
          f'--results: {self.path} cannot be read ({error.strerror}).'
      ) from error

  def check(self, identity: dict[str, Any]) -> None:
    """Raises UserError if the folder holds a different or a damaged run."""
    try:
      summary = self.read('summary.json', records.Summary)
      self.read('provenance.json', records.Provenance)
      stored = self.read('config.json', records.Config)
      if summary is not None:
        errors.require(
            stored is not None,
            f'{self.path}/config.json',
            'missing',
            'there are results without it',
        )
        records.check_seeds(summary, stored, str(self.path))
    except errors.UserError as error:
      raise errors.UserError(
          f'--results: {error} Move {self.path} away, or repair the file.'
      ) from error
    if stored is None:
      return
    for block, fields in identity.items():
      if stored.get(block) != fields:
        raise errors.UserError(
            f"--results: {self.path} holds a run whose '{block}' differs from"
            " this config's; move it away or choose another folder."
        )

  def create(self) -> None:
    """Creates the folder; raises UserError if it is not writable."""
    create_folder(self.path, '--results')

  def open(self, config: dict[str, Any]) -> None:
    """Creates or cleans up the folder and writes config.json."""
    self.create()
    for path in self.path.glob(_UNFINISHED % '*'):  # Of killed processes.
      try:
        path.unlink(missing_ok=True)
      except OSError as error:
        raise errors.UserError(
            f'--results: {path} cannot be removed ({error.strerror}).'
        ) from error
    self.write('config.json', config)

  def write(self, name: str, value: Any) -> None:
    """Writes what `encode_record` returns.

    Raises:
      StorageError: see `write_atomically`.
    """
    write_atomically(self.path / name, encode_record(value))

  def read(self, name: str, record: Any) -> Any:
    """Returns the content of a JSON file; see `untrusted.read_json`."""
    return untrusted.read_json(self.path / name, record)

  def write_metrics(self, rows: Iterable[tuple]) -> bytes:
    """Writes metrics.csv from tuples in the order of COLUMNS; returns it.

    Raises:
      StorageError: see `write_atomically`.
    """
    content = encode_metrics(rows)
    write_atomically(self.path / _METRICS, content)
    return content

  def has_metrics(self, content: bytes) -> bool:
    """Whether metrics.csv begins with these rows."""
    written = untrusted.read_bytes(self.path / _METRICS)
    return (written or b'').startswith(content)

  def read_metrics(self) -> pd.DataFrame:
    """Returns metrics.csv; missing values are NaN.

    Raises:
      UserError: if it is missing, damaged, or does not match the summary.
    """
    path = self.path / _METRICS
    content = untrusted.read_bytes(path)
    if content is None:
      raise errors.UserError(f'{path} is missing.')
    summary = self.read('summary.json', records.Summary) or {}
    check_digest(path, content, summary.get('metrics_sha256'))
    return parse_table(path, content, COLUMNS)


def encode_record(value: Any) -> str:
  """Returns JSON; NaN becomes null, infinity 'inf' or '-inf'."""
  return json.dumps(_plain(value), indent=2, allow_nan=False) + '\n'


def encode_metrics(rows: Iterable[tuple]) -> bytes:
  """Returns tuples in the order of COLUMNS in the format of metrics.csv."""
  frame = pd.DataFrame(list(rows), columns=list(COLUMNS))
  return frame.to_csv(index=False).encode()


def check_digest(
    path: pathlib.Path, content: bytes, digest: str | None
) -> None:
  """Raises UserError if a file does not match its digest, if that is known."""
  if digest is not None and hashlib.sha256(content).hexdigest() != digest:
    raise errors.UserError(f'{path} was changed after it was written.')


def parse_table(
    path: pathlib.Path, content: bytes, columns: Sequence[str]
) -> pd.DataFrame:
  """Returns a CSV table with these columns; missing values are NaN.

  Python parses the numbers, because pandas' parser may change the last digit,
  and a resumed run must write exactly what an uninterrupted one does.

  Raises:
    UserError: names the path and the first malformed line.
  """
  line = 1
  try:
    if not content.endswith(b'\n'):
      raise ValueError('its end is missing')
    lines = csv.reader(io.StringIO(content.decode()), strict=True)
    if next(lines, None) != list(columns):
      raise ValueError(f'its columns must be {",".join(columns)}')
    parsers = [_PARSED.get(name, str) for name in columns]
    rows = []
    for fields in lines:
      line = lines.line_num
      if len(fields) != len(columns) or '' in fields[:-1]:
        raise ValueError(f'a row must have {len(columns)} fields')
      fields[-1] = fields[-1] or 'nan'
      rows.append([parse(text) for parse, text in zip(parsers, fields)])
    frame = pd.DataFrame(rows, columns=list(columns))
    kinds = {name: _PARSED[name] for name in columns if name in _PARSED}
    return frame.astype(kinds)
  except (OverflowError, ValueError, csv.Error) as error:
    raise errors.UserError(f'{path}, line {line}: {error}.') from error


def locate(name: str | os.PathLike[str], field: str) -> pathlib.Path:
  """Returns the path that a user names; ~ is the home folder.

  Args:
    name: of a folder or a file, which need not exist.
    field: where the user names it, such as '--results'.

  Raises:
    UserError: if nothing can have this name.
  """
  if not os.fspath(name):
    raise errors.UserError(f"{field} is ''; name a folder or a file.")
  try:
    path = pathlib.Path(name).expanduser()
    str(path).encode()  # Libraries that write files take only UTF-8.
    path.exists()
  except (OSError, RuntimeError, UnicodeError) as error:  # No such home, say.
    raise errors.UserError(
        f"{field} is '{name}', which cannot be a folder or a file: {error}."
    ) from error
  return path


def create_folder(folder: pathlib.Path, flag: str) -> None:
  """Creates a folder; raises UserError if it is not writable.

  Args:
    folder: with its parents.
    flag: that names it, such as '--results'.
  """
  try:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
      pass
  except OSError as error:
    raise errors.UserError(
        f'{flag}: cannot write to {folder} ({error.strerror}); choose a'
        ' writable folder.'
    ) from error


def write_atomically(path: pathlib.Path, content: str | bytes) -> None:
  """Replaces a file atomically.

  Raises:
    StorageError: if writing fails; an existing file is unchanged.
  """
  write_together({path: content})


def write_together(files: Mapping[pathlib.Path, str | bytes]) -> None:
  """Replaces files that belong together; none if one cannot be written.

  A kill or a failure between two of the renames, which take microseconds, may
  replace some of them.

  Raises:
    StorageError: if writing one fails.
  """
  temporary = {
      path: path.with_name(_UNFINISHED % uuid.uuid4().hex) for path in files
  }
  path = None
  try:
    for path, content in files.items():
      with open(temporary[path], 'xb') as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    for path in files:
      os.replace(temporary[path], path)
  except OSError as error:
    for left in temporary.values():
      with contextlib.suppress(OSError):
        left.unlink()
    assert path is not None
    raise errors.StorageError(path, error) from error


def exists(path: pathlib.Path) -> bool:
  """Returns whether a path exists; UserError if it cannot be looked up."""
  try:
    return path.exists()
  except OSError as error:  # No permission, or too long a name.
    raise errors.UserError(
        f'{path} cannot be read ({error.strerror}).'
    ) from error


def _plain(value: Any) -> Any:
  """Returns a value for JSON: NaN is None, infinity is text."""
  if isinstance(value, dict):
    return {name: _plain(entry) for name, entry in value.items()}
  if isinstance(value, (list, tuple)):
    return [_plain(entry) for entry in value]
  if isinstance(value, float) and not math.isfinite(value):
    return None if math.isnan(value) else str(value)
  return value
