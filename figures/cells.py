"""The cells of a figure: what its config describes, and what was found."""

import math
import textwrap
from typing import Any, Mapping, NamedTuple, Sequence

import pandas as pd

from figures import data
from figures import reference
from figures import stats
from figures import style
from modular_hyperteacher import sweeps

Cell = dict[str, Any]  # Column -> value.
_MAX_NAMED = 6  # Missing runs, before they are only counted.
# Metrics of every evaluation; others, as R2, are of the last step only.
_EVALUATED = ('loss', 'accuracy', 'accuracy_all')
_LINE = 110  # Characters of a caption that fit beside each other.


class Cells(NamedTuple):
  """What a figure over a grid is drawn from."""

  frame: pd.DataFrame  # One condition per cell.
  cells: list[Cell]  # In the order of the config's sweep.
  caption: list[str]  # Scale, whatever is missing, whatever is left out.

  def find(self, **values: Any) -> list[Cell]:
    """Returns the cells whose columns end in these names, with these values."""
    return [
        cell
        for cell in self.cells
        if all(_get(cell, name) == value for name, value in values.items())
    ]

  def axis(self, name: str) -> list[Any]:
    """Returns the values of the column that ends in a name, in order."""
    return list(dict.fromkeys(_get(cell, name) for cell in self.cells))

  def missing(self, cell: Cell) -> str:
    """Returns why a cell is empty."""
    found = not data.rows(self.frame, cell).empty
    return 'not measured' if found else 'no run'


def read(
    library: data.Library, experiment: str, columns: Sequence[str]
) -> Cells:
  """Returns the cells of an experiment, described or found.

  Args:
    library: all finished runs.
    experiment: whose.
    columns: the columns that tell cells apart.
  """
  return select(experiment, library.values(experiment), columns)


def select(
    experiment: str, frame: pd.DataFrame, columns: Sequence[str]
) -> Cells:
  """Returns the same of one table, such as `Library.curves` returns."""
  preset = frame['preset'].iloc[0] if len(frame) else 'laptop'
  frame, left_out = data.select_conditions(frame, tuple(columns))
  described = [
      {column: fields.get(column) for column in columns}
      for run in reference.described_runs(experiment, preset)
      for fields in [dict(sweeps.flatten(run.config))]
  ]
  cells = [c for i, c in enumerate(described) if c not in described[:i]]
  missing = [cell for cell in cells if data.rows(frame, cell).empty]
  caption = [f'Ours: {style.scale_note(frame, columns)}.']
  if missing and len(missing) < len(cells):
    names = [style.cell_name(cell) for cell in missing[:_MAX_NAMED]]
    more = len(missing) - len(names)
    caption += textwrap.wrap(
        f'{len(missing)} of {len(cells)} runs are missing:'
        f' {"; ".join(names)}{f"; and {more} more" if more else ""}.',
        _LINE,
    )
  found = frame[list(columns)].drop_duplicates()
  for cell in found.to_dict('records'):
    if not any(_same(cell, known) for known in cells):
      cells.append({column: cell.get(column) for column in columns})
  return Cells(frame, cells, caption + style.left_out_notes(left_out))


def make_table(
    cells: Cells,
    measures: Mapping[str, tuple[str, str]],
) -> pd.DataFrame:
  """Returns a row per cell, missing ones included.

  Args:
    cells: as `read` returns them.
    measures: name -> (split, metric), of the columns `{name}_mean` and
      `{name}_se`, over seeds, at the last step; `{name}_best_...` where the
      validation loss is lowest, for what was measured on OOD tasks there.
  """
  rows = []
  for cell in cells.cells:
    runs = data.rows(cells.frame, cell)
    row = {style.column_name(column): value for column, value in cell.items()}
    num_seeds = 0
    for name, (split, metric) in measures.items():
      mean = _mean(cells.frame, cell, split, metric, 'last')
      row[f'{name}_mean'] = mean.value
      row[f'{name}_se'] = mean.standard_error
      num_seeds = max(num_seeds, mean.num_seeds)
      if split == 'ood' and metric in _EVALUATED:
        best = _mean(cells.frame, cell, split, metric, 'best_validation')
        row[f'{name}_best_mean'] = best.value
        row[f'{name}_best_se'] = best.standard_error
    row['num_seeds'] = num_seeds
    row['preset'] = ', '.join(runs['preset'].unique())
    rows.append(row)
  return pd.DataFrame(rows)


def _mean(frame, cell, split, metric, kind):
  return stats.mean(data.values(frame, cell, split, metric=metric, kind=kind))


def _get(cell, name):
  return next(v for column, v in cell.items() if column.endswith(f'.{name}'))


def _same(cell, known):
  return all(
      value == known.get(column)
      or (known.get(column) is None and _is_missing(value))
      for column, value in cell.items()
  )


def _is_missing(value):
  return value is None or (isinstance(value, float) and math.isnan(value))
