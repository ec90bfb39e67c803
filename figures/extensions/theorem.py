"""Theorem 1 in numbers: training loss against loss on new combinations.

Every point is a student of its teacher's size, trained from one start. Students
left of the line fit their training tasks, as the theorem assumes. The theorem
is about the best latent for a new combination, so latents are inferred from
many starts (`analysis/refitting.py`); the y axis is the loss on the worst
combination.
"""

import itertools

import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.paper import theory_cells
from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'theorem'
TITLE = 'Theorem 1: do students that fit all training tasks fit all others?'
CELL: tuple[str, ...] = (theory_cells.SUPPORT, 'task.output_dim')
OUTPUTS = {1: 'one output, as in the theorem', 4: 'four outputs'}
NEAR_ZERO = 1e-7  # Relative to the power of the targets.
_SUPPORTS = {
    'ring': ('connected (ring)', theory_cells.CONNECTED, 'circle'),
    'triangles': (
        'disconnected (triangles)',
        theory_cells.DISCONNECTED,
        'diamond',
    ),
}
_METRICS = {
    'train_loss': ('test', 'pooled_relative_loss'),
    'ood_loss': ('ood', 'refit_relative_loss'),
    'ood_loss_max': ('ood', 'refit_relative_loss_max'),
    # As inferred in training, from one start.
    'ood_loss_inferred': ('ood', 'pooled_relative_loss'),
    'alignment': ('ood', 'alignment'),
    'residual': ('ood', 'identification_residual_direct'),
}


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of all students."""
  grid = cells.read(library, EXPERIMENT, CELL)
  table = make_table(grid.frame)
  figure = layout.make_row(
      OUTPUTS.values(), shared_yaxes=True, horizontal_spacing=0.04
  )
  for column, output_dim in enumerate(OUTPUTS, start=1):
    students = table[table['output_dim'] == output_dim]
    for support in _SUPPORTS:
      figure.add_trace(
          _trace(students, support, in_legend=column == 1), row=1, col=column
      )
    if students['ood_loss_max'].isna().all():
      why = 'not measured' if len(students) else 'no finished run'
      layout.name_missing(figure, why, 0, column)
  figure.add_vline(x=NEAR_ZERO, line={'color': style.MUTED, 'dash': 'dot'})
  figure.update_xaxes(
      title_text='loss in training, relative to target power',
      type='log',
      exponentformat='power',
  )
  figure.update_yaxes(type='log', exponentformat='power')
  figure.update_yaxes(
      title_text='largest OOD loss, relative to target power', col=1
  )
  layout.finish(
      figure,
      title=TITLE,
      caption=grid.caption(
          'Converged inference from many starts, on all new combinations'
          ' that evaluation drew.',
          'Dotted: the training loss that counts as zero'
          f' ({NEAR_ZERO:g} of the power of the targets).',
      ),
  )
  return figure, table


def _trace(students: pd.DataFrame, support: str, in_legend: bool) -> go.Scatter:
  name, colour, symbol = _SUPPORTS[support]
  rows = students[students['task_support'] == support]
  return go.Scatter(
      x=rows['train_loss'],
      y=rows['ood_loss_max'],
      customdata=rows[['seed', 'alignment', 'residual']],
      mode='markers',
      name=name,
      showlegend=in_legend,
      marker={
          'color': colour,
          'symbol': symbol,
          'size': 10,
          'line': {'color': style.INK, 'width': 1},
      },
      hovertemplate=(
          f'{name}<br>seed %{{customdata[0]}}<br>training %{{x:.1e}}, OOD'
          ' %{y:.1e}<br>alignment %{customdata[1]:.4f}, residual'
          ' %{customdata[2]:.1e}<extra></extra>'
      ),
  )


def make_table(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns a row per student; losses are relative to target power."""
  rows = []
  for output_dim, support in itertools.product(OUTPUTS, _SUPPORTS):
    cell = dict(zip(CELL, (support, output_dim)))
    students = theory_cells.find_students(frame, cell, _METRICS)
    rows.append(students.assign(task_support=support, output_dim=output_dim))
  return pd.concat(rows, ignore_index=True)
