"""Figure 2C: do students identify the teacher's modules?

Module alignment on new combinations for the families of Table A9: connected
ones are blue, disconnected ones orange. One panel per latent type and solver.
"""

import pandas as pd

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import theory_cells
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.tasks.supports import families

EXPERIMENT = 'fig2c'
SHARED_INPUTS = 'fig2c_shared_inputs'
TITLE = 'Figure 2C: does connected support make students find the modules?'
TITLE_SHARED_INPUTS = (
    'Figure 2C if the tasks of a step share inputs: does it hold?'
)
CELL: tuple[str, ...] = (
    theory_cells.SOLVER,
    theory_cells.LATENTS,
    theory_cells.SUPPORT,
)
# Short enough for the titles of four panels.
_SOLVERS = {'levenberg_marquardt': 'converged', 'adamw': 'Adam'}


def draw(
    library: data.Library, experiment: str = EXPERIMENT, title: str = TITLE
) -> cells.Drawn:
  """Returns the figure of an experiment, and the table of what it shows."""
  grid = cells.read(library, experiment, CELL)
  frame = grid.frame
  panels, shown = {}, []
  for solver in theory_cells.solvers(frame):
    for latent_type in ('discrete', 'continuous'):
      panel_cells = [
          dict(zip(CELL, (solver, latent_type, support)))
          for kind, support in families.TABLE_A9.values()
          if kind == latent_type
      ]
      panel = f'{latent_type}, {_SOLVERS.get(solver, solver)}'
      panels[panel] = [_bar(frame, cell) for cell in panel_cells]
      shown += panel_cells
  figure = bars.draw(
      panels,
      title=title,
      y_title='joint module alignment (at most 1)',
      y_range=(0, 1.02),
      caption=grid.caption(
          'Blue: connected families; orange: disconnected. Fitted and'
          ' evaluated on combinations that training did not show.',
          'Latents are inferred to convergence, or by Adam as published.',
      ),
  )
  figure.update_xaxes(tickangle=-90, tickfont={'size': 11})
  return figure, theory_cells.make_table(frame, shown)


def _bar(frame: pd.DataFrame, cell: dict[str, str]) -> bars.Bar:
  support = cell[theory_cells.SUPPORT]
  return bars.Bar(
      label=theory_cells.FAMILY_NAMES[support],
      colour=theory_cells.colour(support),
      seeds=pick.values(frame, cell, 'ood', metric='alignment'),
      missing='no finished run',
  )
