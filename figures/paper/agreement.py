"""How many values of the paper's tables agree with ours at the published scale.

A value agrees if it is within two published deviations or two percentage
points, whichever is larger. Even a perfect reproduction misses some, because
both sides are means over a few seeds; a simulation says how many.
"""

from collections.abc import Iterator, Sequence
import functools
import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.figures.plotting import tables

EXPERIMENT = 'fig3e'
CELL = ('model.name', 'task.num_modules', 'task.max_active')
SPLITS = ('train', 'test', 'ood', 'ood_k1', 'ood_k2', 'ood_k4', 'ood_k8')
_NUM_PUBLISHED_SEEDS = 3
_NUM_DRAWS = 4000


class Value(NamedTuple):
  """A published accuracy, as fractions."""

  cell: dict[str, Any]
  split: str
  mean: float
  dispersion: float

  @property
  def name(self) -> str:
    """Such as 'ANIL, M = 4, K = 1, seen combinations'."""
    return f'{style.cell_name(self.cell)}, {style.split_name(self.split)}'


class Agreement(NamedTuple):
  """How many values agree."""

  compared: list[Value]
  num_seeds: int  # The fewest seeds behind one of our values.
  differ: list[str]  # Those that do not agree, with both numbers.
  empty: list[str]  # No such tasks in ours; the authors repeat a single one.
  no_run: list[str]  # Cells, not values.


@functools.cache
def published() -> tuple[Value, ...]:
  """Returns all values of the tables."""
  values = []
  for fields in reference.described_fields(EXPERIMENT, 'paper'):
    cell = {column: fields[column] for column in CELL}
    for split in SPLITS:
      reported = reference.published_accuracy(EXPERIMENT, cell, split)
      if reported is not None:
        values.append(Value(cell, split, *reported))
  return tuple(values)


def count(frame: pd.DataFrame) -> Agreement:
  """Compares all published values with runs at the published scale."""
  at_scale = frame[frame['published_scale'].astype(bool)]
  at_scale, _ = pick.select_conditions(at_scale, CELL)
  compared, num_seeds, differ, empty, no_run = [], [], [], [], []
  for value in published():
    ours = stats.mean(pick.values(at_scale, value.cell, value.split))
    if not pick.has_rows(at_scale, value.cell):
      no_run.append(style.cell_name(value.cell))
    elif not ours.num_seeds:
      empty.append(value.name)
    else:
      compared.append(value)
      num_seeds.append(ours.num_seeds)
      if not reference.agrees(ours.value, (value.mean, value.dispersion)):
        numbers = f'{ours.value:.3f}, published {value.mean:.3f}'
        differ.append(f'{value.name}: {numbers}')
  fewest = min(num_seeds, default=0)
  return Agreement(compared, fewest, differ, empty, [*dict.fromkeys(no_run)])


def summarise(library: data.Library) -> list[str]:
  """Returns how many values agree, and lines that name all others."""
  counted = count(library.every_preset(EXPERIMENT))
  if not counted.compared:
    cells = f'all {len(counted.no_run)} cells'
    return ['NOT RUN', f'Without a finished run: {cells}']
  low, high = misses_by_chance(counted.compared, counted.num_seeds)
  compared = len(counted.compared)
  others = {
      'Apart': counted.differ,
      'No such tasks in ours': counted.empty,
      'Without a finished run': counted.no_run,
  }
  return [
      (
          f'{compared - len(counted.differ)} of {compared} values agree; a'
          f' perfect reproduction misses {low} to {high} of them'
      ),
      *(f'{name}: {"; ".join(v)}' for name, v in others.items() if v),
  ]


def misses_by_chance(
    values: Sequence[Value], num_seeds: int
) -> tuple[int, int]:
  """Returns how many of these values a perfect reproduction misses, 5 to 95%.

  The paper does not say whether its dispersions are deviations over seeds or
  standard errors: the range covers both. All splits of a run are taken to err
  together, as they share its training.
  """
  spread = np.array([value.dispersion for value in values])
  cells = [style.cell_name(value.cell) for value in values]
  run = np.unique(cells, return_inverse=True)[1]
  shape = _NUM_DRAWS, run.max() + 1
  rng = np.random.default_rng(0)
  ranges = []
  for deviation in (spread, spread * _NUM_PUBLISHED_SEEDS**0.5):
    theirs, ours = (
        deviation * rng.standard_normal(shape)[:, run] / n**0.5
        for n in (_NUM_PUBLISHED_SEEDS, num_seeds)
    )
    freedom = _NUM_PUBLISHED_SEEDS - 1
    scale = (rng.chisquare(freedom, shape)[:, run] / freedom) ** 0.5
    tolerance = reference.tolerance(spread * scale)
    num_missed = (np.abs(ours - theirs) > tolerance).sum(1)
    ranges.append(np.percentile(num_missed, (5, 95)))
  low, high = np.min(ranges), np.max(ranges)
  return int(low), int(high)


# Fields that tell the rows of one experiment apart, if they differ.
_FIELDS = (
    'model.name',
    'task.num_modules',
    'task.max_active',
    'task.meanings',
    'task.num_extra',
    'model.outer.support_loss',
    'model.use_decoder_attention',
)


def compared_rows(
    library: data.Library, experiments: Sequence[str]
) -> Iterator[dict[str, str]]:
  """Yields a row per published accuracy that finished runs compare with."""
  seen: set[str] = set()  # Experiments share runs.
  for experiment in experiments:
    yield from _rows_of(library, experiment, seen)


def _rows_of(
    library: data.Library, experiment: str, seen: set[str]
) -> Iterator[dict[str, str]]:
  """Yields the rows of conditions not in `seen`, and adds them to it."""
  frame = library.every_preset(experiment)
  if frame.empty:
    return
  frame = frame[frame['published_scale'].astype(bool)]
  described = {
      condition: run.config
      for run in reference.described_runs(experiment, 'paper')
      if (condition := sweeps.condition(run.config)) not in seen
  }
  seen.update(described)
  fields = [
      f for f in _FIELDS if f in frame and frame[f].nunique(dropna=False) > 1
  ]
  for condition, config in described.items():
    runs = pick.rows(frame, {'condition': condition})
    facts: Any = runs.drop_duplicates('run_id')[['device', 'wall_s']]
    hours = facts['wall_s'].sum(skipna=False) / 3600
    flat = dict(sweeps.flatten(config))
    cell = {f: flat[f] for f in ('model.name', *fields) if f in flat}
    for split in dict.fromkeys(runs['split']):
      published = reference.tabulated(config, split)
      ours = stats.mean(pick.values(runs, {}, split))
      if published is None or not ours.num_seeds:
        continue
      yield {
          'experiment': experiment,
          'value': f'{style.cell_name(cell)}, {style.split_name(split)}',
          'published': tables.with_error(*published),
          'ours': tables.with_error(ours.value, ours.standard_error),
          'seeds': str(ours.num_seeds),
          'agrees': 'yes' if reference.agrees(ours.value, published) else 'no',
          'hardware': ', '.join(facts['device'].unique()),
          'hours': 'not timed' if math.isnan(hours) else f'{hours:.1f}',
      }
