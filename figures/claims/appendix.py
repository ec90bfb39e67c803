"""Claims about the hyperteacher: Appendix B, Figures and Tables A2 to A8."""

from collections.abc import Iterator
import itertools
import math
from typing import Any

import numpy as np
import pandas as pd

from figures.claims import hyperteacher
from figures.claims import verdicts
from figures.extensions import scaling_law
from figures.library import cells
from figures.library import data
from figures.library import reference
from figures.paper import fig3e
from figures.paper import fig_a3
from figures.paper import fig_a4
from figures.plotting import stats
from figures.plotting import style

# A fall of training accuracy that counts.
_NOTICEABLE = 0.05
# Two percentage points, if two published deviations are less.
_LEAST_TOLERANCE = 0.02


def _more_tasks_for_more_modules(curves: pd.DataFrame) -> list[verdicts.Effect]:
  """Slope over M at the level of accuracy that the scaling law is fitted to."""
  effects = []
  for model, max_active, level, bounds in scaling_levels(curves):
    num_modules = sorted(bounds['x'].unique())
    samples = [
        _doublings(curves, bounds, model, max_active, m, level)
        for m in num_modules
    ]
    name = (
        f'doublings per module, {style.MODEL_NAMES[model]}, K = {max_active},'
        f' to {level:g}'
    )
    effects.append(verdicts.slope(name, samples, num_modules))
  return effects


def scaling_levels(
    curves: pd.DataFrame,
) -> Iterator[tuple[str, int, float, pd.DataFrame]]:
  """Yields (model, K, level, tasks to the level) of each scaling law."""
  found = cells.select(fig_a3.EXPERIMENT, curves, fig_a3.CELL)
  groups: Any = fig_a3.make_table(found).groupby(['model', 'K'])
  for (model, max_active), rows in groups:
    level, bounds = scaling_law.choose_level(rows)
    if model in style.HYPERNETWORKS and level is not None:
      yield model, max_active, level, bounds


def _doublings(
    curves: pd.DataFrame,
    bounds: pd.DataFrame,
    model: str,
    max_active: int,
    num_modules: int,
    level: float,
) -> verdicts.Sample:
  """Returns log2 of the tasks that each seed needs to reach a level."""
  cell: cells.Cell = dict(zip(fig_a3.CELL, (model, max_active, num_modules)))
  tasks = bounds[bounds['x'] == num_modules].set_index('seed')[['low', 'high']]
  return verdicts.Sample(
      f'{style.cell_name(cell)}, to {level:g}',
      tasks.astype(float).mean(axis=1).apply(np.log2),
      data.rows(curves, cell),
      cell,
      'ood',
      'log2 tasks',
  )


def _more_shots_help(frame: pd.DataFrame) -> list[verdicts.Effect]:
  effects = []
  for (m, k), model in itertools.product(
      hyperteacher.sizes(frame), style.HYPERNETWORKS
  ):
    cell: cells.Cell = dict(zip(fig_a4.CELL_A4, (model, m, k)))
    shots = sorted(set(data.rows(frame, cell)['task.num_support']))
    if len(shots) > 1:
      samples = [
          verdicts.sample(frame, {**cell, 'task.num_support': s}) for s in shots
      ]
      name = f'per doubling of shots, {style.cell_name(cell)}'
      effects.append(verdicts.slope(name, samples, np.log2(shots)))
  return effects


def _robust_for_more_modules(frame: pd.DataFrame) -> list[verdicts.Effect]:
  """The fall from least to most held out, at the least M and at the most."""
  effects = []
  for model in style.HYPERNETWORKS:
    runs = data.rows(frame, {'model.name': model})
    held_out = sorted(runs['task.fraction_ood'].unique())
    num_modules = sorted(runs['task.num_modules'].unique())
    if len(held_out) < 2 or len(num_modules) < 2:
      continue
    corners: list[cells.Cell] = [
        dict(zip(fig_a4.CELL_A5, (model, m, fraction)))
        for m in (num_modules[0], num_modules[-1])
        for fraction in (held_out[0], held_out[-1])
    ]
    name = f'fall with fewer modules - with more, {style.MODEL_NAMES[model]}'
    samples = [verdicts.sample(frame, cell) for cell in corners]
    effects.append(verdicts.between(name, samples, (1, -1, -1, 1)))
    effects += [
        verdicts.difference(
            verdicts.sample(frame, most, 'train'),
            verdicts.sample(frame, least, 'train'),
            bound=-_NOTICEABLE,
        )
        for least, most in (corners[:2], corners[2:])
    ]
  return effects


