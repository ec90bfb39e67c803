"""Writes and reads the files of a run.

`results/<experiment>/<preset>/<run id>/` holds

  config.json      what was run
  metrics.csv      long form: step, seed, split, metric, value
  summary.json     written last, so a run is finished if this file exists
  provenance.json  commit, versions, device, wall time
  checkpoints/

Files are replaced atomically.
"""

from collections.abc import Iterable
import dataclasses
import pathlib
from typing import Any

import pandas as pd

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher import untrusted
from modular_hyperteacher.runs import records
from modular_hyperteacher.untrusted import tables

COLUMNS = ('step', 'seed', 'split', 'metric', 'value')
_METRICS = 'metrics.csv'


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
    return files.exists(self.path / 'summary.json')

  def check(self, decisive: dict[str, Any]) -> None:
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
    for block, fields in decisive.items():
      if stored.get(block) != fields:
        raise errors.UserError(
            f"--results: {self.path} holds a run whose '{block}' differs from"
            " this config's; move it away or choose another folder."
        )

  def create(self) -> None:
    """Creates the folder; raises UserError if it is not writable."""
    files.create_folder(self.path, '--results')

  def open(self, config: dict[str, Any]) -> None:
    """Creates or cleans up the folder and writes config.json."""
    self.create()
    left = files.UNFINISHED % '*'  # Killed processes left these.
    for path in (*self.path.glob(left), *self.checkpoints.glob(left)):
      try:
        path.unlink(missing_ok=True)
      except OSError as error:
        raise errors.UserError(
            f'--results: {path} cannot be removed ({error.strerror}).'
        ) from error
    self.write('config.json', config)

  def write(self, name: str, value: Any) -> None:
    """Writes what `files.encode_record` returns; StorageError if it fails."""
    files.write_atomically(self.path / name, files.encode_record(value))

  def read(self, name: str, record: Any) -> Any:
    """Returns the content of a JSON file; see `untrusted.read_json`."""
    return untrusted.read_json(self.path / name, record)

  def write_metrics(self, rows: Iterable[tuple]) -> bytes:
    """Writes tuples in the order of COLUMNS; returns what is written."""
    content = encode_metrics(rows)
    files.write_atomically(self.path / _METRICS, content)
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
    untrusted.check_digest(path, content, summary.get('metrics_sha256'))
    return tables.parse(path, content, COLUMNS)


def encode_metrics(rows: Iterable[tuple]) -> bytes:
  """Returns tuples in the order of COLUMNS in the format of metrics.csv."""
  frame = pd.DataFrame(list(rows), columns=list(COLUMNS))
  return frame.to_csv(index=False).encode()
