"""Picks rows of a table of finished runs."""

from collections.abc import Mapping, Sequence
import numbers
from typing import Any

import numpy as np
import pandas as pd

from modular_hyperteacher.figures.library import bundles


def rows(frame: pd.DataFrame, cell: Mapping[str, Any]) -> pd.DataFrame:
  """Returns the rows with these values; None selects missing values."""
  return frame[_matches(frame, cell)]


def runs(frame: pd.DataFrame, cell: Mapping[str, Any]) -> pd.DataFrame:
  """Returns the first of these rows of every run."""
  positions = np.flatnonzero(_matches(frame, cell))
  repeated = frame['run_id'].iloc[positions].duplicated().to_numpy()
  return frame.iloc[positions[~repeated]]


def seeds(frame: pd.DataFrame, cell: Mapping[str, Any]) -> set[int]:
  """Returns the seeds of the rows with these values."""
  return set(frame['seed'].to_numpy()[_matches(frame, cell)])


def has_diverged(frame: pd.DataFrame) -> pd.Series:
  """Returns which rows, of results or curves, say that a seed diverged."""
  did = frame['metric'] == bundles.DIVERGED
  if 'step' in frame:  # These are curves.
    is_lost = _matches(frame, {'split': 'valid', 'metric': 'loss'})
    is_lost &= ~np.isfinite(frame['value'].to_numpy(float))
    if is_lost.any():  # Rarely; grouping is slow.
      last = frame.groupby('run_id', observed=True)['step'].transform('max')
      did |= is_lost & (frame['step'] == last)
  return did


def over_training(
    curves: pd.DataFrame, cell: Mapping[str, Any], split: str, metric: str
) -> pd.DataFrame:
  """Returns a metric of a cell of curves: index step, a column per seed.

  Empty if it was not measured.
  """
  value = curves['value'].to_numpy(float)
  point = {**cell, 'split': split, 'metric': metric}
  kept = _matches(curves, point) & ~np.isnan(value)
  (steps, row), (seeds, column) = (
      np.unique(curves[name].to_numpy()[kept].astype(int), return_inverse=True)
      for name in ('step', 'seed')
  )
  # Much faster than `DataFrame.pivot_table`.
  table = np.full((len(steps), len(seeds)), np.nan)
  table[row, column] = value[kept]
  index, columns = pd.Index(steps, name='step'), pd.Index(seeds, name='seed')
  return pd.DataFrame(table, index, columns)


def has_rows(frame: pd.DataFrame, cell: Mapping[str, Any]) -> bool:
  """Returns whether `rows` has any, much faster than by taking them."""
  return bool(_matches(frame, cell).any())


def _matches(frame: pd.DataFrame, cell: Mapping[str, Any]) -> np.ndarray:
  kept = np.ones(len(frame), bool)
  for column, value in cell.items():
    if column in frame:
      kept &= _equal(frame[column], value)
    elif value is not None:
      kept[:] = False
  return kept


def _equal(entries: pd.Series, value: Any) -> np.ndarray:
  """Returns which entries are a value; None stands for missing ones.

  Codes and arrays are compared several times as fast as series.
  """
  array = entries.array
  if value is not None and isinstance(array, pd.Categorical):
    known = array.categories
    return array.codes == (known.get_loc(value) if value in known else -2)
  plain = isinstance(entries.dtype, np.dtype) and entries.dtype.kind in 'biuf'
  if plain and isinstance(value, numbers.Number):
    return entries.to_numpy() == value
  return (entries.isna() if value is None else entries == value).to_numpy()


def distinct(
    frame: pd.DataFrame, columns: Sequence[str]
) -> list[dict[str, Any]]:
  """Returns the distinct combinations of values in some columns, in order."""
  points: Any = frame[list(columns)].drop_duplicates().to_dict('records')
  return points


def select_conditions(
    frame: pd.DataFrame, cell: tuple[str, ...]
) -> tuple[pd.DataFrame, dict[str, tuple[Any, ...]]]:
  """Keeps one condition per cell of a figure, with all its seeds.

  A preset's folder may hold several, such as a model trained with and without
  an overridden field. This keeps the condition with the most outer steps; of
  several, the one with the most seeds; of these, the one of the config.

  Returns:
    The rows that are kept, with all columns of the cell; and run id -> cell,
    one run for each condition that is left out.
  """
  columns = dict.fromkeys([*frame.columns, *cell])
  frame = frame.reindex(columns=list(columns))  # Some models lack some fields.
  if frame.empty:
    return frame, {}
  keys = ['preset', *cell]
  point = ['condition', 'seed', 'split', 'metric']
  point.append('kind' if 'kind' in frame else 'step')
  conditions = frame[[*keys, 'condition']].drop_duplicates()
  if not conditions.duplicated(keys).any():  # As usual; much faster.
    return frame.drop_duplicates(point, ignore_index=True), {}
  facts = [*keys, 'condition', 'run_id', 'seed', 'described']
  runs = frame[[*facts, 'training.num_outer_steps']].drop_duplicates()
  groups = runs.groupby([*keys, 'condition'], dropna=False, observed=True)
  sizes = groups.agg(
      steps=('training.num_outer_steps', 'max'),
      seeds=('seed', 'nunique'),
      run_id=('run_id', 'first'),
      described=('described', 'first'),
  ).reset_index()
  sizes = sizes.sort_values(['steps', 'seeds', 'described'], kind='stable')
  kept = sizes.drop_duplicates(keys, keep='last')
  rest: Any = sizes.drop(index=kept.index).sort_index()
  left_out = {
      run_id: tuple(values)
      for run_id, *values in rest[['run_id', *cell]].itertuples(index=False)
  }
  kept = pd.MultiIndex.from_frame(kept[['preset', 'condition']])
  is_kept = pd.MultiIndex.from_frame(frame[['preset', 'condition']]).isin(kept)
  return frame[is_kept].drop_duplicates(point, ignore_index=True), left_out


def values(
    frame: pd.DataFrame,
    cell: Mapping[str, Any],
    split: str,
    *,
    metric: str = 'accuracy',
    kind: str = 'last',
) -> pd.Series:
  """Returns a metric indexed by seed; empty if it was not measured.

  The table has one condition per cell; kind is one of `records.KINDS`.
  """
  point = {'split': split, 'metric': metric, 'kind': kind}
  # Taking two columns is much faster than taking all.
  every = frame['value'].to_numpy(float)
  kept = _matches(frame, {**cell, **point}) & ~np.isnan(every)
  seeds = pd.Index(frame['seed'].to_numpy()[kept], name='seed')
  return pd.Series(every[kept], seeds, name='value')
