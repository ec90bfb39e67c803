"""What the study shows, and what it claims."""

from collections.abc import Iterator

import pandas as pd

from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import style

_TITLE = 'Wider readouts recompose sines better'
_WIDTH = 'model.width'


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure, and the table of what it shows."""
  trained = cells.read(library, 'sine_readouts', (_WIDTH,))
  panels = {
      title: [
          trained.bar(
              cell, f'{cell[_WIDTH]} units', style.INK, 'loss', split=split
          )
          for cell in trained.cells
      ]
      for split, title in (('test', 'seen pairs'), ('ood', 'new pairs'))
  }
  figure = bars.draw(panels, y_title='loss', caption=trained.caption())
  return figure, cells.make_table(trained, {'ood': ('ood', 'loss')})


def _wider_is_better(frame: pd.DataFrame) -> Iterator[comparisons.Comparison]:
  loss = comparisons.at(frame, (_WIDTH,), metric='loss')
  yield loss(4) > loss(32)


FIGURES = {'sine_readouts': registry.Figure(_TITLE, ('sine_readouts',), draw)}
CLAIMS = (
    verdicts.ours(
        'SINES-1',
        'a readout of 32 units has a lower loss on new pairs than one of 4.',
        'sine_readouts',
        _wider_is_better,
        cell=(_WIDTH,),
    ),
)
