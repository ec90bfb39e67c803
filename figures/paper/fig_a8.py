"""Figures A8 and A10: the students' width and modules, on the grid worlds.

Of several outer learning rates, the one with the lowest validation loss is
shown; the choice does not use OOD tasks.
"""

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from figures.library import cells
from figures.library import data
from figures.paper import fig3f
from figures.paper import fig4b
from figures.plotting import heatmaps

TITLE_A8 = "Figure A8: loss on new preferences over the student's size"
TITLE_A10 = "Figure A10: accuracy on new goals over the student's size"
SIZE = ('model.hidden_dim', 'model.num_modules')
CELL = ('model.name', *SIZE, 'model.outer.learning_rate')


def draw_a8(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns Figure A8 and the table of what it shows."""
  found = cells.read(library, 'fig_a8', CELL)
  figure = _draw(
      found,
      'loss',
      title=TITLE_A8,
      z_title='OOD loss (lower is better)',
      caption=[fig4b.LOSS_NOTE],
      higher_is_better=False,
  )
  measures = {name: (name, 'loss') for name in ('test', 'ood', 'valid')}
  return figure, cells.make_table(found, measures)


def draw_a10(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns Figure A10 and the table of what it shows."""
  found = cells.read(library, 'fig_a10', CELL)
  figure = _draw(
      found,
      'accuracy',
      title=TITLE_A10,
      z_title='OOD accuracy',
      caption=[],
  )
  measures = {name: (name, 'accuracy') for name in ('test', 'ood')}
  measures['valid_loss'] = ('valid', 'loss')
  return figure, cells.make_table(found, measures)


def _draw(
    found: cells.Cells, metric: str, *, caption: list[str], **options: Any
) -> go.Figure:
  several = len(found.axis('learning_rate')) > 1
  rates = ['Of several learning rates, that of the lowest validation loss.']
  return heatmaps.draw(
      fig3f.make_panels(found, metric, SIZE),
      x_title="student's width",
      y_title="student's modules",
      caption=found.caption() + caption + rates * several,
      **options,
  )
