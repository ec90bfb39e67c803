"""Beyond the paper: OOD accuracy over examples per task and training tasks."""

from collections.abc import Sequence

import pandas as pd

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import heatmaps
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'sample_complexity'
TITLE = 'How many tasks and examples does recomposing take?'
CELL = ('model.name', 'task.num_support')
_MAX_COLUMNS = 6


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of all evaluations."""
  grid = cells.select(EXPERIMENT, library.curves(EXPERIMENT), CELL)
  curves = accuracies(grid.frame)
  shown = _some(sorted(set(curves['tasks'])))
  figure = heatmaps.draw(
      {
          style.MODEL_NAMES[model]: {
              (tasks, cell['task.num_support']): heatmaps.Cell(
                  at(curves, cell, tasks), missing=grid.missing(cell)
              )
              for cell in grid.find(name=model)
              for tasks in shown or [0]
          }
          for model in grid.models
      },
      title=TITLE,
      x_title='training tasks (outer steps × tasks per step)',
      y_title='shots per task',
      z_title='OOD accuracy',
      z_range=(0, 1),
      num_columns=2,
      caption=grid.caption(
          'Not in the paper. One run per number of shots; fewer tasks are'
          ' an earlier point of its curve. Repeated tasks have new'
          ' examples.'
      ),
  )
  groups = curves.groupby([*CELL, 'tasks', 'preset'], observed=True)['value']
  rows = [
      dict(zip(('model', 'shots', 'tasks', 'preset'), point))
      | dict(zip(('ood_mean', 'ood_se', 'num_seeds'), stats.mean(values)))
      for point, values in groups
  ]
  return figure, pd.DataFrame(rows)


def accuracies(curves: pd.DataFrame) -> pd.DataFrame:
  """Returns OOD accuracy at every evaluation, with 'tasks' trained on."""
  ood = pick.rows(curves, {'split': 'ood', 'metric': 'accuracy'})
  if ood.empty:
    return ood.assign(tasks=[])
  tasks = ood['step'] * ood['training.meta_batch_size']
  return ood.assign(tasks=tasks.astype(int)).astype(dict.fromkeys(CELL, object))


def at(curves: pd.DataFrame, cell: cells.Cell, tasks: int) -> pd.Series:
  """Returns a cell's accuracy by seed after some tasks, of `accuracies`."""
  rows = pick.rows(curves, {**cell, 'tasks': tasks})
  return rows.set_index('seed')['value'].astype(float)


def _some(values: Sequence[int]) -> Sequence[int]:
  """Returns at most _MAX_COLUMNS values, evenly spaced, with the last one."""
  every = -(-len(values) // _MAX_COLUMNS)
  return values[::-1][:: every or 1][::-1]
