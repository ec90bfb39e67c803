"""Figures 4B and 4C: the loss on new preferences, by support and model.

The loss is what the models minimise: half the squared error of the predicted
action values, summed over the five actions. Lower is better.
"""

from collections.abc import Sequence

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.paper import model_bars

TITLE_4B = 'Figure 4B: loss on new preferences, connected support or not'
TITLE_4C = 'Figure 4C: loss on new preferences, compositional support or not'
# In the captions of all figures on preferences.
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


def draw_4b(library: data.Library) -> cells.Drawn:
  """Returns Figure 4B and the table of what it shows."""
  return _draw(library, 'fig4b', TITLE_4B, ('connected', 'disconnected'))


def draw_4c(library: data.Library) -> cells.Drawn:
  """Returns Figure 4C and the table of what it shows."""
  return _draw(library, 'fig4c', TITLE_4C, ('random', 'non_compositional'))


def _draw(
    library: data.Library, experiment: str, title: str, supports: Sequence[str]
) -> cells.Drawn:
  found = cells.read(library, experiment, model_bars.CELL)
  figure = model_bars.draw_bars(
      found,
      'loss',
      supports=supports,
      title=title,
      y_title='OOD loss (lower is better)',
      caption=found.caption(LOSS_NOTE),
  )
  return figure, cells.make_table(found, _MEASURES)
