"""Values by seed, and the sentences about them that a claim tests.

A claim reads like what it says: `at(a) - at(b) > 0.05` compares the mean over
seeds of a difference with a bound. `-x`, `x + y`, `x - y`, `2 * x` and `x / y`
are taken seed by seed, on the seeds that all parts have. A seed fixes the
teacher, the split of combinations and the evaluation tasks for all models, so
paired differences remove the variation between teachers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses
import functools
import math
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from modular_hyperteacher.figures.judging import paired_t
from modular_hyperteacher.figures.library import bundles
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style

MODEL = 'model.name'
# Accuracies that differ by less count as the same, as in Tables A2 to A8.
SAME_ACCURACY = 0.02
# Results are stored with six digits; smaller differences are rounding.
_RESOLUTION = 1e-6


class Quantity:
  """A number per seed, measured or computed.

  Attributes:
    name: what notes call it.
    values: by seed. A value that is not finite marks a lost seed.
    samples: what the values are computed from.
  """

  name: str
  values: pd.Series
  samples: tuple['Sample', ...]
  # A NumPy number on the left leaves the operation to this class.
  __array_ufunc__ = None

  @property
  def terms(self) -> tuple[tuple[float, 'Quantity'], ...]:
    """Weighted quantities whose sum it is, so that sums of sums round once."""
    return ((1.0, self),)

  def named(self, name: str) -> Self:
    """Returns the same quantity under another name."""
    return dataclasses.replace(self, name=name)  # type: ignore[type-var]

  def __neg__(self) -> 'Quantity':
    return Sum(f'-{self.name}', tuple((-w, q) for w, q in self.terms))

  def __add__(self, other: 'Quantity | float') -> 'Quantity':
    if isinstance(other, Quantity):
      name = f'{self.name} + {other.name}'
      return Sum(name, (*self.terms, *other.terms))
    name = f'{self.name} + {other:g}'
    return Computed(name, self.values + other, self.samples)

  def __sub__(self, other: 'Quantity | float') -> 'Quantity':
    name = other.name if isinstance(other, Quantity) else f'{other:g}'
    return (self + -other).named(f'{self.name} - {name}')

  def __rsub__(self, number: float) -> 'Quantity':
    return (-self + number).named(f'{number:g} - {self.name}')

  def __rmul__(self, factor: float) -> 'Quantity':
    name = f'{factor:g} × {self.name}'
    if len(self.terms) > 1:
      return Computed(name, factor * self.values, self.samples)
    return Sum(name, tuple((factor * w, q) for w, q in self.terms))

  def __truediv__(self, other: 'Quantity') -> 'Quantity':
    name = f'{self.name} / {other.name}'
    return of_table(name, [self, other], lambda t: t.iloc[:, 0] / t.iloc[:, 1])

  def __gt__(self, bound: 'Quantity | float') -> 'Comparison':
    if isinstance(bound, Quantity):
      return self - bound > 0.0
    return Comparison(self.name, self.values, self.samples, float(bound))

  def __lt__(self, bound: 'Quantity | float') -> 'Comparison':
    return bound > self if isinstance(bound, Quantity) else -self > -bound


@dataclasses.dataclass(frozen=True, eq=False)
class Sample(Quantity):
  """A metric of one cell, over seeds."""

  name: str
  values: pd.Series  # By seed, finite; empty if there is no finished run.
  frame: pd.DataFrame  # The runs of all cells.
  cell: Mapping[str, Any]  # Column -> value.
  split: str
  metric: str
  lost: tuple[int, ...] = ()  # Trained seeds whose value is not finite.

  @property
  def samples(self) -> tuple['Sample', ...]:
    """The sample itself."""
    return (self,)

  @functools.cached_property
  def runs(self) -> pd.DataFrame:
    """A row per run of the cell."""
    return pick.runs(self.frame, self.cell)


@dataclasses.dataclass(frozen=True, eq=False)
class Computed(Quantity):
  """Values that are computed from samples in any way."""

  name: str
  values: pd.Series
  samples: tuple[Sample, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Sum(Quantity):
  """A weighted sum of quantities, on the seeds that all of them have."""

  name: str
  parts: tuple[tuple[float, Quantity], ...]

  @property
  def terms(self) -> tuple[tuple[float, Quantity], ...]:
    """The weighted quantities."""
    return self.parts

  @functools.cached_property
  def values(self) -> pd.Series:
    """By seed."""
    weights, quantities = zip(*self.parts)
    table = by_seed(quantities)
    return pd.Series(table.to_numpy() @ np.asarray(weights), table.index)

  @property
  def samples(self) -> tuple[Sample, ...]:
    """Those of all terms, in order."""
    return tuple(s for _, quantity in self.parts for s in quantity.samples)


class Comparison(NamedTuple):
  """A quantity that must exceed a bound for a claim to hold."""

  name: str  # As in notes.
  values: pd.Series  # By seed; seeds with a value in all samples.
  samples: tuple[Sample, ...]  # What the values are computed from.
  bound: float = 0.0
  # Fields in which the runs may differ, beside the columns of the cell.
  may_differ: tuple[str, ...] = ()

  def __bool__(self) -> bool:
    """Refuses `0 < x < 1` and `x > y or ...`, which would drop a part."""
    raise TypeError(f'a comparison is judged over seeds: {self.name}')

  def across(self, *fields: str) -> Self:
    """Allows the runs to differ in these fields, too."""
    return self._replace(may_differ=fields)

  @property
  def estimate(self) -> stats.Estimate:
    """The mean over the seeds whose value is finite."""
    values = self.values.to_numpy(float)  # Much faster than a series.
    return stats.mean(values[np.isfinite(values)])

  @property
  def interval(self) -> tuple[float, float]:
    """The 90% interval; a comparison holds if it is above the bound.

    NaN if a seed is lost, which leaves the comparison undecided.
    """
    if self.lost:
      return math.nan, math.nan
    mean, error, num_seeds = self.estimate
    half = paired_t.quantile(num_seeds) * error
    return mean - half, mean + half

  @property
  def lost(self) -> list[int]:
    """The seeds that all samples trained, but whose value is not finite."""
    infinite = self.values.index[~np.isfinite(self.values)]
    trained = ({*s.values.index, *s.lost} for s in self.samples)
    lost = {seed for s in self.samples for seed in s.lost}
    return sorted({*infinite, *lost.intersection(*trained)})

  @property
  def t(self) -> float:
    """Student's t; NaN with fewer than two seeds or a value that is not finite.

    The standard error is at least the rounding error, so that seeds with equal
    values do not give an infinite t.
    """
    mean, error, num_seeds = self.estimate
    if num_seeds < 2 or self.lost:
      return math.nan
    terms = [s.values.reindex(self.values.index) for s in self.samples]
    largest = np.nanmax(np.abs(np.hstack([self.bound, self.values, *terms])))
    return (mean - self.bound) / (max(error, _RESOLUTION * largest) or 1.0)


Comparisons = Iterable[Comparison]


def sample(
    frame: pd.DataFrame,
    cell: Mapping[str, Any],
    split: str = 'ood',
    metric: str = 'accuracy',
) -> Sample:
  """Returns a metric of a cell at the last step, over seeds."""
  rest = {name: v for name, v in cell.items() if name != MODEL}
  what = [split] if metric == 'accuracy' else [split, metric]
  where = ', '.join([style.cell_name(rest), *what] if rest else what)
  model = style.cell_name({MODEL: cell[MODEL]}) if MODEL in cell else 'students'
  values = pick.values(frame, cell, split, metric=metric)
  values = values[np.isfinite(values)]
  expected = {**cell}
  # Some cells lack a metric, and some seeds a task in OOD(K=k).
  if values.empty or '_k' in split:
    expected['metric'] = bundles.DIVERGED
  return Sample(
      name=f'{model} ({where})',
      values=values,
      frame=frame,
      cell=cell,
      split=split,
      metric=metric,
      lost=tuple(sorted(pick.seeds(frame, expected) - set(values.index))),
  )


def at(
    frame: pd.DataFrame,
    columns: Sequence[str],
    split: str = 'ood',
    metric: str = 'accuracy',
) -> Callable[..., Sample]:
  """Returns a function from the values of columns to the cell's sample."""

  def measure(*values: Any, split: str = split, metric: str = metric) -> Sample:
    cell = dict(zip(columns, values, strict=True))
    return sample(frame, cell, split, metric)

  return measure


