"""When a claim passes.

A claim consists of effects: numbers over seeds that should exceed a bound. A
difference of two models exceeds zero; an R2 "close to one" exceeds 0.9. PASS
needs every effect to exceed its bound by more than twice its standard error.
The effect reported is the one with the smallest margin. Without data, or with a
single seed, the verdict is NOT RUN.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import json
import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from figures.library import data
from figures.library import reference
from figures.plotting import stats
from figures.plotting import style
from figures.plotting import tables

PASS, FAIL, NOT_RUN = 'PASS', 'FAIL', 'NOT RUN'
Entry = dict[str, Any]  # What claims.json holds of a claim.


class Sample(NamedTuple):
  """A metric of one cell, over seeds."""

  name: str  # As in notes.
  values: pd.Series  # Indexed by seed; empty if there is no finished run.
  runs: pd.DataFrame  # All rows of these runs.
  cell: Mapping[str, Any]  # Column -> value.
  split: str
  metric: str


class Effect(NamedTuple):
  """A number that, by a claim, exceeds a bound."""

  name: str  # As in notes.
  estimate: stats.Estimate
  samples: tuple[Sample, ...]  # It was computed from these.
  bound: float = 0.0
  num_errors: float = 2.0  # Standard errors by which it must exceed the bound.
  # Fields in which the runs may differ, beside the columns of the cell.
  may_differ: tuple[str, ...] = ()

  @property
  def margin(self) -> float:
    """By how much it exceeds its bound."""
    return self.estimate.value - self.bound

  @property
  def holds(self) -> bool:
    """Whether it exceeds its bound by more than `num_errors` errors."""
    if not self.num_errors:
      return self.margin >= 0
    error = self.num_errors * self.estimate.standard_error
    return self.margin > 0 and self.margin > error


Decide = Callable[[pd.DataFrame], Sequence[Effect]]
Read = Callable[[data.Library, str], pd.DataFrame]


@dataclasses.dataclass(frozen=True)
class Claim:
  """A sentence of the paper that data can decide.

  Attributes:
    id: short name.
    sentence: what the paper says.
    artefact: the figure, table or section that says it.
    experiment: the experiment whose runs decide it.
    figure: the figure of `registry.FIGURES` that it is shown with.
    cell: the columns that distinguish the cells that `decide` compares. Runs
      must agree in all other fields of task and training.
    decide: table with one condition per cell -> effects; none if the table
      cannot decide the claim.
    read: (library, experiment) -> table: `Library.values`, `Library.curves` or
      `Library.every_preset`.
    models: the models of the sentence; the claim is NOT RUN unless there are
      effects of each.
    undecided: the note if there are results but no effects.
  """

  id: str
  sentence: str
  artefact: str
  experiment: str
  figure: str
  cell: tuple[str, ...]
  decide: Decide
  read: Read = data.Library.values
  models: tuple[str, ...] = ()
  undecided: str = 'nothing was measured that decides it'


def sample(
    frame: pd.DataFrame,
    cell: Mapping[str, Any],
    split: str = 'ood',
    metric: str = 'accuracy',
) -> Sample:
  """Returns a metric of a cell at the last step, over seeds."""
  rest = {name: v for name, v in cell.items() if name != 'model.name'}
  what = [split] if metric == 'accuracy' else [split, metric]
  where = ', '.join([style.cell_name(rest), *what] if rest else what)
  model = style.cell_name({'model.name': cell.get('model.name', 'all')})
  return Sample(
      name=f'{model} ({where})',
      values=data.values(frame, cell, split, metric=metric),
      runs=data.rows(frame, cell),
      cell=cell,
      split=split,
      metric=metric,
  )


def difference(higher: Sample, lower: Sample, bound: float = 0.0) -> Effect:
  """Returns the effect that higher - lower exceeds a bound.

  Differences are paired by seed. A seed fixes the teacher, the split of
  combinations and the evaluation tasks for all models, so pairing removes the
  variance between teachers. "Does not fall noticeably" is a difference with a
  negative bound.
  """
  return Effect(
      f'{higher.name} - {lower.name}',
      stats.paired_difference(higher.values, lower.values),
      (higher, lower),
      bound,
  )


def level(measured: Sample, bound: float) -> Effect:
  """Returns the effect that a mean exceeds a bound, such as "close to one"."""
  return Effect(measured.name, stats.mean(measured.values), (measured,), bound)


def between(
    name: str,
    samples: Sequence[Sample],
    weights: Sequence[float] | np.ndarray,
    bound: float = 0.0,
) -> Effect:
  """Returns the effect that a weighted sum exceeds a bound, seed by seed."""
  table = pd.concat([s.values for s in samples], axis=1).dropna()
  summed = pd.Series(table.to_numpy() @ np.asarray(weights), index=table.index)
  return Effect(name, stats.mean(summed), tuple(samples), bound)


def slope(
    name: str,
    samples: Sequence[Sample],
    at: Sequence[float] | np.ndarray,
    *,
    sign: int = 1,
    bound: float = 0.0,
) -> Effect:
  """Returns the effect that a metric rises with x; by least squares per seed.

  Args:
    name: as in notes.
    samples: one per x.
    at: the values of x.
    sign: -1 if the claim is that the metric falls.
    bound: of sign times the slope.
  """
  centred = np.asarray(at, float) - np.mean(at)
  weights = sign * centred / np.sum(centred**2)
  return between(name, samples, weights, bound)


def evaluate(claim: Claim, library: data.Library) -> Entry:
  """Returns a claim's entry of claims.json, with None for missing numbers."""
  frame = claim.read(library, claim.experiment)
  frame, left_out = data.select_conditions(frame, claim.cell)
  effects = [] if frame.empty else list(claim.decide(frame))
  samples = _samples(effects).values()
  present = {s.cell.get('model.name') for s in samples}
  absent = [style.MODEL_NAMES[m] for m in claim.models if m not in present]
  verdict, estimate, note = judge([] if absent else effects, claim.cell)
  if frame.empty:
    note = f'no finished run of {claim.experiment}'
  elif absent:
    note = f'nothing was measured of {" and ".join(absent)} that decides it'
  elif not effects:
    note = claim.undecided
  used = {tuple(s.cell.get(column) for column in claim.cell) for s in samples}
  presets = [s.runs['preset'] for s in samples] or [frame['preset'].iloc[:1]]
  notes = [
      note,
      *_scale_notes(samples),
      *_published_notes(claim.experiment, effects),
      *(f'not used: {run}' for run, cell in left_out.items() if cell in used),
  ]
  return {
      'id': claim.id,
      'claim': claim.sentence,
      'verdict': verdict,
      'effect': _number(estimate.value),
      'standard_error': _number(estimate.standard_error),
      'num_seeds': estimate.num_seeds,
      'preset': ' and '.join(pd.concat(presets).unique()) or None,
      'note': '; '.join(note for note in notes if note),
  }


