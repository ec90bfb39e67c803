"""Figure 3B: which models solve module combinations never seen in training?

OOD accuracy of the four models on the hyperteacher, for compositional and
non-compositional support. The published values are those of Table A6 (M = 8,
K = 2), which has none for non-compositional support.
"""

import math

import pandas as pd

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.paper import model_bars
from modular_hyperteacher.figures.plotting import bars

EXPERIMENT = 'fig3b'
SUPPORTS = model_bars.COMPOSITIONAL
CELL = model_bars.CELL


def make_table(grid: cells.Cells) -> pd.DataFrame:
  """Returns a row per model, width and support, missing runs included.

  Accuracies are fractions of query samples at the last step, 'ood_best' at
  the lowest validation loss; `_mean` and `_se` are over seeds. The difference
  from the published value is given at the published scale only.
  """
  measures = {split: (split, 'accuracy') for split in ('test', 'ood')}
  for name in sorted(set(grid.frame['split'])):
    if name.startswith('ood_k'):
      measures[name] = (name, 'accuracy')
  table = cells.make_table(grid, measures)
  values = [
      published(grid, cell) or (math.nan, math.nan) for cell in grid.cells
  ]
  table[['published_ood', 'published_std']] = values
  at_scale = [
      len(runs) > 0 and bool(runs['published_scale'].all())
      for runs in (pick.rows(grid.frame, cell) for cell in grid.cells)
  ]
  difference = (table['ood_mean'] - table['published_ood']).where(
      pd.Series(at_scale)
  )
  table['difference_in_published_std'] = difference / table['published_std']
  return table


def published(
    grid: cells.Cells, cell: cells.Cell
) -> tuple[float, float] | None:
  """Returns the published number; those of equal size have none."""
  same = [c for c in grid.cells if c['model.name'] == cell['model.name']]
  if cell['model.hidden_dim'] != min(
      (c['model.hidden_dim'] for c in same), key=lambda width: width or 0
  ):
    return None
  cell = {name: cell[name] for name in ('model.name', model_bars.SUPPORT)}
  return reference.published_accuracy(EXPERIMENT, cell, 'ood')


def _bar(grid: cells.Cells, cell: cells.Cell) -> bars.Bar:
  return model_bars.bar(
      grid,
      cell,
      seeds=grid.values(cell),
      missing=grid.missing(cell),
      beside=published(grid, cell),
  )


FIGURES = {
    name: model_bars.describe(
        SUPPORTS,
        _bar,
        title=title,
        experiment=name,
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