def of_curves(
    curves: pd.DataFrame,
    cell: Mapping[str, Any],
    name: str,
    values: pd.Series,
    split: str = 'ood',
    metric: str | None = None,
) -> Sample:
  """Returns what was computed of the curves of a cell, by seed.

  Args:
    curves: the runs of all cells.
    cell: column -> value.
    name: what notes call it.
    values: by seed. Seeds whose training diverged are left out, and lost.
    split: what the values were measured on.
    metric: what they are; the name if None.
  """
  columns = ['run_id', 'step', 'seed', 'split', 'metric', 'value', *cell]
  loss = {**cell, 'split': 'valid', 'metric': 'loss'}
  rows = pick.rows(curves[columns], loss)  # Much faster than all columns.
  lost = tuple(sorted(set(rows['seed'][pick.has_diverged(rows)])))
  kept = values[~values.index.isin(lost)]
  return Sample(name, kept, curves, cell, split, metric or name, lost)


def by_seed(quantities: Iterable[Quantity]) -> pd.DataFrame:
  """Returns a row per seed that all quantities have, a column per quantity.

  A sample that is NaN lacks the seed; what is computed as NaN has lost it.
  """
  columns = [
      q.values.dropna() if isinstance(q, Sample) else q.values
      for q in quantities
  ]
  return pd.concat(columns, axis=1, join='inner')