def judge(
    effects: Sequence[Effect], cell: Sequence[str] = ('model.name',)
) -> tuple[str, stats.Estimate, str]:
  """Returns the verdict, the weakest effect, and a note on it.

  Args:
    effects: all of these must hold.
    cell: the columns in which runs may differ.
  """
  nothing = stats.Estimate(math.nan, math.nan, 0)
  if not effects:
    return NOT_RUN, nothing, ''
  missing = [
      name for name, s in _samples(effects).items() if s.values.dropna().empty
  ]
  if missing:
    return NOT_RUN, nothing, f'no results for {", ".join(missing)}'
  differing = sorted({f for e in effects for f in _differing(e, cell)})
  if differing:
    return NOT_RUN, nothing, f'the runs differ in {", ".join(differing)}'

  weakest = min(effects, key=lambda effect: effect.margin)
  num_seeds = min(effect.estimate.num_seeds for effect in effects)
  estimate = weakest.estimate._replace(num_seeds=num_seeds)
  note = f'smallest: {weakest.name}'
  if weakest.bound:
    note += f', to exceed {weakest.bound:g}'
  if num_seeds == 0:
    return NOT_RUN, nothing, 'no seed was measured on both sides'
  if num_seeds == 1:
    estimate = estimate._replace(standard_error=math.nan)
    note = f'one seed: effect {estimate.value:.3f}; {note}'
    return NOT_RUN, estimate, note
  if all(effect.holds for effect in effects):
    return PASS, estimate, note
  failing = sum(not effect.holds for effect in effects)
  return FAIL, estimate, f'{failing} of {len(effects)} do not hold; {note}'


