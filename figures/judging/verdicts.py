"""Decides claims from finished runs.

A claim is an intersection of comparisons (`comparisons.py`), each a one-sided
paired t test over seeds at 5% (`paired_t.py`). SUPPORTED: all hold.
CONTRADICTED: one is significantly reversed. UNDECIDED: neither. NOT RUN: there
are no results. docs/verdicts.md gives the error rates.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import functools
import math
from typing import Any, NamedTuple, TypedDict

import numpy as np
import pandas as pd

from modular_hyperteacher.figures.judging import comparisons as comparisons_lib
from modular_hyperteacher.figures.judging import paired_t
from modular_hyperteacher.figures.judging import students
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style

SUPPORTED, CONTRADICTED = 'SUPPORTED', 'CONTRADICTED'
UNDECIDED, NOT_RUN = 'UNDECIDED', 'NOT RUN'
VERDICTS = (SUPPORTED, CONTRADICTED, UNDECIDED, NOT_RUN)
OURS = "ours, not the paper's"  # The artefact of claims of our own.
_Comparisons = Sequence[comparisons_lib.Comparison]
# Fewer decide no claim that another scale decides, too (docs/verdicts.md).
_ENOUGH_SEEDS = 5


class Numbers(TypedDict):
  """Numbers of a comparison; None for what cannot be computed."""

  effect: float | None  # Mean over seeds.
  bound: float | None  # The comparison holds if the mean exceeds this.
  standard_error: float | None
  interval: tuple[float, float] | None  # 90%
  t: float | None
  p: float | None  # One-sided.
  num_seeds: int


class Tested(Numbers):
  """A comparison in claims.json."""

  name: str
  holds: bool
  reversed: bool


class Entry(Numbers):
  """A claim in claims.json, with numbers of the comparison that decides it."""

  id: str
  artefact: str
  sentence: str
  experiment: str
  preset: str | None
  source: str | None  # 'own' or 'bundled' runs.
  verdict: str  # One of VERDICTS.
  comparison: str | None  # Its name.
  comparisons: list[Tested]
  note: str
  scales: dict[str, str]  # Preset -> verdict there, nearest to the paper first.


Compare = Callable[[pd.DataFrame], comparisons_lib.Comparisons]
Read = Callable[[data.Library, str], pd.DataFrame]


@dataclasses.dataclass(frozen=True)
class Claim:
  """A sentence of the paper that data can decide.

  Attributes:
    id: short name.
    sentence: what is tested, at any scale.
    figure: the figure of `registry.figures()` that it is shown with.
    compare: table with one condition per cell -> comparisons; none if the table
      cannot decide the claim.
    cell: the columns that distinguish the cells that are compared. Runs must
      agree in all other fields of task and training.
    artefact: the figure, table or section that says it; by default, the figure
      whose name its id begins with.
    experiment: the experiment whose runs decide it; by default, that with the
      name of the figure.
    read: (library, experiment) -> table: `Library.values` or `Library.curves`.
    models: the models of the sentence; the claim is NOT RUN without runs of
      each, and UNDECIDED without a comparison of each.
    undecided: the note if there are results but no comparison.
    at_published_scale: what is tested there beside the sentence.
  """

  id: str
  sentence: str
  figure: str
  compare: Compare
  cell: tuple[str, ...]
  artefact: str = ''
  experiment: str = ''
  read: Read = data.Library.values
  models: tuple[str, ...] = ()
  undecided: str = 'nothing was measured that decides it'
  at_published_scale: str = ''

  def __post_init__(self) -> None:
    artefact = self.artefact or f'Figure {self.id.partition("-")[0]}'
    # The only way to set a field of a frozen record.
    object.__setattr__(self, 'artefact', artefact)
    object.__setattr__(self, 'experiment', self.experiment or self.figure)


of_hypernetworks = functools.partial(Claim, models=style.HYPERNETWORKS)


def ours(
    id_: str, sentence: str, figure: str, compare: Compare, **fields: Any
) -> Claim:
  """Returns a claim of our own; the arguments are those of `Claim`."""
  said = f"Ours, not the paper's: {sentence}"
  return Claim(id_, said, figure, compare, artefact=OURS, **fields)


class Judgement(NamedTuple):
  """A verdict, and the comparison that decides it."""

  verdict: str
  note: str
  tested: tuple[Tested, ...] = ()
  decisive: Tested | None = None


@functools.lru_cache(maxsize=64)
def select(
    read: Read, experiment: str, cell: tuple[str, ...], library: data.Library
) -> tuple[pd.DataFrame, dict[str, tuple[Any, ...]]]:
  """Returns a table as `pick.select_conditions` does; not to be changed."""
  return pick.select_conditions(read(library, experiment), cell)


@functools.lru_cache(maxsize=256)
def compare(claim: Claim, library: data.Library) -> _Comparisons:
  """Returns a claim's comparisons at the last step; not to be changed."""
  frame, _ = select(claim.read, claim.experiment, claim.cell, library)
  return () if frame.empty else tuple(claim.compare(frame))


