"""Figure 2D: alignment of students that are larger than their teacher.

Lines grow hidden units, modules or both; a size that does not grow is twice the
teacher's. There is a panel per latent type and solver. Figure A2 shows the OOD
loss of the same runs, the grid all sizes.
"""

from collections.abc import Iterator
import functools

import pandas as pd

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import theory_cells
from modular_hyperteacher.figures.plotting import heatmaps
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'fig2d'
TITLES = {
    'fig2d': 'Figure 2D: do larger students find the modules less well?',
    'fig_a2': 'Figure A2: do larger students lose more on new combinations?',
    'fig2d_grid': 'Figure 2D, all sizes: is it width or modules?',
}
CELL: tuple[str, ...] = (
    theory_cells.SOLVER,
    theory_cells.LATENTS,
    theory_cells.HIDDEN,
    theory_cells.MODULES,
)
_METRICS = {
    'fig2d': ('alignment', 'joint module alignment, OOD (at most 1)'),
    'fig_a2': ('pooled_relative_loss', 'OOD loss relative to target power'),
}
_BASE = 2  # A size that does not grow, as a multiple of the teacher's.
_GROWTH = {  # Name -> colour, and factor -> (hidden units, modules).
    'hidden units': ('#E69F00', lambda factor: (factor, _BASE)),
    'modules': ('#56B4E9', lambda factor: (_BASE, factor)),
    'both': (style.INK, lambda factor: (factor, factor)),
}


def draw(library: data.Library, name: str = 'fig2d') -> cells.Drawn:
  """Returns figure 'fig2d' or 'fig_a2' and the table of what it shows."""
  grid = cells.read(library, EXPERIMENT, CELL)
  frame = grid.frame
  metric, y_title = _METRICS[name]
  panels = {
      title: [
          _line(frame, solver, latent_type, growth, metric)
          for growth in _GROWTH
      ]
      for title, solver, latent_type in _panels(frame)
  }
  figure = lines.draw(
      panels,
      title=TITLES[name],
      x_title="size, times the teacher's",
      y_title=y_title,
      x_type='log',
      y_type='log' if name == 'fig_a2' else 'linear',
      caption=grid.caption(
          f"A size that does not grow is {_BASE} times the teacher's.",
      ),
  )
  figure.update_xaxes(tickvals=_factors(frame))
  return figure, theory_cells.make_table(frame, grid.cells)


draw_fig_a2 = functools.partial(draw, name='fig_a2')


def draw_grid(library: data.Library) -> cells.Drawn:
  """Returns the heat maps over both sizes, and the table of `draw`."""
  grid = cells.read(library, EXPERIMENT, CELL)
  frame = grid.frame
  figure = heatmaps.draw(
      {
          title: {
              (
                  cell[theory_cells.MODULES],
                  cell[theory_cells.HIDDEN] / theory_cells.teacher_width(frame),
              ): heatmaps.Cell(
                  pick.values(frame, cell, 'ood', metric='alignment'), 'no run'
              )
              for cell in grid.cells
              if (cell.get(theory_cells.SOLVER), cell.get(theory_cells.LATENTS))
              == (solver, latent_type)
          }
          for title, solver, latent_type in _panels(frame)
      },
      title=TITLES['fig2d_grid'],
      x_title="modules, times the teacher's",
      y_title="hidden units, times the teacher's",
      z_title='joint module alignment, OOD',
      z_range=(0, 1),
      caption=grid.caption(),
  )
  return figure, theory_cells.make_table(frame, grid.cells)


def _panels(frame: pd.DataFrame) -> Iterator[tuple[str, str, str]]:
  """Yields each panel's title, solver and latent type."""
  for solver in theory_cells.solvers(frame):
    for latent_type in ('discrete', 'continuous'):
      name = theory_cells.SOLVER_NAMES[solver]
      yield f'{latent_type},<br>{name}', solver, latent_type


def _factors(frame: pd.DataFrame) -> list[int]:
  return sorted(set(frame[theory_cells.MODULES]))


def _line(
    frame: pd.DataFrame,
    solver: str,
    latent_type: str,
    growth: str,
    metric: str,
) -> lines.Line:
  colour, size_at = _GROWTH[growth]
  by_factor = {}
  for factor in _factors(frame):
    hidden_factor, modules = size_at(factor)
    width = hidden_factor * theory_cells.teacher_width(frame)
    cell = dict(zip(CELL, (solver, latent_type, width, modules)))
    by_factor[factor] = pick.values(frame, cell, 'ood', metric=metric)
  return lines.Line(growth, colour, lines.by_x(by_factor))
