"""Figures A8 and A10: the students' width and modules, on the grid worlds.

Learning rates are chosen as for Figure 3F.
"""

from collections.abc import Mapping
from typing import Any

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.paper import fig3f
from modular_hyperteacher.figures.paper import fig4b
from modular_hyperteacher.figures.plotting import heatmaps

TITLE_A8 = "Figure A8: loss on new preferences over the student's size"
TITLE_A10 = "Figure A10: accuracy on new goals over the student's size"
SIZE = ('model.hidden_dim', 'model.num_modules')
CELL = ('model.name', *SIZE, 'model.outer.learning_rate')


def draw_a8(library: data.Library) -> cells.Drawn:
  """Returns Figure A8 and the table of what it shows."""
  return _draw(
      library,
      'fig_a8',
      'loss',
      fig4b.LOSS_NOTE,
      measures={name: (name, 'loss') for name in ('test', 'ood', 'valid')},
      title=TITLE_A8,
      z_title='OOD loss (lower is better)',
      higher_is_better=False,
  )


def draw_a10(library: data.Library) -> cells.Drawn:
  """Returns Figure A10 and the table of what it shows."""
  measures = {name: (name, 'accuracy') for name in ('test', 'ood')}
  return _draw(
      library,
      'fig_a10',
      'accuracy',
      measures=measures | {'valid_loss': ('valid', 'loss')},
      title=TITLE_A10,
      z_title='OOD accuracy',
  )


def _draw(
    library: data.Library,
    experiment: str,
    metric: str,
    *notes: str,
    measures: Mapping[str, tuple[str, str]],
    **options: Any,
) -> cells.Drawn:
  found = cells.read(library, experiment, CELL)
  figure = heatmaps.draw(
      fig3f.make_panels(found, metric, SIZE),
      x_title="student's width",
      y_title="student's modules",
      caption=found.caption(*notes, *fig3f.notes(found)),
      **options,
  )
  return figure, cells.make_table(found, measures)
