"""Figure 2D: alignment of students that are larger than their teacher.

Lines grow hidden units, modules or both; a size that does not grow is twice the
teacher's. There is a panel per latent type and solver. Figure A2 shows the OOD
loss of the same runs, the grid all sizes.
"""

from collections.abc import Callable
import itertools
from typing import Any

import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.paper import theory_cells
from modular_hyperteacher.figures.plotting import heatmaps
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import style

CELL: tuple[str, ...] = (
    theory_cells.SOLVER,
    theory_cells.LATENTS,
    theory_cells.HIDDEN,
    theory_cells.MODULES,
)
_BASE = 2  # A size that does not grow, as a multiple of the teacher's.
_GROWTH = {  # Name -> colour, and factor -> (hidden units, modules).
    'hidden units': ('#E69F00', lambda factor: (factor, _BASE)),
    'modules': ('#56B4E9', lambda factor: (_BASE, factor)),
    'both': (style.INK, lambda factor: (factor, factor)),
}


def _panels(
    fill: Callable[[cells.Cells, str, str], Any],
) -> Callable[[cells.Cells], dict[str, Any]]:
  """Returns runs -> panels; `fill` takes runs, a solver and a latent type."""
  return lambda grid: {
      f'{kind},<br>{theory_cells.SOLVER_NAMES[solver]}': fill(
          grid, solver, kind
      )
      for solver, kind in itertools.product(
          theory_cells.solvers(grid.frame), ('discrete', 'continuous')
      )
  }


def _factors(grid: cells.Cells) -> list[int]:
  return sorted(set(grid.frame[theory_cells.MODULES]))


def _lines(metric: str) -> Callable[[cells.Cells, str, str], list[lines.Line]]:
  def fill(grid: cells.Cells, solver: str, kind: str) -> list[lines.Line]:
    width = theory_cells.teacher_width(grid.frame)
    drawn = []
    for growth, (colour, size_at) in _GROWTH.items():
      seeds = {}
      for factor in _factors(grid):
        hidden, modules = size_at(factor)
        cell = dict(zip(CELL, (solver, kind, hidden * width, modules)))
        seeds[factor] = grid.values(cell, metric=metric)
      drawn.append(lines.Line(growth, colour, lines.by_x(seeds)))
    return drawn

  return fill


def _heat(grid: cells.Cells, solver: str, kind: str) -> heatmaps.Grid:
  width = theory_cells.teacher_width(grid.frame)
  return {
      (
          cell[theory_cells.MODULES],
          cell[theory_cells.HIDDEN] / width,
      ): heatmaps.Cell(grid.values(cell, metric='alignment'), 'no run')
      for cell in grid.find(solver=solver, latent_type=kind)
  }


def _table(grid: cells.Cells) -> pd.DataFrame:
  return theory_cells.make_table(grid.frame, grid.cells)


def _describe_lines(
    title: str, metric: str, **options: Any
) -> described.Figure:
  return described.line_grid(
      title=title,
      experiment='fig2d',
      cell=CELL,
      panels=_panels(_lines(metric)),
      measures=_table,
      notes=(f"A size that does not grow is {_BASE} times the teacher's.",),
      adjust=lambda figure, grid: figure.update_xaxes(tickvals=_factors(grid)),
      x_title="size, times the teacher's",
      x_type='log',
      **options,
  )


FIGURES = {
    'fig2d': _describe_lines(
        'Figure 2D: do larger students find the modules less well?',
        'alignment',
        y_title='joint module alignment, OOD (at most 1)',
    ),
    'fig_a2': _describe_lines(
        'Figure A2: do larger students lose more on new combinations?',
        'pooled_relative_loss',
        y_title='OOD loss relative to target power',
        y_type='log',
    ),
    'fig2d_grid': described.heat_grid(
        title='Figure 2D, all sizes: is it width or modules?',
        experiment='fig2d',
        cell=CELL,
        panels=_panels(_heat),
        measures=_table,
        x_title="modules, times the teacher's",
        y_title="hidden units, times the teacher's",
        z_title='joint module alignment, OOD',
        z_range=(0, 1),
    ),
}
