"""Figure 2C: do students identify the teacher's modules?

Module alignment on new combinations for the families of Table A9: connected
ones are blue, disconnected ones orange. One panel per latent type and solver.
"""

from collections.abc import Iterator
import itertools

import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.paper import theory_cells
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.tasks.supports import families

EXPERIMENT = 'fig2c'
CELL: tuple[str, ...] = (
    theory_cells.SOLVER,
    theory_cells.LATENTS,
    theory_cells.SUPPORT,
)
# Short enough for the titles of four panels.
_SOLVERS = {'levenberg_marquardt': 'converged', 'adamw': 'Adam'}


def _shown(grid: cells.Cells) -> Iterator[tuple[str, cells.Cell]]:
  """Yields a panel's title and a cell."""
  for solver, latent_type in itertools.product(
      theory_cells.solvers(grid.frame), ('discrete', 'continuous')
  ):
    for kind, support in families.TABLE_A9.values():
      if kind == latent_type:
        values = solver, latent_type, support
        yield f'{latent_type}, {_SOLVERS[solver]}', dict(zip(CELL, values))


def _panels(grid: cells.Cells) -> dict[str, list[bars.Bar]]:
  panels: dict[str, list[bars.Bar]] = {}
  for panel, cell in _shown(grid):
    support = cell[theory_cells.SUPPORT]
    label, colour = theory_cells.FAMILY_NAMES[support], theory_cells.colour(
        support
    )
    bar = grid.bar(cell, label, colour, 'alignment')
    panels.setdefault(panel, []).append(bar)
  return panels


def _table(grid: cells.Cells) -> pd.DataFrame:
  return theory_cells.make_table(grid.frame, [c for _, c in _shown(grid)])


FIGURES = {
    name: described.bar_grid(
        title=title,
        experiment=name,
        cell=CELL,
        panels=_panels,
        measures=_table,
        notes=(
            (
                'Blue: connected families; orange: disconnected. Fitted and'
                ' evaluated on combinations that training did not show.'
            ),
            'Latents are inferred to convergence, or by Adam as published.',
        ),
        y_title='joint module alignment (at most 1)',
        y_range=(0, 1.02),
        tick_angle=-90,
    )
    for name, title in (
        (
            EXPERIMENT,
            'Figure 2C: does connected support make students find the modules?',
        ),
        (
            'fig2c_shared_inputs',
            'Figure 2C if the tasks of a step share inputs: does it hold?',
        ),
    )
}
draw = FIGURES[EXPERIMENT].draw