def of_table(
    name: str,
    quantities: Sequence[Quantity],
    compute: Callable[[pd.DataFrame], pd.Series],
) -> Computed:
  """Returns what a function makes of the table that `by_seed` returns."""
  samples = dict.fromkeys(s for q in quantities for s in q.samples)
  return Computed(name, compute(by_seed(quantities)), tuple(samples))


def best_of(name: str, quantities: Sequence[Quantity]) -> Computed:
  """Returns the largest quantity; for every seed, other seeds choose it."""
  return of_table(name, quantities, pick_on_other_seeds)


def range_of(name: str, quantities: Sequence[Quantity]) -> Computed:
  """Returns largest - smallest quantity, each chosen in the same way."""
  return of_table(name, quantities, spread_on_other_seeds)


def mean(name: str, quantities: Sequence[Quantity]) -> Quantity:
  """Returns the mean of quantities, seed by seed."""
  share = 1 / len(quantities)
  terms = ((share * w, q) for added in quantities for w, q in added.terms)
  return Sum(name, tuple(terms))


def slope(
    name: str, quantities: Sequence[Quantity], x: Sequence[float] | np.ndarray
) -> Quantity:
  """Returns the least-squares slope of quantities over x, seed by seed."""
  centred = np.asarray(x, float) - np.mean(x)
  weights = centred / np.sum(centred**2)
  return Sum(name, tuple(zip(weights, quantities, strict=True)))


def pick_on_other_seeds(table: pd.DataFrame) -> pd.Series:
  """Returns each seed's value in the column that is best on the other seeds.

  The best on all seeds would be best by chance, too, and its mean too high. But
  seeds that choose for one another are not independent: see `calibration.py`.

  Args:
    table: a row per seed, a column per choice. A single seed, which cannot be
      tested anyway, chooses by itself.
  """
  values = table.to_numpy(float)
  others = values.sum(0) - values if len(table) > 1 else values
  best = others.argmax(1)[:, np.newaxis]
  return pd.Series(np.take_along_axis(values, best, 1)[:, 0], table.index)


def spread_on_other_seeds(table: pd.DataFrame) -> pd.Series:
  """Returns largest - smallest column, each chosen on the other seeds."""
  return pick_on_other_seeds(table) + pick_on_other_seeds(-table)


def better(
    frame: pd.DataFrame,
    pairs: Iterable[Sequence[Mapping[str, Any]]],
    metric: str = 'accuracy',
    bound: float = 0.0,
) -> Comparisons:
  """Tests whether the first cell of each pair is better than the second.

  Losses are better if lower, other metrics if higher. Every difference must
  exceed the bound.
  """
  for pair in pairs:
    first, second = (sample(frame, cell, 'ood', metric) for cell in pair)
    gain = second - first if metric == 'loss' else first - second
    yield gain > bound
