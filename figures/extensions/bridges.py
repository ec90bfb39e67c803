"""Beyond the paper: how many families repair a disconnected support?

Left: module alignment on new combinations. Right: their relative loss. The x
axis counts pairs of modules, one of each triangle, that are trained together. A
family of two modules connects one pair, a larger one several.
"""

from collections.abc import Mapping, Sequence
import math

import numpy as np
import pandas as pd

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import theory_cells
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.tasks.supports import families

EXPERIMENT = 'bridges'
TITLE = 'How many tasks must connect two groups of modules?'
CELL = (theory_cells.SOLVER, theory_cells.LATENTS, theory_cells.SUPPORT)
_COLOURS = {'continuous': '#0072B2', 'discrete': '#E69F00'}
_PANELS = {
    'joint module alignment': 'alignment',
    'log10 of OOD loss relative to target power': 'log_loss',
}


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of what it shows."""
  grid = cells.read(library, EXPERIMENT, CELL)
  frame = grid.frame
  finished = [
      cell
      for cell in pick.distinct(frame, CELL)
      if cell[theory_cells.SUPPORT] in families.FAMILIES
  ]
  panels = {
      title: [
          _line(frame, finished, kind, metric, one_family)
          for one_family in (False, True)
          for kind in _COLOURS
      ]
      for title, metric in _PANELS.items()
  }
  figure = lines.draw(
      panels,
      title=TITLE,
      x_title='distinct pairs of modules that bridges connect',
      y_title='',
      caption=grid.caption(
          'Converged inference.',
          'Bridges: one family of two modules per pair, or a single family'
          ' of 3, 4 or 6 modules, which connects 2, 4 or 9 pairs.',
          'One bridge makes the support connected; nine pairs are the maximum.',
      ),
  )
  figure.update_yaxes(matches=None, showticklabels=True)
  table = theory_cells.make_table(frame, finished)
  if len(table):
    for position, (name, count) in enumerate((
        ('num_bridges', num_bridges),
        ('num_pairs', num_pairs),
        ('modules_touched', lambda name: int(_bridges(name).any(0).sum())),
    )):
      table.insert(position, name, table['task_support'].map(count))
    table = table.sort_values(['latent_type', 'num_pairs', 'num_bridges'])
  return figure, table


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


def _line(
    frame: pd.DataFrame,
    finished: Sequence[Mapping[str, str]],
    latent_type: str,
    metric: str,
    one_family: bool,
) -> lines.Line:
  """Returns the line of families of two modules, or of one wider family."""
  by_count = {}
  for cell in finished:
    support = cell[theory_cells.SUPPORT]
    pairs, count = num_pairs(support), num_bridges(support)
    if cell[theory_cells.LATENTS] != latent_type or (
        count > 1 if one_family else count < pairs
    ):
      continue
    name = 'pooled_relative_loss' if metric == 'log_loss' else metric
    values = pick.values(frame, cell, 'ood', metric=name)
    if metric == 'log_loss':
      values = values.map(math.log10)
    by_count[pairs] = values
  seeds = pd.DataFrame(dict(sorted(by_count.items()))).T
  dash, dash_name = (
      ('dot', 'one family')
      if one_family
      else ('solid', 'families of two modules')
  )
  return lines.Line(
      f'{latent_type} latents', _COLOURS[latent_type], seeds, dash, dash_name
  )