def write(claims: Sequence[Claim], entries: Sequence[Entry]) -> dict[str, str]:
  """Returns the files that report claims, name -> text.

  Args:
    claims: all claims.
    entries: one per claim, from `evaluate`.
  """
  table = pd.DataFrame([
      {
          'id': claim.id,
          'artefact': claim.artefact,
          'claim': claim.sentence,
          'verdict': entry['verdict'],
          'effect_mean': entry['effect'],
          'effect_se': entry['standard_error'],
          'seeds': entry['num_seeds'],
          'preset': entry['preset'],
          'note': entry['note'],
      }
      for claim, entry in zip(claims, entries, strict=True)
  ])
  return {
      'claims.json': json.dumps(entries, indent=2, allow_nan=False) + '\n',
      'claims.md': f'{tables.to_markdown(table)}\n{RULE}\n',
  }


RULE = (
    'Effect: of the numbers that the claim says are positive, or exceed a bound'
    ' that the note states, the one that does so the least, ± its standard'
    ' error over seeds. Differences are taken seed by seed: the same seed is'
    ' the same teacher. PASS: all of them exceed their bounds by more than'
    ' twice their standard errors.'
)


def _samples(effects: Iterable[Effect]) -> dict[str, Sample]:
  return {s.name: s for effect in effects for s in effect.samples}


def _differing(effect: Effect, cell: Sequence[str]) -> list[str]:
  """Returns the fields of task and training that differ but should not."""
  runs = pd.concat([s.runs for s in effect.samples])
  fixed = [
      column
      for column in map(str, runs.columns)
      if column.startswith(('task.', 'training.', 'preset'))
      and column not in (*cell, *effect.may_differ, 'training.seeds')
  ]
  return [
      column.rpartition('.')[2]
      for column in fixed
      if runs[column].nunique(dropna=False) > 1
  ]


def _scale_notes(samples: Iterable[Sample]) -> Iterator[str]:
  """Yields a note if runs of the paper preset are not as in the paper."""
  for s in samples:
    changed = ~s.runs['published_scale'].astype(bool)
    if (changed & (s.runs['preset'] == 'paper')).any():
      yield 'fields of the paper preset were changed: not the published scale'
      return


def _published_notes(
    experiment: str, effects: Sequence[Effect]
) -> Iterator[str]:
  """Yields comparisons with published values, at the published scale.

  A value agrees if it lies within two published standard deviations or two
  percentage points, whichever is larger.
  """
  num_values, differ, deviations = 0, [], []
  for name, s in _samples(effects).items():
    if s.metric != 'accuracy' or s.values.empty:
      continue
    reported = reference.published_accuracy(experiment, s.cell, s.split)
    if reported is None or not s.runs['published_scale'].all():
      continue
    num_values += 1
    mean, deviation = reported
    ours = stats.mean(s.values).value
    apart = (ours - mean) / deviation if deviation else math.nan
    deviations += [apart] if deviation else []
    if abs(ours - mean) > max(2 * deviation, 0.02):
      differ.append(
          f'{name} is {ours:.3f}, published {mean:.3f} ({apart:+.1f} published'
          ' SD)'
      )
  if num_values:
    note = f'{num_values - len(differ)} of {num_values} published values agree'
    if deviations:
      note += (
          f', ours {min(deviations):+.1f} to {max(deviations):+.1f} published'
          ' SD apart'
      )
    yield note
  yield from differ


def _number(value: float) -> float | None:
  return None if math.isnan(value) else value