def _decodability_mirrors_accuracy(
    frame: pd.DataFrame,
) -> list[verdicts.Effect]:
  """Correlation of R2 with OOD accuracy over the grid, seed by seed."""
  effects = []
  for model in style.HYPERNETWORKS:
    grid: list[cells.Cell] = [
        dict(zip(fig3e.CELL, (model, *size)))
        for size in hyperteacher.sizes(frame)
    ]
    accuracy = [verdicts.sample(frame, cell) for cell in grid]
    decoded = [verdicts.sample(frame, cell, metric='r2') for cell in grid]
    if len(grid) < 3:
      continue
    tables = [
        pd.concat([s.values for s in samples], axis=1, keys=range(len(grid)))
        for samples in (accuracy, decoded)
    ]
    correlation = tables[0].corrwith(tables[1], axis=1).dropna()
    effects.append(
        verdicts.Effect(
            f'correlation of R2 with accuracy, {style.MODEL_NAMES[model]}',
            stats.mean(correlation),
            (*accuracy, *decoded),
        )
    )
  return effects


def _as_published(frame: pd.DataFrame) -> list[verdicts.Effect]:
  """Our numbers against those of the tables, at the published scale only."""
  at_scale = frame[frame['published_scale'].astype(bool)]
  effects = []
  for cell in data.distinct(at_scale, fig3e.CELL):
    for split in data.rows(at_scale, cell)['split'].unique():
      ours = verdicts.sample(at_scale, cell, split)
      found = reference.published_accuracy('fig3e', cell, split)
      if found is None or ours.values.empty:
        continue
      tolerance = max(2 * found[1], _LEAST_TOLERANCE)
      mean = stats.mean(ours.values)
      distance = stats.Estimate(-abs(mean.value - found[0]), *mean[1:])
      effects.append(
          verdicts.Effect(
              f'-|{ours.name} - published|', distance, (ours,), -tolerance, 0
          )
      )
  return [e for e in effects if not math.isnan(e.estimate.value)]


CLAIMS = (
    verdicts.Claim(
        id='A3',
        sentence=(
            'The number of training tasks that a given OOD accuracy takes'
            ' grows with M, for both hypernetworks.'
        ),
        artefact='Figure A3',
        experiment='fig_a3',
        figure='fig_a3',
        cell=fig_a3.CELL,
        decide=_more_tasks_for_more_modules,
        read=data.Library.curves,
        models=style.HYPERNETWORKS,
    ),
    verdicts.Claim(
        id='A4',
        sentence='Fewer shots lower the OOD accuracy of both hypernetworks.',
        artefact='Figure A4',
        experiment='fig_a4',
        figure='fig_a4',
        cell=fig_a4.CELL_A4,
        decide=_more_shots_help,
        models=style.HYPERNETWORKS,
    ),
    verdicts.Claim(
        id='A5',
        sentence=(
            'For larger M, OOD accuracy of both hypernetworks falls less as'
            ' more combinations are held out; training accuracy stays stable.'
        ),
        artefact='Figure A5',
        experiment='fig_a5',
        figure='fig_a5',
        cell=fig_a4.CELL_A5,
        decide=_robust_for_more_modules,
        models=style.HYPERNETWORKS,
    ),
    verdicts.Claim(
        id='A6',
        sentence=(
            'Linear decodability over M and K mirrors OOD accuracy, for both'
            ' hypernetworks.'
        ),
        artefact='Figure A6',
        experiment='fig3e',
        figure='fig_a6',
        cell=fig3e.CELL,
        decide=_decodability_mirrors_accuracy,
        models=style.HYPERNETWORKS,
    ),
    verdicts.Claim(
        id='A2-A8',
        sentence=(
            'Train, test and OOD accuracies are those of Tables A2 to A8,'
            ' within two published deviations or two percentage points.'
        ),
        artefact='Tables A2-A8',
        experiment='fig3e',
        figure='table_a6',
        cell=fig3e.CELL,
        decide=_as_published,
        read=data.Library.every_preset,
        undecided=(
            'compared at the published scale only, at which no run is finished'
        ),
    ),
)
