"""The hyperteacher: steps to a loss over the number of modules."""

import numpy as np
import pandas as pd

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.studies.learning_dynamics import measures
from modular_hyperteacher.studies.learning_dynamics import theory

TITLE = (
    'Hyperteacher: do more modules take as many steps as an eigenvalue'
    ' predicts?'
)


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of what it shows."""
  curves = library.curves(measures.MODULES)
  grid = cells.select(measures.MODULES, curves, measures.CELL_MODULES)
  sizes = grid.axis('num_modules')
  steps = {
      m: measures.steps_to(
          grid.frame,
          {'task.num_modules': m},
          'test',
          'loss',
          measures.LEVEL_MODULES,
      )
      for m in sizes
  }
  predicted = {m: 1 / theory.smallest_eigenvalue(m, 3) for m in sizes}
  trained = lines.by_x(steps)
  name = style.MODEL_NAMES['linear_hypernetwork']
  shown = [lines.Line(name, style.COLOURS['linear_hypernetwork'], trained)]
  if len(trained):
    ratio = pd.Series(predicted)[trained.index] / trained.mean(axis=1)
    scale = np.exp(np.log(ratio).mean())
    line = pd.DataFrame({'predicted': pd.Series(predicted) / scale})
    shown.append(
        lines.Line('1 / smallest eigenvalue, scaled', style.INK, line, 'dot')
    )
  figure = lines.draw(
      {'': shown},
      x_title='M, modules',
      y_title=f'outer steps to a loss of {measures.LEVEL_MODULES:g} nats',
      x_type='log',
      y_type='log',
      caption=grid.caption(
          'Loss on seen combinations of up to three modules.',
          'The eigenvalue is that of latents at unit norm, as targets are'
          ' standardised in every task.',
      ),
  )
  figure.update_xaxes(tickvals=sizes, ticktext=list(map(str, sizes)))
  table = pd.DataFrame([
      {
          'num_modules': m,
          'smallest_eigenvalue': 1 / predicted[m],
          **stats.mean(steps[m]).columns('steps'),
          'num_seeds': len(steps[m]),
          'preset': ', '.join(
              pick.runs(grid.frame, {'task.num_modules': m})['preset'].unique()
          ),
      }
      for m in sizes
  ])
  return figure, table
