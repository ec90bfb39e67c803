"""Beyond the paper: how many families repair a disconnected support?

Left, module alignment on new combinations; right, their relative loss; over the
number of pairs that join two triangles of modules.
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
      title: [_line(frame, cells, kind, metric) for kind in _COLOURS]
      for title, metric in _PANELS.items()
  }
  figure = lines.draw(
      panels,
      title=TITLE,
      x_title='bridging families, each between two modules',
      y_title='',
      caption=[
          f'{style.scale_note(frame, CELL)}; converged inference.',
          'With one bridge the families are connected. Three bridges touch'
          ' every module; nine are all there are.',
          *style.left_out_notes(left_out),
      ],
  )
  figure.update_yaxes(matches=None, showticklabels=True)
  table = theory.make_table(frame, cells)
  if len(table):
    count = table['task_support'].map(num_bridges)
    table.insert(0, 'num_bridges', count)
    table.insert(
        1, 'modules_touched', table['task_support'].map(_modules_touched)
    )
    table = table.sort_values(['latent_type', 'num_bridges'])
  return figure, table


def num_bridges(task_support: str) -> int:
  """Returns how many families join the two triangles."""
  return int(_bridges(task_support).sum())


def _modules_touched(task_support):
  masks = families.masks(families.FAMILIES[task_support])
  return int(masks[_bridges(task_support)].any(0).sum())


def _bridges(task_support):
  masks = families.masks(families.FAMILIES[task_support])
  return masks[:, :3].any(1) & masks[:, 3:].any(1)


def _line(frame, cells, latent_type, metric):
  by_count = {}
  for cell in cells:
    if cell[theory.LATENTS] != latent_type:
      continue
    name = 'pooled_relative_loss' if metric == 'log_loss' else metric
    values = data.values(frame, cell, 'ood', metric=name)
    if metric == 'log_loss':
      values = values.map(math.log10)
    by_count[num_bridges(cell[theory.SUPPORT])] = values
  seeds = pd.DataFrame(dict(sorted(by_count.items()))).T
  return lines.Line(f'{latent_type} latents', _COLOURS[latent_type], seeds)
