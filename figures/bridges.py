"""Beyond the paper: how many families repair a disconnected support?

Left, module alignment on new combinations; right, their relative loss; over how
many distinct pairs of modules are trained on together, one of either triangle.
Families of two modules connect a pair each, so that their number is the number
of pairs; a wider family connects several.
"""

import math

import pandas as pd
import plotly.graph_objects as go

from figures import data
from figures import lines
from figures import style
from figures import theory
from modular_hyperteacher.tasks import families

EXPERIMENT = 'bridges'
TITLE = 'Beyond the paper: bridges between two triangles of modules'
CELL = (theory.SOLVER, theory.LATENTS, theory.SUPPORT)
_COLOURS = {'continuous': '#0072B2', 'discrete': '#E69F00'}
_PANELS = {
    'joint module alignment': 'alignment',
    'log10 of OOD loss relative to target power': 'log_loss',
}


def draw(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the figure and the table of what it shows."""
  frame, left_out = data.select_conditions(library.values(EXPERIMENT), CELL)
  present = [column for column in CELL if column in frame]
  cells = frame[present].drop_duplicates().to_dict('records')
  panels = {
      title: [
          _line(frame, cells, kind, metric, one_family)
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
      caption=[
          f'{style.scale_note(frame, CELL)}; converged inference.',
          'Bridges: as many families of two modules as pairs, or one family of'
          ' 3, 4 or all 6 modules for 2, 4 or 9 pairs.',
          'With one bridge the families are connected; nine pairs are all there'
          ' are.',
          *style.left_out_notes(left_out),
      ],
  )
  figure.update_yaxes(matches=None, showticklabels=True)
  table = theory.make_table(frame, cells)
  if len(table):
    for place, (name, count) in enumerate(
        (
            ('num_bridges', num_bridges),
            ('num_pairs', num_pairs),
            ('modules_touched', _modules_touched),
        )
    ):
      table.insert(place, name, table['task_support'].map(count))
    table = table.sort_values(['latent_type', 'num_pairs', 'num_bridges'])
  return figure, table


def num_bridges(task_support: str) -> int:
  """Returns how many families join the two triangles."""
  return int(_bridges(task_support).sum())


def num_pairs(task_support: str) -> int:
  """Returns how many pairs, one module of each triangle, have a family."""
  bridges = families.masks(families.FAMILIES[task_support])
  bridges = bridges[_bridges(task_support)]
  return int((bridges[:, :3, None] & bridges[:, None, 3:]).any(0).sum())


def _modules_touched(task_support):
  masks = families.masks(families.FAMILIES[task_support])
  return int(masks[_bridges(task_support)].any(0).sum())


def _bridges(task_support):
  masks = families.masks(families.FAMILIES[task_support])
  return masks[:, :3].any(1) & masks[:, 3:].any(1)


def _line(frame, cells, latent_type, metric, one_family):
  """Returns the line of bridges of two modules, or of a single wider one."""
  by_count = {}
  for cell in cells:
    support = cell[theory.SUPPORT]
    pairs, count = num_pairs(support), num_bridges(support)
    if cell[theory.LATENTS] != latent_type or (
        count > 1 if one_family else count < pairs
    ):
      continue
    name = 'pooled_relative_loss' if metric == 'log_loss' else metric
    values = data.values(frame, cell, 'ood', metric=name)
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
