"""Runs at the published scale beside the published numbers, as one table."""

from collections.abc import Iterator
import math
from typing import Any

from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.figures.plotting import tables

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


def rows(library: data.Library, experiments: list[str]) -> list[dict[str, str]]:
  """Returns a row per published accuracy that finished runs compare with.

  Args:
    library: the finished runs; those at a smaller scale are left out.
    experiments: such as 'fig3b'.
  """
  seen: set[str] = set()  # Experiments share runs.
  return [
      row
      for experiment in experiments
      for row in _experiment_rows(library, experiment, seen)
  ]


def _experiment_rows(
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
