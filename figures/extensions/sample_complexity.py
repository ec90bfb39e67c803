"""Beyond the paper: OOD accuracy over examples per task and training tasks."""

import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import heatmaps
from modular_hyperteacher.figures.plotting import stats

CELL = ('model.name', 'task.num_support')
_MAX_COLUMNS = 6


def _panel(grid: cells.Cells, panel: list[cells.Cell]) -> heatmaps.Grid:
  """Returns accuracies after some numbers of tasks: evenly spaced, the last."""
  curves = accuracies(grid.frame)
  every = sorted(set(curves['tasks']), reverse=True)
  shown = every[:: -(-len(every) // _MAX_COLUMNS) or 1]
  return {
      (tasks, cell['task.num_support']): heatmaps.Cell(
          at(curves, cell, tasks), missing=grid.missing(cell)
      )
      for cell in panel
      for tasks in shown[::-1] or [0]
  }


def _table(grid: cells.Cells) -> pd.DataFrame:
  point = [*CELL, 'tasks', 'preset']
  groups = accuracies(grid.frame).groupby(point, observed=True)['value']
  return pd.DataFrame([
      dict(zip(('model', 'shots', *point[2:]), values))
      | dict(zip(('ood_mean', 'ood_se', 'num_seeds'), stats.mean(accuracy)))
      for values, accuracy in groups
  ])


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


FIGURE = described.heat_grid(
    title='How many tasks and examples does recomposing take?',
    experiment='sample_complexity',
    cell=CELL,
    panels=described.split('{name}', _panel),
    measures=_table,
    notes=(
        (
            'Not in the paper. One run per number of shots; fewer tasks are an'
            ' earlier point of its curve. Repeated tasks have new examples.'
        ),
    ),
    x_title='training tasks (outer steps × tasks per step)',
    y_title='shots per task',
    z_title='OOD accuracy',
    z_range=(0, 1),
    num_columns=2,
    read=data.Library.curves,
)
