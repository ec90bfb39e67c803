"""Figure 3B over training: how many tasks until a model recomposes?

OOD accuracy over training tasks, with the published values at the right edge:
how far off is a shorter training, and which models still learn?
"""

from collections.abc import Iterator, Mapping

import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.paper import fig3b
from modular_hyperteacher.figures.paper import fig3e
from modular_hyperteacher.figures.paper import model_bars
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import style

_STEP, _BATCH = 'training.num_outer_steps', 'training.meta_batch_size'
_WIDER = 'wider'
_TASKS = 'tasks'


def _panels(grid: cells.Cells) -> Mapping[str, list[lines.Line]]:
  """Returns a panel per support, with a line per model and width."""
  return {
      style.SUPPORT_NAMES[support]: [
          line
          for cell in grid.find(task_support=support)
          for line in _lines(grid, cell)
      ]
      for support in fig3b.SUPPORTS
  }


def _lines(grid: cells.Cells, cell: cells.Cell) -> Iterator[lines.Line]:
  model = cell['model.name']
  widths = [c['model.hidden_dim'] for c in grid.find(name=model)]
  is_wider = len(set(widths)) > 1 and cell['model.hidden_dim'] == max(widths)
  over_steps = grid.over_training(cell)
  batch = pick.runs(grid.frame, cell).get(_BATCH, pd.Series(dtype=float))
  over_tasks = over_steps[over_steps.index > 0]
  if len(over_tasks):
    over_tasks.index *= int(batch.iloc[0])
  yield described.model_line(
      model,
      over_tasks,
      'dash' if is_wider else 'solid',
      _WIDER if is_wider else '',
  )
  accuracy = fig3b.published(grid, cell)
  if accuracy:
    paper, *_ = reference.described_fields(fig3e.EXPERIMENT, 'paper')
    at_end = pd.DataFrame({0: [accuracy[0]]}, [paper[_STEP] * paper[_BATCH]])
    yield described.model_line(model, at_end, 'dot', 'published')


def _table(grid: cells.Cells) -> pd.DataFrame:
  """Returns OOD accuracy at every evaluation."""
  rows = pick.rows(grid.frame, {'split': 'ood', 'metric': 'accuracy'})
  rows = rows.assign(**{_TASKS: rows['step'] * rows.get(_BATCH, 0)})
  point = [*model_bars.CELL, _TASKS, 'preset']
  table = rows.groupby(point, dropna=False, observed=True)['value']
  table = table.agg(ood_mean='mean', ood_se='sem', num_seeds='count')
  return table.reset_index().rename(columns=style.column_name)


FIGURE = described.line_grid(
    title='Figure 3B over training: how many tasks until a model recomposes?',
    experiment=fig3b.EXPERIMENT,
    cell=model_bars.CELL,
    panels=_panels,
    measures=_table,
    notes=(
        (
            'Published: Table A6, M = 8, K = 2, 12.8 million tasks. Wider'
            ' models have as many parameters as the linear hypernetwork.'
        ),
    ),
    x_title='training tasks (outer steps × tasks per step)',
    y_title='OOD accuracy (fraction of query samples)',
    x_type='log',
    same_x=True,
    y_range=(0, 1),
    num_columns=2,
    read=data.Library.curves,
)
