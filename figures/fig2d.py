"""Figure 2D: alignment of students that are larger than their teacher.

Figure A2 shows the OOD loss of the same runs. A line for each way to grow:
hidden units, modules, or both; the other size is twice the teacher's. One panel
per kind of latent and way to infer it. The grid shows all sizes.
"""

import functools

import pandas as pd
import plotly.graph_objects as go

from figures import data
from figures import heatmaps
from figures import lines
from figures import style
from figures import theory

EXPERIMENT = 'fig2d'
TITLES = {
    'fig2d': 'Figure 2D: module alignment of students of growing size',
    'fig_a2': 'Figure A2: OOD loss of students of growing size',
    'fig2d_grid': 'Module alignment of students of all sizes (Figure 2D)',
}
CELL = (theory.SOLVER, theory.LATENTS, theory.HIDDEN, theory.MODULES)
_METRICS = {
    'fig2d': ('alignment', 'joint module alignment, OOD (at most 1)'),
    'fig_a2': ('pooled_relative_loss', 'OOD loss relative to target power'),
}
_BASE = 2  # Size of what does not grow, as a multiple of the teacher's.
_GROWTH = {  # Name -> colour, size at a factor: (hidden units, modules).
    'hidden units': ('#E69F00', lambda factor: (factor, _BASE)),
    'modules': ('#56B4E9', lambda factor: (_BASE, factor)),
    'both': (style.INK, lambda factor: (factor, factor)),
}


def draw(
    library: data.Library, name: str = 'fig2d'
) -> tuple[go.Figure, pd.DataFrame]:
  """Returns figure 'fig2d' or 'fig_a2' and the table of what it shows."""
  frame, left_out = data.select_conditions(library.values(EXPERIMENT), CELL)
  metric, y_title = _METRICS[name]
  panels = {
      f'{latent_type},<br>{theory.SOLVER_NAMES[solver]}': [
          _line(frame, solver, latent_type, growth, metric)
          for growth in _GROWTH
      ]
      for solver in theory.solvers(frame)
      for latent_type in ('discrete', 'continuous')
  }
  figure = lines.draw(
      panels,
      title=TITLES[name],
      x_title="size, times the teacher's",
      y_title=y_title,
      x_type='log',
      y_type='log' if name == 'fig_a2' else 'linear',
      caption=[
          f'{style.scale_note(frame, CELL)}.',
          f'What does not grow is {_BASE} times the teacher\'s size.',
          *style.left_out_notes(left_out),
      ],
  )
  figure.update_xaxes(tickvals=_factors(frame))
  return figure, theory.make_table(frame, _cells(frame))


draw_fig_a2 = functools.partial(draw, name='fig_a2')


def draw_grid(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the heat maps over both sizes, and the table of `draw`."""
  frame, left_out = data.select_conditions(library.values(EXPERIMENT), CELL)
  cells = _cells(frame)
  figure = heatmaps.draw(
      {
          f'{latent_type},<br>{theory.SOLVER_NAMES[solver]}': {
              (
                  cell[theory.MODULES],
                  cell[theory.HIDDEN] / _teacher_width(frame),
              ): heatmaps.Cell(
                  data.values(frame, cell, 'ood', metric='alignment'), 'no run'
              )
              for cell in cells
              if (cell.get(theory.SOLVER), cell.get(theory.LATENTS))
              == (solver, latent_type)
          }
          for solver in theory.solvers(frame)
          for latent_type in ('discrete', 'continuous')
      },
      title=TITLES['fig2d_grid'],
      x_title="modules, times the teacher's",
      y_title="hidden units, times the teacher's",
      z_title='joint module alignment, OOD',
      z_range=(0, 1),
      caption=[
          f'{style.scale_note(frame, CELL)}.',
          *style.left_out_notes(left_out),
      ],
  )
  return figure, theory.make_table(frame, cells)


def _cells(frame):
  """Returns every cell that was run; the published sizes if none was."""
  present = [column for column in CELL if column in frame]
  cells = frame[present].drop_duplicates().sort_values(present)
  return cells.to_dict('records') or [
      dict(zip(CELL, ('adamw', 'discrete', 32, 2)))
  ]


def _factors(frame):
  if theory.MODULES not in frame:
    return [1, 2, 4, 8]
  return sorted(frame[theory.MODULES].unique())


def _line(frame, solver, latent_type, growth, metric):
  colour, size_at = _GROWTH[growth]
  by_factor = {}
  for factor in _factors(frame):
    hidden_factor, modules = size_at(factor)
    width = hidden_factor * _teacher_width(frame)
    cell = dict(zip(CELL, (solver, latent_type, width, modules)))
    values = data.values(frame, cell, 'ood', metric=metric)
    if len(values):
      by_factor[factor] = values
  return lines.Line(growth, colour, pd.DataFrame(by_factor).T)


def _teacher_width(frame):
  column = 'task.teacher_hidden_dim'
  return int(frame[column].iloc[0]) if column in frame else 16
