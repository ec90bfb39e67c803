"""Figure 3B: which models solve module combinations never seen in training?

OOD accuracy of the four models on the hyperteacher, for compositional and
non-compositional support; and over training tasks, with the published values at
the right edge. These are of Table A6 (M = 8, K = 2), which has none for
non-compositional support.
"""

from collections.abc import Iterator
import math

import numpy as np
import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.paper import model_bars
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'fig3b'
SUPPORTS = model_bars.COMPOSITIONAL
CELL = model_bars.CELL


def make_table(grid: cells.Cells) -> pd.DataFrame:
  """Returns a row per model, width and support, missing runs included.

  Accuracies are fractions of query samples at the last step, 'ood_best' at
  the lowest validation loss; `_mean` and `_se` are over seeds. The difference
  from the published value is given at the published scale only.
  """
  of_k = (s for s in sorted(set(grid.frame['split'])) if s.startswith('ood_k'))
  splits = ('test', 'ood', *of_k)
  table = cells.make_table(grid, {s: (s, 'accuracy') for s in splits})
  table[['published_ood', 'published_std']] = [
      published(grid, cell) or (math.nan, math.nan) for cell in grid.cells
  ]
  scales = [pick.runs(grid.frame, c)['published_scale'] for c in grid.cells]
  at_scale = np.array([len(runs) > 0 and all(runs) for runs in scales])
  apart = (table['ood_mean'] - table['published_ood']) / table['published_std']
  table['difference_in_published_std'] = apart.where(at_scale)
  return table


def published(
    grid: cells.Cells, cell: cells.Cell
) -> tuple[float, float] | None:
  """Returns the published number; those of equal size have none."""
  same = grid.find(name=cell['model.name'])
  widths = (c['model.hidden_dim'] for c in same)  # None: an unknown one.
  if cell['model.hidden_dim'] != min(widths, key=lambda width: width or 0):
    return None
  cell = {name: cell[name] for name in ('model.name', model_bars.SUPPORT)}
  return reference.published_accuracy(EXPERIMENT, cell, 'ood')


FIGURES = {
    name: model_bars.describe(
        title,
        name,
        'accuracy',
        SUPPORTS,
        published,
        measures=make_table,
        notes=(
            (
                'Published: M = 8, K = 2; the paper tabulates no value for'
                ' non-compositional support.'
            ),
        ),
        y_title='OOD accuracy (fraction of query samples)',
        y_range=(0, 1),
        beside_name='published (Table A6), whisker: dispersion as printed',
    )
    for name, title in {
        EXPERIMENT: (
            'Figure 3B: which models solve new combinations of modules?'
        ),
        'fig3b_pairs': (
            'Figure 3B with pairs of modules: does it hold for K = 2?'
        ),
    }.items()
}
draw = FIGURES[EXPERIMENT].draw


_STEP, _BATCH = 'training.num_outer_steps', 'training.meta_batch_size'


def _fill(grid: cells.Cells, panel: list[cells.Cell]) -> Iterator[lines.Line]:
  """Yields a line per model and width, and the published value."""
  for cell in panel:
    model = cell['model.name']
    widths = {c['model.hidden_dim'] for c in panel if c['model.name'] == model}
    is_wider = len(widths) > 1 and cell['model.hidden_dim'] == max(widths)
    curve = grid.over_training(cell)
    curve = curve[curve.index > 0]
    if len(curve):
      curve.index *= int(pick.runs(grid.frame, cell)[_BATCH].iloc[0])
    how = ('dash', 'wider') if is_wider else ('solid', '')
    yield described.model_line(model, curve, *how)
    if accuracy := published(grid, cell):
      paper, *_ = reference.described_fields('fig3e', 'paper')
      at_end = pd.DataFrame({0: accuracy[0]}, [paper[_STEP] * paper[_BATCH]])
      yield described.model_line(model, at_end, 'dot', 'published')


def _table(grid: cells.Cells) -> pd.DataFrame:
  """Returns OOD accuracy at every evaluation."""
  rows = pick.rows(grid.frame, {'split': 'ood', 'metric': 'accuracy'})
  rows = rows.assign(tasks=rows['step'] * rows.get(_BATCH, 0))
  point = [*model_bars.CELL, 'tasks', 'preset']
  return cells.summarise(rows, point, 'ood').rename(columns=style.column_name)


FIGURE_TASKS = described.line_grid(
    title='Figure 3B over training: how many tasks until a model recomposes?',
    experiment=EXPERIMENT,
    cell=model_bars.CELL,
    panels=described.split(
        '{task_support}', lambda grid, panel: list(_fill(grid, panel))
    ),
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
