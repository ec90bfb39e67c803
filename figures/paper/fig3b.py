"""Figure 3B: which models solve module combinations never seen in training?

OOD accuracy of the four models on the hyperteacher, for compositional and
non-compositional support; and over training tasks, with the published values at
the right edge. These are of Table A6 (M = 8, K = 2), which has none for
non-compositional support. At 'desktop', the published problem, R2 of decoding
stands beside it.
"""

from collections.abc import Callable, Iterator, Mapping
import math
from typing import Any

import numpy as np
import pandas as pd

from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.paper import model_bars
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.figures.plotting import tables

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


def by_tasks(grid: cells.Cells, cell: cells.Cell, metric: str) -> pd.DataFrame:
  """Returns an OOD metric: index training tasks, a column per seed."""
  curve = grid.over_training(cell, metric=metric)
  curve = curve[curve.index > 0]
  if len(curve):
    curve.index *= int(pick.runs(grid.frame, cell)[_BATCH].iloc[0])
  return curve


def _at_end(grid: cells.Cells, cell: cells.Cell) -> Iterator[lines.Line]:
  """Yields the published accuracy, if there is one, at the right edge."""
  if accuracy := published(grid, cell):
    paper, *_ = reference.described_fields('fig3e', 'paper')
    at_end = pd.DataFrame({0: accuracy[0]}, [paper[_STEP] * paper[_BATCH]])
    yield described.model_line(cell['model.name'], at_end, 'dot', 'published')


def _over_tasks(
    grid: cells.Cells, panel: list[cells.Cell]
) -> Iterator[lines.Line]:
  """Yields a line per model and width, and the published value."""
  for cell in panel:
    model = cell['model.name']
    widths = {c['model.hidden_dim'] for c in panel if c['model.name'] == model}
    is_wider = len(widths) > 1 and cell['model.hidden_dim'] == max(widths)
    how = ('dash', 'wider') if is_wider else ('solid', '')
    curve = by_tasks(grid, cell, 'accuracy')
    yield described.model_line(model, curve, *how)
    yield from _at_end(grid, cell)


def make_curves(grid: cells.Cells, *metrics: str) -> pd.DataFrame:
  """Returns OOD metrics at every evaluation."""
  of = grid.frame['metric'].isin(metrics) & (grid.frame['split'] == 'ood')
  rows = grid.frame[of]
  rows = rows.assign(tasks=rows['step'] * rows.get(_BATCH, 0))
  point = ['metric', *grid.cells[0], 'tasks', 'preset']
  return cells.summarise(rows, point, 'ood').rename(columns=style.column_name)


def over_tasks(
    grid: cells.Cells, field: str, look: Callable[[Any], tuple[str, str]]
) -> dict[str, list[lines.Line]]:
  """Returns a panel per OOD metric: a line per model and value of a field.

  `look` returns the dash pattern and the name of a value.
  """
  return {
      name: [
          described.model_line(
              cell['model.name'],
              by_tasks(grid, cell, metric),
              *look(cell[field]),
          )
          for cell in grid.cells
      ]
      for name, metric in CURVES.items()
  }


_LOOKS = dict(zip(SUPPORTS, (('solid', ''), ('dash', 'a module held out'))))


def _at_desktop(grid: cells.Cells) -> Mapping[str, Any]:
  panels = over_tasks(grid, model_bars.SUPPORT, _LOOKS.__getitem__)
  for cell in grid.cells:
    panels['OOD accuracy'].extend(_at_end(grid, cell))
  return panels


_TASKS = [x * 10**n for n in range(2, 8) for x in (1, 2, 5)]
# Panel -> metric, at 'desktop'.
CURVES = {'OOD accuracy': 'accuracy', 'R² of decoding': 'r2'}
OF_CURVES: Mapping[str, Any] = {
    'cell': model_bars.CELL,
    'x_title': 'training tasks (outer steps × tasks per step)',
    'x_type': 'log',
    'same_x': True,
    'num_columns': 2,
    'adjust': lambda figure, grid: figure.update_xaxes(
        tickvals=_TASKS, tickformat='~s'
    ),
}
_PUBLISHED = 'Published: Table A6, M = 8, K = 2, 12.8 million tasks.'
FIGURES_TASKS = {
    'fig3b_desktop': described.line_grid(
        title="Figure 3B on the paper's own problem: who recomposes, and when?",
        panels=_at_desktop,
        experiment=EXPERIMENT,
        measures=lambda grid: make_curves(grid, *CURVES.values()),
        notes=(
            (
                f'{_PUBLISHED} R²: how well a linear map reads modules off'
                ' adapted parameters of new combinations. ANIL stops when it'
                ' gains less than 0.005 by twice the steps, MAML after an hour.'
            ),
        ),
        y_title='OOD accuracy, R²',
        y_range=(0.4, 1),
        read=data.Library.curves,
        preset=presets.DESKTOP,
        **OF_CURVES,
    ),
    'fig3b_tasks': described.line_grid(
        title=(
            'Figure 3B over training: how many tasks until a model recomposes?'
        ),
        panels=described.split(
            '{task_support}', lambda grid, panel: list(_over_tasks(grid, panel))
        ),
        experiment=EXPERIMENT,
        measures=lambda grid: make_curves(grid, 'accuracy'),
        notes=(
            (
                f'{_PUBLISHED} Wider models have as many parameters as the'
                ' linear hypernetwork.'
            ),
        ),
        y_title='OOD accuracy (fraction of query samples)',
        y_range=(0, 1),
        read=data.Library.curves,
        **OF_CURVES,
    ),
}


def desktop_table(library: data.Library) -> pd.DataFrame:
  """Returns a row per model on compositional support at 'desktop', as texts."""
  frame = library.values(EXPERIMENT, presets.DESKTOP)
  grid = cells.select(EXPERIMENT, frame, CELL)
  measures = {
      'new combinations': ('ood', 'accuracy'),
      'seen ones': ('test', 'accuracy'),
      'R²': ('ood', 'r2'),
  }
  rows = []
  for cell in grid.find(task_support='random'):
    of_paper = published(grid, cell)
    row = {'model': style.MODEL_NAMES[cell['model.name']], 'seeds': 'none yet'}
    runs = pick.runs(grid.frame, cell)
    if len(runs):
      row['seeds'] = str(runs['seed'].nunique())
      row['training tasks'] = f'{int((runs[_STEP] * runs[_BATCH]).max()):,}'
    for name, measured in measures.items():
      value, error, _ = stats.mean(grid.values(cell, *measured))
      row[name] = tables.with_error(value, error)
    # The paper's accuracy on new combinations.
    row['published: new ones'] = f'{of_paper[0]:.3f}' if of_paper else ''
    rows.append(row)
  return pd.DataFrame(rows).fillna('')
