"""The cells of a figure: those in its config and those with finished runs."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style

Cell = dict[str, Any]  # Column -> value.
# A figure, and the table of what it shows.
Drawn = tuple[go.Figure, pd.DataFrame]
_MAX_NAMED = 6  # Missing runs that a caption names; it counts the others.
# Metrics at every evaluation; R2 and others are measured at some of them.
_EVALUATED = ('loss', 'accuracy', 'accuracy_all')


class Cells(NamedTuple):
  """The runs behind a figure over a grid."""

  frame: pd.DataFrame  # One condition per cell.
  cells: list[Cell]  # Those of the config, in its order, then others.
  num_described: int  # How many the config has.
  left_out: Mapping[str, tuple[Any, ...]]  # As of `pick.select_conditions`.
  preset: str  # Of the runs; 'laptop' without any.
  notes: tuple[str, ...] = ()  # More lines of the caption.
  flag: str = ''  # What trains all runs.

  def caption(self, *notes: str) -> list[str]:
    """Returns the scale, what is missing or left out, and notes."""
    columns = list(self.cells[0]) if self.cells else []
    described = self.cells[: self.num_described]
    lines = [f'Ours: {style.scale_note(self.frame, columns)}.']
    missing = [c for c in described if not pick.has_rows(self.frame, c)]
    if missing and len(missing) < len(described):
      names = [style.cell_name(cell) for cell in missing[:_MAX_NAMED]]
      more = len(missing) - len(names)
      lines.append(
          f'{len(missing)} of {len(described)} runs are missing:'
          f' {"; ".join(names)}{f"; and {more} more" if more else ""}.'
          f' {self.flag} trains all.'
      )
    shown = excluded(self.frame, self.left_out)
    return [*lines, *shown, *self.notes, *notes]

  def keep(self, column: str, values: Sequence[Any]) -> 'Cells':
    """Returns the cells and runs with one of these values in a column."""
    kept = [cell[column] in values for cell in self.cells]
    return self._replace(
        frame=self.frame[self.frame[column].isin(values)],
        cells=[cell for cell, is_kept in zip(self.cells, kept) if is_kept],
        num_described=sum(kept[: self.num_described]),
    )

  def find(self, **values: Any) -> list[Cell]:
    """Returns the cells with these values in the columns that end in names."""
    return [
        cell
        for cell in self.cells
        if all(_get(cell, name) == value for name, value in values.items())
    ]

  def axis(self, name: str) -> list[Any]:
    """Returns the values of the column that ends in a name, in order."""
    return list(dict.fromkeys(_get(cell, name) for cell in self.cells))

  @property
  def models(self) -> list[str]:
    """The models of the cells, in the order of every figure."""
    return style.sort_models(self.axis('name'))

  def missing(self, cell: Cell) -> str:
    """Returns why a cell is empty."""
    return 'not measured' if pick.has_rows(self.frame, cell) else 'no run'

  def values(
      self, cell: Cell, split: str = 'ood', metric: str = 'accuracy'
  ) -> pd.Series:
    """Returns a metric at the last step, by seed; empty if not measured."""
    return pick.values(self.frame, cell, split, metric=metric)

  def seen(
      self, cell: Cell, metric: str = 'accuracy'
  ) -> tuple[float, float] | None:
    """Returns a metric on seen combinations, to stand beside a bar."""
    return stats.mean(self.values(cell, 'test', metric)).beside

  def bar(
      self,
      cell: Cell,
      label: str,
      colour: str,
      metric: str = 'accuracy',
      *,
      split: str = 'ood',
      beside: tuple[float, float] | None = None,
  ) -> bars.Bar:
    """Returns the bar of a metric of a cell."""
    seeds = self.values(cell, split, metric)
    return bars.Bar(label, colour, seeds, self.missing(cell), beside)

  def over_training(
      self, cell: Cell, split: str = 'ood', metric: str = 'accuracy'
  ) -> pd.DataFrame:
    """Returns a metric of curves: index step, a column per seed."""
    return pick.over_training(self.frame, cell, split, metric)


def read(
    library: data.Library, experiment: str, columns: Sequence[str]
) -> Cells:
  """Returns the cells of an experiment, described or found."""
  return select(experiment, library.values(experiment), columns)


def select(
    experiment: str, frame: pd.DataFrame, columns: Sequence[str]
) -> Cells:
  """Returns the cells of one table, such as that of `Library.curves`."""
  preset = str(frame['preset'].iloc[0]) if len(frame) else 'laptop'
  frame, left_out = pick.select_conditions(frame, tuple(columns))
  described = [
      {column: fields.get(column) for column in columns}
      for fields in reference.described_fields(experiment, preset)
  ]
  cells = [c for i, c in enumerate(described) if c not in described[:i]]
  num_described = len(cells)
  for cell in pick.distinct(frame, columns):
    cell = {k: v if v == v else None for k, v in cell.items()}  # NaN: missing.
    if cell not in cells:
      cells.append(cell)
  flag = sweeps.config_flag(experiment, preset)
  return Cells(frame, cells, num_described, left_out, preset, flag=flag)


def of(frame: pd.DataFrame, columns: Sequence[str]) -> Cells:
  """Returns the cells of a table that has rows."""
  return select(str(frame['experiment'].iloc[0]), frame, columns)


def excluded(
    frame: pd.DataFrame, left_out: Mapping[str, tuple[Any, ...]]
) -> list[str]:
  """Returns lines on diverged runs, and on runs that are left out."""
  return _diverged(frame) + [
      f'Not shown: {run_id}, another run of {" / ".join(map(str, cell))}.'
      for run_id, cell in left_out.items()
  ]


def _diverged(frame: pd.DataFrame) -> list[str]:
  """Returns a line on the seeds whose training diverged, if any did."""
  if frame.empty:
    return []
  rows = frame[pick.has_diverged(frame)]
  counts = rows.groupby('run_id', observed=True)['seed'].nunique()
  names = '; '.join(
      f'{number} seed{"s" * (number != 1)} of {run}'
      for run, number in counts.items()
  )
  # Curves keep what such a seed reached before.
  left_out = ', and left out of the means' if 'kind' in frame else ''
  return [f'Diverged{left_out}: {names}.'] if names else []


def make_table(
    cells: Cells,
    measures: Mapping[str, tuple[str, str]],
) -> pd.DataFrame:
  """Returns a row per cell, also for missing ones.

  Columns `{name}_mean` and `{name}_se` of each measure, a split and a metric,
  are over seeds at the last step. OOD metrics of every evaluation also have
  `{name}_best_...`, at the lowest validation loss.
  """
  rows = []
  for cell in cells.cells:
    runs = pick.runs(cells.frame, cell)
    row: Cell = {
        style.column_name(column): value for column, value in cell.items()
    }
    num_seeds = 0
    for name, (split, metric) in measures.items():
      mean = stats.mean(cells.values(cell, split, metric))
      row |= mean.columns(name)
      num_seeds = max(num_seeds, mean.num_seeds)
      if split == 'ood' and metric in _EVALUATED:
        best = pick.values(
            cells.frame, cell, split, metric=metric, kind='best_validation'
        )
        row |= stats.mean(best).columns(f'{name}_best')
    row['num_seeds'] = num_seeds
    row['preset'] = ', '.join(runs['preset'].unique())
    rows.append(row)
  return pd.DataFrame(rows)


def summarise(
    rows: pd.DataFrame, point: Sequence[str], name: str
) -> pd.DataFrame:
  """Returns a row per point: mean and error of its values, as 'name_mean'."""
  values = rows.groupby(list(point), dropna=False, observed=True)['value']
  columns: Any = {
      f'{name}_mean': 'mean',
      f'{name}_se': 'sem',
      'num_seeds': 'count',
  }
  return values.agg(**columns).reset_index()


def _get(cell: Cell, name: str) -> Any:
  return next(v for column, v in cell.items() if column.endswith(f'.{name}'))