@functools.lru_cache(maxsize=256)
def evaluate(claim: Claim, library: data.Library) -> Entry:
  """Returns a claim's entry of claims.json; not to be changed.

  Its verdict is that of a user's own runs, if they decide it. If not, it is
  that of the scale nearest to the published one whose comparisons all have
  enough seeds; without any, that of the runs that figures show.
  """
  experiment = claim.experiment
  shown = _evaluate(claim, library)
  presets = [p for p in library.presets(experiment) if p != 'smoke']
  if len(presets) < 2:
    return shown
  entries = {
      preset: _evaluate(claim, library.at_scale(experiment, preset))
      for preset in presets
  }
  enough = [
      entry
      for entry in entries.values()
      if entry['verdict'] != NOT_RUN and _fewest_seeds(entry) >= _ENOUGH_SEEDS
  ]
  own_decide = shown['source'] == 'own' and shown['verdict'] != NOT_RUN
  entry = shown if own_decide else [*enough, shown][0]
  scales = {preset: one['verdict'] for preset, one in entries.items()}
  others = [
      f'{p} scale: {v}' for p, v in scales.items() if p != entry['preset']
  ]
  note = '; '.join([entry['note'], *others])
  return {**entry, 'note': note, 'scales': scales}


def _fewest_seeds(entry: Entry) -> int:
  return min((one['num_seeds'] for one in entry['comparisons']), default=0)


def _evaluate(claim: Claim, library: data.Library) -> Entry:
  """Returns the entry of a claim for the runs that the library chooses."""
  frame, left_out = select(claim.read, claim.experiment, claim.cell, library)
  made = compare(claim, library)
  samples = _samples(made)
  runs = pd.concat([s.runs for s in samples.values()] or [frame.iloc[:1]])
  judgement = _judge_claim(claim, frame, made)
  notes = [judgement.note]
  changed = ~runs['published_scale'].astype(bool)
  if samples and (changed & (runs['preset'] == 'paper')).any():
    notes.append(
        'fields of the paper preset were changed: not the published scale'
    )
  notes += _width_notes(claim.experiment, samples.values())
  notes += _published_notes(claim.experiment, samples)
  for run, values in left_out.items():
    cell = dict(zip(claim.cell, values)).items()
    # A sample may lack columns.
    if any(cell >= s.cell.items() for s in samples.values()):
      notes.append(f'not used: {run}')
  at_scale = bool(len(frame)) and bool(frame['published_scale'].all())
  decisive: Mapping[str, Any] = judgement.decisive or {'num_seeds': 0}
  numbers: Any = {name: decisive.get(name) for name in Numbers.__annotations__}
  return Entry(
      id=claim.id,
      artefact=claim.artefact,
      sentence=claim.sentence + claim.at_published_scale * at_scale,
      experiment=claim.experiment,
      preset=' and '.join(runs['preset'].unique()) or None,
      source=' and '.join(runs['source'].unique()) or None,
      verdict=judgement.verdict,
      comparison=decisive.get('name'),
      **numbers,
      comparisons=list(judgement.tested),
      note='; '.join(filter(None, notes)),
      scales={},
  )


def _judge_claim(
    claim: Claim, frame: pd.DataFrame, made: _Comparisons
) -> Judgement:
  if frame.empty:
    return Judgement(NOT_RUN, f'no finished run of {claim.experiment}')
  compared = {s.cell.get('model.name') for s in _samples(made).values()}
  for verdict, present in (
      (NOT_RUN, set(frame.get('model.name', ()))),
      (UNDECIDED, compared),
  ):
    absent = [style.MODEL_NAMES[m] for m in claim.models if m not in present]
    if absent:
      names = ' and '.join(absent)
      return Judgement(verdict, f'nothing that decides it of {names}')
  if not made:
    return Judgement(UNDECIDED, claim.undecided)
  return judge(made, claim.cell)


