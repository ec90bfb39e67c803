"""Tables that a script measures without training: their files, and as runs."""

from collections.abc import Callable, Mapping
import gzip
import pathlib
from typing import NamedTuple

import pandas as pd

from modular_hyperteacher import files
from modular_hyperteacher.figures.library import data


class Table(NamedTuple):
  """What was measured, in a file.

  Attributes:
    path: the file, .csv or .csv.gz.
    cell: the columns that distinguish runs.
    fields: further columns of runs with a single value, such as split='test'.
    values: table -> rows of runs, with 'seed' and 'value'.
    types: column -> type, where pandas would take another one.
  """

  path: pathlib.Path
  cell: tuple[str, ...] = ()
  fields: Mapping[str, str] = {}
  values: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table
  types: Mapping[str, type] = {}

  def load(self) -> pd.DataFrame:
    """Returns what was measured."""
    return pd.read_csv(self.path, dtype=dict(self.types))

  def read(self, library: data.Library, experiment: str) -> pd.DataFrame:
    """Returns it in the form of finished runs, for a claim."""
    del library, experiment  # Nothing of it is trained by a config.
    rows = self.values(self.load())
    cells = rows[list(self.cell)].itertuples(index=False)
    names = ['-'.join(map(str, cell)) for cell in cells]
    return rows.assign(
        preset='constructed',
        source='bundled',
        run_id=names,
        condition=names,
        kind='last',
        published_scale=False,
        **self.fields,
        **{'training.num_outer_steps': 0},
    )

  def write(self, table: pd.DataFrame, float_format: str | None = None) -> None:
    """Replaces the file."""
    content = table.to_csv(index=False, float_format=float_format)
    if self.path.suffix == '.gz':
      # Without the time of day, equal tables give equal bytes.
      content = gzip.compress(content.encode(), mtime=0)
    files.write_atomically(self.path, content)
