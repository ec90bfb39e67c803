"""When a claim passes.

A claim is one or more comparisons of trained models, each of them a difference
that the paper says is positive. PASS needs every difference positive and
larger than twice its standard error; the effect reported is the smallest
difference. Without data, or with a single seed, the verdict is NOT RUN.
"""

import dataclasses
import json
import math
from typing import Any, Callable, NamedTuple

import pandas as pd

from figures import data
from figures import reference
from figures import stats
from figures import style
from figures import tables

PASS, FAIL, NOT_RUN = 'PASS', 'FAIL', 'NOT RUN'

_CELL = ('model', 'task_support')
_SCALE = ('num_modules', 'max_active', 'num_outer_steps')


@dataclasses.dataclass(frozen=True)
class Sample:
  """An accuracy of one model, over seeds."""

  model: str
  task_support: str
  split: str
  values: pd.Series  # Indexed by seed; empty if there is no finished run.
  runs: pd.DataFrame  # All rows of these runs.

  @property
  def name(self) -> str:
    """How notes refer to it."""
    model = style.MODEL_NAMES[self.model]
    return f'{model} ({self.task_support}, {self.split})'


class Comparison(NamedTuple):
  """A difference, higher - lower, that a claim says is positive.

  Taken seed by seed: the same seed is the same teacher, split of combinations
  and evaluation tasks, whatever the model, so that how hard a teacher is does
  not count as uncertainty about the models.
  """

  higher: Sample
  lower: Sample

  @property
  def estimate(self) -> stats.Estimate:
    """The mean difference over shared seeds, with its standard error."""
    return stats.paired_difference(self.higher.values, self.lower.values)

  @property
  def holds(self) -> bool:
    """Whether it is positive and larger than twice its standard error."""
    value, standard_error, _ = self.estimate
    return value > 0 and value > 2 * standard_error


@dataclasses.dataclass(frozen=True)
class Claim:
  """A sentence of the paper that data can decide.

  Attributes:
    id: short name.
    sentence: what the paper says.
    artefact: where it says it.
    experiment: whose runs decide it.
    compare: `compare(frame) -> [Comparison]`, of a table with one condition
      per cell; empty if what was measured cannot decide the claim.
  """

  id: str
  sentence: str
  artefact: str
  experiment: str
  compare: Callable[[pd.DataFrame], list[Comparison]]


def sample(
    frame: pd.DataFrame, model: str, task_support: str, split: str
) -> Sample:
  """Returns the accuracies of a model at the last step, over seeds."""
  runs = frame[
      (frame['model'] == model) & (frame['task_support'] == task_support)
  ]
  return Sample(model, task_support, split, data.values(runs, split), runs)


def evaluate(claim: Claim, frames: dict[str, pd.DataFrame]) -> dict[str, Any]:
  """Returns a claim's entry of claims.json.

  Args:
    claim: the claim.
    frames: experiment -> its runs, as `data.load` returns them.

  Returns:
    id, claim, verdict, effect, standard_error, num_seeds, preset and note;
    None where there is no number.
  """
  frame = frames.get(claim.experiment, data.empty())
  frame, left_out = data.select_conditions(frame, _CELL)
  comparisons = claim.compare(frame)
  verdict, effect, note = judge(comparisons)
  if frame.empty:
    note = f'no finished run of {claim.experiment}'
  cells = {(s.model, s.task_support) for s in _samples(comparisons).values()}
  notes = [
      note,
      *_published_notes(claim.experiment, comparisons),
      *(f'not used: {run}' for run, cell in left_out.items() if cell in cells),
  ]
  return {
      'id': claim.id,
      'claim': claim.sentence,
      'verdict': verdict,
      'effect': _number(effect.value),
      'standard_error': _number(effect.standard_error),
      'num_seeds': effect.num_seeds,
      'preset': None if frame.empty else frame['preset'].iloc[0],
      'note': '; '.join(note for note in notes if note),
  }


def judge(
    comparisons: list[Comparison],
) -> tuple[str, stats.Estimate, str]:
  """Returns the verdict, the smallest difference, and a note on it."""
  nothing = stats.Estimate(math.nan, math.nan, 0)
  if not comparisons:
    return NOT_RUN, nothing, 'nothing was measured that decides it'
  samples = _samples(comparisons)
  missing = [name for name, s in samples.items() if s.values.empty]
  if missing:
    return NOT_RUN, nothing, f'no results for {", ".join(missing)}'
  scales = pd.concat([s.runs[list(_SCALE)] for s in samples.values()])
  differing = [name for name in _SCALE if scales[name].nunique() > 1]
  if differing:
    return NOT_RUN, nothing, f'the runs differ in {", ".join(differing)}'

  smallest = min(comparisons, key=lambda c: c.estimate.value)
  num_seeds = min(c.estimate.num_seeds for c in comparisons)
  effect = smallest.estimate._replace(num_seeds=num_seeds)
  note = f'smallest: {smallest.higher.name} - {smallest.lower.name}'
  if num_seeds == 0:
    return NOT_RUN, nothing, 'no seed was measured on both sides'
  if num_seeds == 1:
    effect = effect._replace(standard_error=math.nan)
    return NOT_RUN, effect, f'one seed: difference {effect.value:.3f}; {note}'
  if all(c.holds for c in comparisons):
    return PASS, effect, note
  failing = sum(not c.holds for c in comparisons)
  return FAIL, effect, f'{failing} of {len(comparisons)} do not hold; {note}'


def write(
    claims: tuple[Claim, ...], entries: list[dict[str, Any]]
) -> dict[str, str]:
  """Returns the files that report claims, name -> text.

  Args:
    claims: all claims.
    entries: what `evaluate` returned for each of them.
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
  rule = (
      '\nEffect: the smallest of the differences that the claim says are'
      ' positive, ± its standard error over seeds. Differences are taken seed'
      ' by seed: the same seed is the same teacher. PASS: all of them are'
      ' positive and larger than twice their standard errors.\n'
  )
  return {
      'claims.json': json.dumps(entries, indent=2, allow_nan=False) + '\n',
      'claims.md': tables.to_markdown(table) + rule,
  }


def _samples(comparisons):
  both = [s for c in comparisons for s in (c.higher, c.lower)]
  return {s.name: s for s in both}


def _published_notes(experiment, comparisons):
  """Sets beside the published values what ran at the published scale.

  Source: a value agrees that lies within two published standard deviations or
  two percentage points, whichever is larger.
  """
  agree, differ = 0, []
  for name, s in _samples(comparisons).items():
    reported = reference.published_accuracy(
        experiment, s.model, s.task_support, s.split
    )
    if reported is None or s.values.empty:
      continue
    if not s.runs['published_scale'].all():
      continue
    mean, deviation = reported
    ours = stats.mean(s.values).value
    if abs(ours - mean) <= max(2 * deviation, 0.02):
      agree += 1
    else:
      differ.append(f'{name} is {ours:.3f}, published {mean:.3f}')
  if agree or differ:
    yield f'{agree} of {agree + len(differ)} published values agree'
  yield from differ


def _number(value):
  return None if math.isnan(value) else value