def judge(
    all_of: comparisons_lib.Comparisons, cell: Sequence[str] = ('model.name',)
) -> Judgement:
  """Returns the verdict on comparisons, one or more, which must all hold.

  Runs may differ in the columns of the cell.
  """
  every = tuple(all_of)
  missing = [
      name
      for name, s in _samples(every).items()
      if s.values.dropna().empty and not s.lost
  ]
  if missing:
    return Judgement(NOT_RUN, f'no results for {", ".join(missing)}')
  differing = sorted({f for c in every for f in _differing(c, cell)})
  if differing:
    return Judgement(NOT_RUN, f'the runs differ in {", ".join(differing)}')
  if any(c.estimate.num_seeds == 0 and not c.lost for c in every):
    return Judgement(NOT_RUN, 'no seed was measured on both sides')
  for c in every:
    if len({s.name for s in c.samples}) < len(c.samples):
      return Judgement(NOT_RUN, f'only one side was trained: {c.name}')

  t = [c.t for c in every]
  num_seeds = [c.estimate.num_seeds for c in every]
  holds = paired_t.holds(t, num_seeds)
  is_reversed = paired_t.is_reversed(t, num_seeds)
  tested = [_tested(*c) for c in zip(every, holds, is_reversed, strict=True)]
  verdict = UNDECIDED
  if holds.all():
    verdict = SUPPORTED
  elif is_reversed.any():
    verdict = CONTRADICTED
  p = paired_t.p_value(t, num_seeds)
  p = np.where(np.isnan(p), np.inf, p)  # A lost seed leaves it undecided.
  if verdict == CONTRADICTED:
    p = np.where(is_reversed, p, -1.0)
  weakest = int(p.argmax())
  note = f'decided by {every[weakest].name}'
  if bound := every[weakest].bound:
    note += f', to exceed {bound:g}'
  if not holds.all() and len(every) > 1:
    note = (
        f'{holds.sum()} of {len(every)} hold, {is_reversed.sum()} reversed;'
        f' {note}'
    )
  if num_seeds[weakest] == 1:
    note = f'one seed cannot be tested; {note}'
  if lost := sorted({seed for c in every for seed in c.lost}):
    note = f'no finite value of seed {", ".join(map(str, lost))}; {note}'
  return Judgement(verdict, note, tuple(tested), tested[weakest])


def _tested(
    comparison: comparisons_lib.Comparison, holds: bool, is_reversed: bool
) -> Tested:
  mean, error, num_seeds = comparison.estimate
  t = comparison.t
  return Tested(
      name=comparison.name,
      effect=_number(mean),
      bound=comparison.bound,
      standard_error=_number(error),
      interval=comparison.interval if math.isfinite(t) else None,
      t=_number(t),
      p=_number(float(paired_t.p_value(t, num_seeds))),
      num_seeds=num_seeds,
      holds=bool(holds),
      reversed=bool(is_reversed),
  )


def _samples(all_of: _Comparisons) -> dict[str, comparisons_lib.Sample]:
  return {s.name: s for comparison in all_of for s in comparison.samples}


def _differing(
    comparison: comparisons_lib.Comparison, cell: Sequence[str]
) -> list[str]:
  """Returns fields of task and training, or of one model, that should not."""
  by_model: dict[Any, list[pd.DataFrame]] = {}
  for sample in comparison.samples:
    by_model.setdefault(sample.cell.get('model.name'), []).append(sample.runs)
  runs = [s.runs for s in comparison.samples]
  free = {*cell, *comparison.may_differ, 'training.seeds'}
  # What OOD(K=k) is evaluated on where nothing was held out.
  free |= {'task.repeat_empty', 'task.repeat_ood'}
  # A config may give each model its own steps, as `desktop` does.
  if all(r.get('described', pd.Series([False])).all() for r in runs):
    free.add('training.num_outer_steps')
  differing = []
  for blocks, groups in (
      (('task.', 'training.', 'preset'), [runs]),
      ('model.', by_model.values()),
  ):
    for column in map(str, runs[0].columns):
      if column.startswith(blocks) and column not in free:
        # Missing values are equal to one another.
        values = (
            {v if v == v else None for r in group for v in r[column]}
            for group in groups
        )
        if any(len(distinct) > 1 for distinct in values):
          differing.append(column.rpartition('.')[2])
  return differing


def _width_notes(
    experiment: str, samples: Iterable[comparisons_lib.Sample]
) -> Iterator[str]:
  """Yields which described widths of monolithic models no sample has."""
  name, width = comparisons_lib.MODEL, students.WIDTH
  for model in style.MONOLITHIC:
    runs = [s.runs for s in samples if s.cell.get(name) == model]
    trained = pd.concat(runs) if runs else pd.DataFrame({'preset': []})
    described = {
        fields[width]
        for preset in trained['preset'].unique()
        for fields in reference.described_fields(experiment, preset)
        if fields[name] == model
    }
    if absent := sorted(described - set(trained.get(width, ()))):
      names = ' and '.join(f'{number:g}' for number in absent)
      yield f'not compared with {style.MODEL_NAMES[model]} {names} wide'


def _published_notes(
    experiment: str, samples: Mapping[str, comparisons_lib.Sample]
) -> Iterator[str]:
  """Yields comparisons with published values, at the published scale."""
  compared, differ = 0, []
  for name, s in samples.items():
    if s.metric != 'accuracy' or s.values.empty:
      continue
    reported = reference.published_accuracy(experiment, s.cell, s.split)
    if reported is None or not s.runs['published_scale'].all():
      continue
    compared += 1
    ours = stats.mean(s.values).value
    if not reference.agrees(ours, reported):
      note = f'{name} is {ours:.3f}, published {reported[0]:.3f}'
      if reported[1] > 0:  # Not NaN: not printed.
        apart = (ours - reported[0]) / reported[1]
        note += f' ({apart:+.1f} published SD)'
      differ.append(note)
  if compared:
    yield f'{compared - len(differ)} of {compared} published values agree'
  yield from differ


def _number(value: float) -> float | None:
  return value if math.isfinite(value) else None
