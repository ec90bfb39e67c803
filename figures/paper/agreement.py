"""How many values of the paper's tables agree with ours at the published scale.

A value agrees if it is within two published deviations or two percentage
points, whichever is larger. Even a perfect reproduction misses some, because
both sides are means over a few seeds; a simulation says how many.
"""

from collections.abc import Iterable, Iterator, Sequence
import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.paper import fig3e
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.figures.plotting import tables

EXPERIMENT, CELL = fig3e.EXPERIMENT, fig3e.CELL
SPLITS = ('train', 'test', 'ood', 'ood_k1', 'ood_k2', 'ood_k4', 'ood_k8')
_NUM_PUBLISHED_SEEDS = 3
_NUM_DRAWS = 4000


class Value(NamedTuple):
  """A published accuracy and ours of the same condition, as fractions."""

  fields: dict[str, Any]  # Path in the config -> value.
  condition: str
  split: str
  published: tuple[float, float]  # Mean, dispersion.
  runs: pd.DataFrame  # Results of finished runs; may be empty.
  ours: stats.Estimate  # May be without seeds though there are runs.

  @property
  def agrees(self) -> bool:
    """Whether ours agrees with the published value."""
    return reference.agrees(self.ours.value, self.published)

  def cell(self, columns: Iterable[str] = CELL) -> str:
    """Returns the name of its cell: 'ANIL, M = 4, K = 1'."""
    present = [column for column in columns if column in self.fields]
    return style.cell_name({column: self.fields[column] for column in present})

  def name(self, columns: Iterable[str] = CELL) -> str:
    """Returns such as 'ANIL, M = 4, K = 1, seen combinations'."""
    return f'{self.cell(columns)}, {style.split_name(self.split)}'


def compare(frame: pd.DataFrame, experiment: str) -> Iterator[Value]:
  """Yields every published accuracy of an experiment, and its runs if any.

  The frame has an experiment's runs of all presets. Those of the same condition
  at the published scale count.
  """
  at_scale = frame[frame['published_scale'].astype(bool)]
  described = {
      sweeps.condition(run.config): run.config
      for run in reference.described_runs(experiment, 'paper')
  }
  for condition, config in described.items():
    runs = pick.rows(at_scale, {'condition': condition})
    fields = dict(sweeps.flatten(config))
    for split in dict.fromkeys([*runs['split'], *SPLITS]):
      published = reference.tabulated(config, split)
      if published is not None:
        ours = stats.mean(pick.values(runs, {}, split))
        yield Value(fields, condition, split, published, runs, ours)


def summarise(library: data.Library) -> list[str]:
  """Returns how many values agree, and lines that name all others."""
  values = list(compare(library.every_preset(EXPERIMENT), EXPERIMENT))
  compared = [value for value in values if value.ours.num_seeds]
  no_run = dict.fromkeys(value.cell() for value in values if value.runs.empty)
  if not compared:
    return ['NOT RUN', f'Without a finished run: all {len(no_run)} cells']
  fewest = min(value.ours.num_seeds for value in compared)
  low, high = misses_by_chance(compared, fewest)
  apart = [
      f'{v.name()}: {v.ours.value:.3f}, published {v.published[0]:.3f}'
      for v in compared
      if not v.agrees
  ]
  # The authors repeat a single task.
  empty = [
      v.name() for v in values if not v.runs.empty and not v.ours.num_seeds
  ]
  others = {
      'Apart': apart,
      'No such tasks in ours': empty,
      'Without a finished run': no_run,
  }
  return [
      (
          f'{len(compared) - len(apart)} of {len(compared)} values agree; a'
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
  spread = np.array([value.published[1] for value in values])
  cells = [value.cell() for value in values]
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
  seen: set[str] = set()  # Conditions, as experiments share runs.
  for experiment in experiments:
    frame = library.every_preset(experiment)
    frame = frame[frame['published_scale'].astype(bool)]
    if frame.empty:
      continue
    columns = ['model.name']
    columns += [
        f for f in _FIELDS if f in frame and frame[f].nunique(dropna=False) > 1
    ]
    values = [
        value
        for value in compare(frame, experiment)
        if value.ours.num_seeds and value.condition not in seen
    ]
    seen.update(value.condition for value in values)
    for value in values:
      facts: Any = value.runs.drop_duplicates('run_id')[['device', 'wall_s']]
      hours = facts['wall_s'].sum(skipna=False) / 3600
      ours = value.ours
      yield {
          'experiment': experiment,
          'value': value.name(columns),
          'published': tables.with_error(*value.published),
          'ours': tables.with_error(ours.value, ours.standard_error),
          'seeds': str(ours.num_seeds),
          'agrees': 'yes' if value.agrees else 'no',
          'hardware': ', '.join(facts['device'].unique()),
          'hours': 'not timed' if math.isnan(hours) else f'{hours:.1f}',
      }
