"""Figure A3: training tasks until OOD accuracy reaches a level, over M."""

from collections.abc import Sequence
import functools
import math

import numpy as np
import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import lines

EXPERIMENT = 'fig_a3'
TWO_LAYERS = 'fig_a3_two_layers'
CELL = ('model.name', 'task.max_active', 'task.num_modules')
LEVELS = (0.6, 0.7, 0.8, 0.9)
# Chosen by the runs with eight modules, before the others were trained.
LEVELS_TWO_LAYERS = (0.5, 0.525, 0.55, 0.575)
_OF_CURVE = ['seed', 'step', 'value', 'training.meta_batch_size', 'preset']
# From light to dark; distinct in greyscale, too.
_COLOURS = ('#C9B45B', '#8A8779', '#575D6D', '#00224E')


def _draw(
    library: data.Library, experiment: str, levels: Sequence[float]
) -> cells.Drawn:
  grid = cells.select(experiment, library.curves(experiment), CELL)
  table = make_table(grid, levels)
  reached = table.dropna(subset='tasks')
  colours = dict(zip(levels, _COLOURS))
  never = [f'{x:g}' for x in levels if x not in set(reached['level'])]

  def fill(_: cells.Cells, panel: list[cells.Cell]) -> list[lines.Line]:
    model, max_active, _ = panel[0].values()
    rows = pick.rows(reached, {'model': model, 'K': max_active})
    return [
        lines.Line(
            f'OOD accuracy {level:g}',
            colours[level],
            pick.rows(rows, {'level': level}).pivot_table(
                index='M', columns='seed', values='tasks'
            ),
        )
        for level in levels
        if f'{level:g}' not in never
    ]

  figure = lines.draw(
      described.split('{name}, K = {max_active}', fill, 'name')(grid),
      x_title='M, modules',
      y_title='training tasks (outer steps × tasks per step)',
      y_type='log',
      empty='no seed reached these levels',
      caption=grid.caption(
          'Means over the seeds that reached it; the table counts the others.',
          *([f'No seed reached {" or ".join(never)}.'] if never else []),
      ),
  )
  if len(table):
    table = table.groupby([*table.columns[:4]], as_index=False).agg(
        tasks_mean=('tasks', 'mean'),
        tasks_se=('tasks', 'sem'),
        num_reached=('tasks', 'count'),
        num_seeds=('seed', 'count'),
        preset=('preset', 'first'),
    )
  return figure, table


def make_table(
    grid: cells.Cells, levels: Sequence[float] = LEVELS
) -> pd.DataFrame:
  """Returns the training tasks of every seed to every level of OOD accuracy.

  Returns:
    Columns model, K, M, level, seed, tasks (until the first evaluation at the
    level; NaN if never reached), tasks_before (until the last evaluation before
    the level was reached; 0 if there is none) and preset.
  """
  columns = ['model', 'K', 'M', 'level', 'seed', 'tasks', 'tasks_before']
  rows = []
  for cell in grid.cells:
    ood = {**cell, 'split': 'ood', 'metric': 'accuracy'}
    runs = pick.rows(grid.frame, ood).filter(_OF_CURVE)  # Fewer to copy.
    for seed, curve in runs.groupby('seed'):
      tasks = (curve['step'] * curve['training.meta_batch_size']).to_numpy()
      accuracy, preset = curve['value'].to_numpy(), curve['preset'].iloc[0]
      for level in levels:
        reached = tasks_to_reach(tasks, accuracy, level)
        before = tasks[~(tasks >= reached)].max(initial=0)
        rows.append([*cell.values(), level, seed, reached, before, preset])
  return pd.DataFrame(rows, columns=[*columns, 'preset'])


def tasks_to_reach(
    tasks: np.ndarray, accuracy: np.ndarray, level: float
) -> float:
  """Returns the tasks until the first evaluation at a level or above.

  Tasks are those until each evaluation. NaN if no accuracy reaches the level.
  """
  return float(min(tasks[accuracy >= level], default=math.nan))


FIGURES = {
    name: described.Figure(
        title,
        (name,),
        functools.partial(_draw, experiment=name, levels=levels),
    )
    for name, title, levels in (
        (
            EXPERIMENT,
            'Figure A3: do more modules take more training tasks?',
            LEVELS,
        ),
        (
            TWO_LAYERS,
            'Figure A3 with two generated layers and K = 2: does it hold?',
            LEVELS_TWO_LAYERS,
        ),
    )
}
