"""Figures 4B and 4C: the loss on new preferences, by support and model.

The loss is what the models minimise: half the squared error of the predicted
action values, summed over the five actions. Lower is better.
"""

import pandas as pd
import plotly.graph_objects as go

from figures import cells
from figures import data
from figures import gridworlds
from figures import style

TITLE_4B = 'Figure 4B: loss on new preferences, connected support or not'
TITLE_4C = 'Figure 4C: loss on new preferences, compositional support or not'
# In the captions of all figures of this world.
LOSS_NOTE = (
    'Loss: half the squared error of the action values, summed over the five'
    ' actions: 2.5 × the mean squared error. Lower is better.'
)
_MEASURES = {
    'test_loss': ('test', 'loss'),
    'ood_loss': ('ood', 'loss'),
    'r2': ('ood', 'r2'),
    'relative_return': ('ood', 'relative_return'),
}


def draw_4b(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns Figure 4B and the table of what it shows."""
  found = cells.read(library, 'fig4b', gridworlds.CELL)
  supports = ('connected', 'disconnected')
  return _draw(found, TITLE_4B, supports, style.HYPERNETWORKS)


def draw_4c(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns Figure 4C and the table of what it shows."""
  found = cells.read(library, 'fig4c', gridworlds.CELL)
  supports = ('random', 'non_compositional')
  return _draw(found, TITLE_4C, supports, style.MODELS)


def _draw(found, title, supports, models):
  figure = gridworlds.draw_bars(
      found,
      'loss',
      supports=supports,
      models=models,
      title=title,
      y_title='OOD loss (lower is better)',
      caption=found.caption + [LOSS_NOTE],
  )
  return figure, cells.make_table(found, _MEASURES)
