"""Figure 2C: are the teacher's modules found?

Module alignment on new combinations for the families of Table A9: connected
ones are blue, disconnected ones orange. One panel per kind of latent and way to
infer it.
"""

import pandas as pd
import plotly.graph_objects as go

from figures import bars
from figures import data
from figures import style
from figures import theory
from modular_hyperteacher.tasks import families

EXPERIMENT = 'fig2c'
TITLE = 'Figure 2C: module alignment for connected and disconnected families'
CELL = (theory.SOLVER, theory.LATENTS, theory.SUPPORT)


def draw(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the figure and the table of what it shows."""
  frame, left_out = data.select_conditions(library.values(EXPERIMENT), CELL)
  panels, cells = {}, []
  for solver in theory.solvers(frame):
    for latent_type in ('discrete', 'continuous'):
      of_panel = [
          dict(zip(CELL, (solver, latent_type, support)))
          for kind, support in families.TABLE_A9.values()
          if kind == latent_type
      ]
      title = f'{latent_type}, {theory.SOLVER_NAMES[solver]}'
      panels[title] = [_bar(frame, cell) for cell in of_panel]
      cells += of_panel
  figure = bars.draw(
      panels,
      title=TITLE,
      y_title='joint module alignment (at most 1)',
      y_range=(0, 1.02),
      caption=[
          f'{style.scale_note(frame, CELL)}.',
          'Blue: connected families; orange: disconnected. Fitted and evaluated'
          ' on combinations that training did not show.',
          *style.left_out_notes(left_out),
      ],
  )
  figure.update_xaxes(tickangle=0, tickfont={'size': 10})
  return figure, theory.make_table(frame, cells)


def _bar(frame, cell):
  support = cell[theory.SUPPORT]
  connected = theory.is_connected(support)
  return bars.Bar(
      label=theory.FAMILY_NAMES[support],
      colour=theory.CONNECTED if connected else theory.DISCONNECTED,
      seeds=data.values(frame, cell, 'ood', metric='alignment'),
      missing='no finished run',
  )
