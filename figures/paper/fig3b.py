"""Figure 3B: which models solve module combinations never seen in training?

OOD accuracy of the four models on the hyperteacher, for compositional and
non-compositional support. The published values are those of Table A6 (M = 8,
K = 2), which has none for non-compositional support.
"""

import math

import pandas as pd

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.paper import model_bars
from modular_hyperteacher.figures.plotting import bars

EXPERIMENT = 'fig3b'
TITLE = 'Figure 3B: accuracy on module combinations never seen in training'
TITLE_PAIRS = 'Figure 3B with pairs of modules: does it hold for K = 2?'
SUPPORTS = ('random', 'non_compositional')
CELL = model_bars.CELL


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of what it shows."""
  return _draw(library, EXPERIMENT, TITLE)


def draw_pairs(library: data.Library) -> cells.Drawn:
  """Returns the figure of `configs/fig3b.py:pairs`, and its table."""
  return _draw(library, 'fig3b_pairs', TITLE_PAIRS)


def _draw(library: data.Library, experiment: str, title: str) -> cells.Drawn:
  found = cells.read(library, experiment, CELL)
  figure = bars.draw(
      model_bars.panels(found, SUPPORTS, _bar),
      title=title,
      y_title='OOD accuracy (fraction of query samples)',
      y_range=(0, 1),
      caption=found.caption(
          'Published: M = 8, K = 2; the paper tabulates no value for'
          ' non-compositional support.'
      ),
      beside_name='published (Table A6), whisker: dispersion as printed',
  )
  return figure, make_table(found)


def make_table(found: cells.Cells) -> pd.DataFrame:
  """Returns a row per model, width and support, missing runs included.

  Accuracies are fractions of query samples at the last step, 'ood_best' at
  the lowest validation loss; `_mean` and `_se` are over seeds. The difference
  from the published value is given at the published scale only.
  """
  measures = {split: (split, 'accuracy') for split in ('test', 'ood')}
  for name in sorted(set(found.frame['split'])):
    if name.startswith('ood_k'):
      measures[name] = (name, 'accuracy')
  table = cells.make_table(found, measures)
  published = [
      _published(found, cell) or (math.nan, math.nan) for cell in found.cells
  ]
  table[['published_ood', 'published_std']] = published
  at_scale = [
      len(runs) > 0 and bool(runs['published_scale'].all())
      for runs in (data.rows(found.frame, cell) for cell in found.cells)
  ]
  difference = (table['ood_mean'] - table['published_ood']).where(
      pd.Series(at_scale)
  )
  table['difference_in_published_std'] = difference / table['published_std']
  return table


def _published(
    found: cells.Cells, cell: cells.Cell
) -> tuple[float, float] | None:
  """Returns the published number; those of equal size have none."""
  same = [c for c in found.cells if c['model.name'] == cell['model.name']]
  if cell['model.hidden_dim'] != min(
      (c['model.hidden_dim'] for c in same), key=lambda width: width or 0
  ):
    return None
  cell = {name: cell[name] for name in ('model.name', model_bars.SUPPORT)}
  return reference.published_accuracy(EXPERIMENT, cell, 'ood')


def _bar(found: cells.Cells, cell: cells.Cell) -> bars.Bar:
  return model_bars.bar(
      found,
      cell,
      seeds=found.values(cell),
      missing=found.missing(cell),
      beside=_published(found, cell),
  )
