"""Figure A3: training tasks until OOD accuracy reaches a level, over M."""

from collections.abc import Sequence
import math

import numpy as np
import pandas as pd

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'fig_a3'
TITLE = 'Figure A3: do more modules take more training tasks?'
TWO_LAYERS = 'fig_a3_two_layers'
TITLE_TWO_LAYERS = (
    'Figure A3 with two generated layers and K = 2: does it hold?'
)
CELL = ('model.name', 'task.max_active', 'task.num_modules')
LEVELS = (0.6, 0.7, 0.8, 0.9)
# Chosen by the runs with eight modules, before the others were trained.
LEVELS_TWO_LAYERS = (0.5, 0.525, 0.55, 0.575)
_OF_CURVE = ['seed', 'step', 'value', 'training.meta_batch_size', 'preset']
# From light to dark; distinct in greyscale, too.
_COLOURS = ('#C9B45B', '#8A8779', '#575D6D', '#00224E')


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of what it shows."""
  return _draw(library, EXPERIMENT, TITLE, LEVELS)


def draw_two_layers(library: data.Library) -> cells.Drawn:
  """Returns the figure of `configs/fig_a3.py:two_layers`, and its table."""
  return _draw(library, TWO_LAYERS, TITLE_TWO_LAYERS, LEVELS_TWO_LAYERS)


def _draw(
    library: data.Library, experiment: str, title: str, levels: Sequence[float]
) -> cells.Drawn:
  grid = cells.select(experiment, library.curves(experiment), CELL)
  table = make_table(grid, levels)
  colours = {
      level: colour
      for level, colour in zip(levels, _COLOURS)
      if table.loc[table['level'] == level, 'tasks'].notna().any()
  }
  never = [f'{level:g}' for level in levels if level not in colours]
  panels = {}
  for max_active in grid.axis('max_active'):
    for model in grid.models:
      if grid.find(name=model, max_active=max_active):
        name = f'{style.MODEL_NAMES[model]}, K = {max_active}'
        panels[name] = [
            _line(table, model, max_active, level, colour)
            for level, colour in colours.items()
        ]
  figure = lines.draw(
      panels,
      title=title,
      x_title='M, modules',
      y_title='training tasks (outer steps × tasks per step)',
      y_type='log',
      empty='no seed reached these levels',
      caption=grid.caption(
          'Means over the seeds that reached it; the table counts the others.',
          *([f'No seed reached {" or ".join(never)}.'] if never else []),
      ),
  )
  summary = (
      table.groupby([*table.columns[:4]], as_index=False).agg(
          tasks_mean=('tasks', 'mean'),
          tasks_se=('tasks', 'sem'),
          num_reached=('tasks', 'count'),
          num_seeds=('seed', 'count'),
          preset=('preset', 'first'),
      )
      if len(table)
      else table
  )
  return figure, summary


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
  columns.append('preset')
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
  return pd.DataFrame(rows, columns=columns)


def tasks_to_reach(
    tasks: np.ndarray, accuracy: np.ndarray, level: float
) -> float:
  """Returns the training tasks until the first evaluation at a level or above.

  Args:
    tasks: until each evaluation.
    accuracy: the accuracy of each.
    level: the level of accuracy; NaN is returned if it is never reached.
  """
  reached = tasks[accuracy >= level]
  return float(reached.min()) if reached.size else math.nan


def _line(
    table: pd.DataFrame,
    model: str,
    max_active: int,
    level: float,
    colour: str,
) -> lines.Line:
  rows = table.loc[
      (table['model'] == model)
      & (table['K'] == max_active)
      & np.isclose(table['level'].astype(float), level)
  ].dropna(subset='tasks')
  return lines.Line(
      name=f'OOD accuracy {level:g}',
      colour=colour,
      seeds=rows.pivot_table(index='M', columns='seed', values='tasks'),
  )
