"""The parts of a claim: quantities whose mean over seeds must exceed a bound.

Examples: the difference of two models exceeds zero; an R2 "close to one"
exceeds 0.9; a change that is "no noticeable fall" exceeds -0.05.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import functools
import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from modular_hyperteacher.figures.claims import paired_t
from modular_hyperteacher.figures.library import bundles
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style

MODEL = 'model.name'
WIDTH = 'model.hidden_dim'
SUPPORT = 'task.task_support'
# Results are stored with six digits; smaller differences are rounding.
_RESOLUTION = 1e-6


@dataclasses.dataclass(frozen=True)
class Sample:
  """A metric of one cell, over seeds."""

  name: str  # As in notes.
  values: pd.Series  # By seed, finite; empty if there is no finished run.
  frame: pd.DataFrame  # Of all cells.
  cell: Mapping[str, Any]  # Column -> value.
  split: str
  metric: str
  lost: tuple[int, ...] = ()  # Trained seeds whose value is not finite.

  @functools.cached_property
  def runs(self) -> pd.DataFrame:
    """A row per run of the cell."""
    return pick.runs(self.frame, self.cell)


class Comparison(NamedTuple):
  """A quantity that must exceed a bound for a claim to hold."""

  name: str  # As in notes.
  values: pd.Series  # By seed; seeds with a value in all samples.
  samples: tuple[Sample, ...]  # What the values are computed from.
  bound: float = 0.0
  # Fields in which the runs may differ, beside the columns of the cell.
  may_differ: tuple[str, ...] = ()

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


Comparisons = list[Comparison]


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


def diverged(curves: pd.DataFrame, cell: Mapping[str, Any]) -> tuple[int, ...]:
  """Returns the seeds of a cell whose training diverged, given curves."""
  rows = pick.rows(curves, cell)
  return tuple(sorted(set(rows['seed'][pick.has_diverged(rows)])))


def difference(
    higher: Sample,
    lower: Sample,
    bound: float = 0.0,
    may_differ: tuple[str, ...] = (),
) -> Comparison:
  """Compares higher - lower with a bound, on the seeds that both have.

  A seed fixes the teacher, the split of combinations and the evaluation tasks
  for all models, so paired differences remove the variation between teachers.

  Args:
    higher: what should be higher.
    lower: than this.
    bound: that the difference must exceed.
    may_differ: as of `Comparison`.
  """
  name = f'{higher.name} - {lower.name}'
  found = between(name, [higher, lower], (1, -1), bound)
  return found._replace(may_differ=may_differ)


def level(measured: Sample, bound: float) -> Comparison:
  """Tests whether a mean exceeds a bound."""
  return Comparison(measured.name, measured.values, (measured,), bound)


def below(measured: Sample, bound: float) -> Comparison:
  """Tests whether a mean is below a bound."""
  return between(f'-{measured.name}', [measured], (-1,), -bound)


def between(
    name: str,
    samples: Sequence[Sample],
    weights: Sequence[float] | np.ndarray,
    bound: float = 0.0,
) -> Comparison:
  """Tests whether a weighted sum, computed per seed, exceeds a bound."""
  table = by_seed(samples)
  summed = pd.Series(table.to_numpy() @ np.asarray(weights), index=table.index)
  return Comparison(name, summed, tuple(samples), bound)


def by_seed(samples: Iterable[Sample]) -> pd.DataFrame:
  """Returns a row per seed that all samples have, a column per sample."""
  return pd.concat([s.values for s in samples], axis=1).dropna()


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


def slope(
    name: str, samples: Sequence[Sample], at: Sequence[float] | np.ndarray
) -> Comparison:
  """Tests whether a metric rises with x, by a least-squares slope per seed.

  Args:
    name: as in notes.
    samples: one per x.
    at: the values of x.
  """
  centred = np.asarray(at, float) - np.mean(at)
  return between(name, samples, centred / np.sum(centred**2))


def better(
    frame: pd.DataFrame,
    found: Iterable[Sequence[Mapping[str, Any]]],
    metric: str = 'accuracy',
    split: str = 'ood',
    bound: float = 0.0,
) -> Comparisons:
  """Tests whether the first cell of each pair is better than the second.

  Args:
    frame: all runs.
    found: pairs of cells.
    metric: the lower, the better if it is 'loss'; else the higher.
    split: of the tasks.
    bound: that every difference must exceed.
  """
  compared = []
  for pair in found:
    first, second = (sample(frame, cell, split, metric) for cell in pair)
    if metric == 'loss':
      first, second = second, first
    compared.append(difference(first, second, bound))
  return compared


def modular_are_better(
    frame: pd.DataFrame, metric: str = 'accuracy'
) -> Comparisons:
  """Tests hypernetworks against monolithic models; compositional support."""
  return better(frame, pairs(frame, {SUPPORT: 'random'}), metric)


def over_supports(
    frame: pd.DataFrame,
    higher: str,
    lower: str,
    metric: str,
) -> Comparisons:
  """Tests whether a metric is higher with one support than with the other.

  For both hypernetworks, at every width.
  """
  found = []
  for model in style.HYPERNETWORKS:
    for student in widths(frame, model, supports=(higher, lower)):
      high, low = (
          sample(frame, {**student, SUPPORT: support}, metric=metric)
          for support in (higher, lower)
      )
      found.append(difference(high, low))
  return found


def widths(
    frame: pd.DataFrame,
    model: str,
    rest: Mapping[str, Any] | None = None,
    supports: Sequence[str] = (),
) -> list[dict[str, Any]]:
  """Returns a cell for every width that a model was trained with.

  A claim about a model must hold for all of its widths.

  Args:
    frame: all runs.
    model: its name.
    rest: further fields of the cells.
    supports: only widths that were trained with each of them.
  """
  cell = {MODEL: model, **(rest or {})}
  runs = pick.rows(frame, cell)
  trained = set(runs[WIDTH].dropna()) if WIDTH in runs else set()
  if len(trained) < 2:
    return [cell]
  common = trained.intersection(
      *(pick.rows(runs, {SUPPORT: support})[WIDTH] for support in supports)
  )
  # Without a common width, the comparisons name what was not trained.
  return [{**cell, WIDTH: width} for width in sorted(common or trained)]


def pairs(
    frame: pd.DataFrame,
    rest: Mapping[str, Any] | None = None,
    supports: Sequence[str] = (),
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
  """Yields all pairs of a hypernetwork's and a monolithic model's cells."""
  for modular in style.HYPERNETWORKS:
    for modular_cell in widths(frame, modular, rest, supports):
      for monolithic in style.MONOLITHIC:
        for cell in widths(frame, monolithic, rest, supports):
          yield modular_cell, cell
