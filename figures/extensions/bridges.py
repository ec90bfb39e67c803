"""Beyond the paper: how many families repair a disconnected support?

Left: module alignment on new combinations. Right: their relative loss. The x
axis counts pairs of modules, one of each triangle, that are trained together. A
family of two modules connects one pair, a larger one several.
"""

import itertools
import math

import numpy as np
import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import theory_cells
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.tasks.supports import families

_CELL = (theory_cells.SOLVER, theory_cells.LATENTS, theory_cells.SUPPORT)
_COLOURS = {'continuous': '#0072B2', 'discrete': '#E69F00'}


def num_bridges(task_support: str) -> int:
  """Returns how many families join the two triangles."""
  return len(_bridges(task_support))


def num_pairs(task_support: str) -> int:
  """Returns how many pairs, one module of each triangle, share a family."""
  bridges = _bridges(task_support)
  return int((bridges[:, :3, None] & bridges[:, None, 3:]).any(0).sum())


def _bridges(task_support: str) -> np.ndarray:
  """Returns the masks of the families that join the triangles, [bridges, M]."""
  masks = families.masks(families.FAMILIES[task_support])
  return masks[masks[:, :3].any(1) & masks[:, 3:].any(1)]


def _finished(grid: cells.Cells) -> list[cells.Cell]:
  return [
      cell
      for cell in pick.distinct(grid.frame, _CELL)
      if cell[theory_cells.SUPPORT] in families.FAMILIES
  ]


def _panels(grid: cells.Cells) -> dict[str, list[lines.Line]]:
  """Returns lines of families of two modules, then of one wider family."""
  panels = {
      'joint module alignment': [],
      'log10 of OOD loss relative to target power': [],
  }
  alignment, log_loss = panels.values()
  for one_family, kind in itertools.product((False, True), _COLOURS):
    aligned, lost = {}, {}
    for cell in _finished(grid):
      support = cell[theory_cells.SUPPORT]
      pairs, count = num_pairs(support), num_bridges(support)
      is_of_line = count <= 1 if one_family else count >= pairs
      if cell[theory_cells.LATENTS] == kind and is_of_line:
        aligned[pairs] = grid.values(cell, metric='alignment')
        loss = grid.values(cell, metric='pooled_relative_loss')
        lost[pairs] = loss.map(math.log10)
    dash = ('dot', 'one family')
    if not one_family:
      dash = ('solid', 'families of two modules')
    for panel, seeds in ((alignment, aligned), (log_loss, lost)):
      table = lines.by_x(dict(sorted(seeds.items())))
      name, colour = f'{kind} latents', _COLOURS[kind]
      panel.append(lines.Line(name, colour, table, *dash))
  return panels


def _table(grid: cells.Cells) -> pd.DataFrame:
  table = theory_cells.make_table(grid.frame, _finished(grid))
  if table.empty:
    return table
  support = table['task_support']
  touched = [int(_bridges(name).any(0).sum()) for name in support]
  table.insert(0, 'num_bridges', support.map(num_bridges))
  table.insert(1, 'num_pairs', support.map(num_pairs))
  table.insert(2, 'modules_touched', touched)
  return table.sort_values(['latent_type', 'num_pairs', 'num_bridges'])


FIGURE = described.line_grid(
    title='How many tasks must connect two groups of modules?',
    experiment='bridges',
    cell=_CELL,
    panels=_panels,
    measures=_table,
    notes=(
        'Converged inference.',
        (
            'Bridges: one family of two modules per pair, or a single family'
            ' of 3, 4 or 6 modules, which connects 2, 4 or 9 pairs.'
        ),
        'One bridge makes the support connected; nine pairs are the maximum.',
    ),
    adjust=lambda figure, _: figure.update_yaxes(
        matches=None, showticklabels=True
    ),
    x_title='distinct pairs of modules that bridges connect',
    y_title='',
)
