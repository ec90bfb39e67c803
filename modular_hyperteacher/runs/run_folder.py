"""The files of a run: writing and reading them.

`results/<experiment>/<preset>/<run id>/` holds

  config.json      what was run
  metrics.csv      long form: step, seed, split, metric, value
  summary.json     written last: its presence means that the run is finished
  provenance.json  commit, versions, device, wall time
  checkpoints/

Files are replaced atomically. Nothing is pickled.
"""

from collections.abc import Iterable
import dataclasses
import json
import math
import os
import pathlib
import tempfile
from typing import Any, cast
import uuid

import pandas as pd

from modular_hyperteacher import errors

_UNFINISHED = '.writing-%s'
COLUMNS = ('step', 'seed', 'split', 'metric', 'value')


@dataclasses.dataclass(frozen=True)
class RunFolder:
  """The folder of one run."""

  path: pathlib.Path

  @property
  def checkpoints(self) -> pathlib.Path:
    """Where checkpoints go."""
    return self.path / 'checkpoints'

  @property
  def finished(self) -> bool:
    """Whether the run is complete."""
    return (self.path / 'summary.json').exists()

  @property
  def has_metrics(self) -> bool:
    """Whether metrics.csv is there."""
    return (self.path / 'metrics.csv').exists()

  def check(self, identity: dict[str, Any]) -> None:
    """Raises UserError if the folder holds another or a damaged run."""
    if self.finished:
      self._read_block('summary.json')
    stored = self._read_block('config.json')
    if stored is None:
      return
    for block, fields in identity.items():
      if stored.get(block) != fields:
        raise errors.UserError(
            f"--results: {self.path} holds a run whose '{block}' differs from"
            " this config's; move it away or choose another folder."
        )

  def _read_block(self, name: str) -> dict[str, Any] | None:
    value = self.read(name)
    if value is not None and not isinstance(value, dict):
      raise errors.UserError(
          f'--results: {self.path / name} is not that of a run; move the folder'
          ' away or choose another.'
      )
    return value

  def create(self) -> None:
    """Creates the folder.

    Raises:
      UserError: if it cannot be written to.
    """
    try:
      self.path.mkdir(parents=True, exist_ok=True)
      with tempfile.TemporaryFile(dir=self.path):
        pass
    except OSError as error:
      raise errors.UserError(
          f'--results: cannot write to {self.path} ({error.strerror}); choose'
          ' a folder that can be written to.'
      ) from error

  def open(self, config: dict[str, Any]) -> None:
    """Creates the folder, or tidies it, and writes config.json into it.

    Raises:
      UserError: if it cannot be written to.
    """
    self.create()
    for path in self.path.glob(_UNFINISHED % '*'):
      path.unlink(missing_ok=True)  # of killed processes
    self.write('config.json', config)

  def write(self, name: str, value: Any) -> None:
    """Writes JSON, atomically: NaN as null, infinity as 'inf' or '-inf'.

    Raises:
      StorageError: if it cannot be written; an older file is as before.
    """
    text = json.dumps(_plain(value), indent=2, allow_nan=False)
    write_atomically(self.path / name, text + '\n')

  def read(self, name: str) -> Any | None:
    """Returns a JSON file's content, or None if it does not exist."""
    path = self.path / name
    if not path.exists():
      return None
    try:
      return json.loads(path.read_text())
    except ValueError as error:
      raise errors.UserError(f'{path} is not valid JSON: {error}.') from error

  def write_metrics(self, rows: Iterable[tuple]) -> None:
    """Writes metrics.csv, atomically, from tuples in the order of COLUMNS.

    Raises:
      StorageError: if it cannot be written; an older file is as before.
    """
    frame = pd.DataFrame(list(rows), columns=list(COLUMNS))
    write_atomically(self.path / 'metrics.csv', frame.to_csv(index=False))

  def read_metrics(self) -> pd.DataFrame:
    """Returns metrics.csv; missing values are NaN."""
    path = self.path / 'metrics.csv'
    if not path.exists():
      return pd.DataFrame(columns=list(COLUMNS))
    # As text first: pandas' fast float parser may be off in the last digit, and
    # a resumed run must write exactly what an uninterrupted one does.
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    value = [float(text) if text else math.nan for text in frame['value']]
    return frame.astype({'step': int, 'seed': int}).assign(value=value)


def write_atomically(path: pathlib.Path, content: str | bytes) -> None:
  """Replaces a file atomically.

  Raises:
    StorageError: if it cannot be written; an older file is as before.
  """
  temporary = path.with_name(_UNFINISHED % uuid.uuid4().hex)
  try:
    with open(temporary, 'xb') as file:
      file.write(content.encode() if isinstance(content, str) else content)
      file.flush()
      os.fsync(file.fileno())
    os.replace(temporary, path)
  except OSError as error:
    temporary.unlink(missing_ok=True)
    # The operating system gives every error of its own a message.
    reason = cast(str, error.strerror)
    raise errors.StorageError(path, reason) from error


def find_finished(root: pathlib.Path) -> list[RunFolder]:
  """Returns the folders of all finished runs below a folder, sorted."""
  return [
      RunFolder(path.parent) for path in sorted(root.glob('**/summary.json'))
  ]


def _plain(value: Any) -> Any:
  """Returns a value in which non-finite floats are None or text, for JSON."""
  if isinstance(value, dict):
    return {name: _plain(entry) for name, entry in value.items()}
  if isinstance(value, (list, tuple)):
    return [_plain(entry) for entry in value]
  if isinstance(value, float) and not math.isfinite(value):
    return None if math.isnan(value) else str(value)
  return value
