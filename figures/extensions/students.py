"""Students of the theory, each a point: alignment and losses.

Theorem 1 in numbers: training loss against loss on new combinations. Students
left of the line fit their training tasks, as the theorem assumes. It is about
the best latent for a new combination, so latents are inferred from many starts
(`analysis/refitting.py`); the y axis is the loss on the worst combination.

Beyond the paper: does size hurt, or inference that stops early? And how many
starts find the modules at matched size? The best of n starts is chosen by its
training loss, which needs no knowledge of the teacher.
"""

from collections.abc import Sequence
import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
from plotly import subplots
import plotly.graph_objects as go

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import theory_cells
from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import points
from modular_hyperteacher.figures.plotting import style

_LOSS = 'pooled_relative_loss'
_ALIGNMENT = 'joint module alignment, OOD'
_TRAINING_LOSS = 'loss in training, relative to target power'
_LOG: dict[str, Any] = {'type': 'log', 'exponentformat': 'power'}
_ROW: dict[str, Any] = {
    'plot_height': 390,
    'shared_yaxes': True,
    'horizontal_spacing': 0.04,
}

CELL_THEOREM: tuple[str, ...] = (theory_cells.SUPPORT, 'task.output_dim')
NEAR_ZERO = 1e-7  # Relative to the power of the targets.
_OUTPUTS = {1: 'one output, as in the theorem', 4: 'four outputs'}
_SUPPORTS = {
    'ring': ('connected (ring)', theory_cells.CONNECTED, 'circle'),
    'triangles': (
        'disconnected (triangles)',
        theory_cells.DISCONNECTED,
        'diamond',
    ),
}
_OF_THEOREM = {
    'train_loss': ('test', _LOSS),
    'ood_loss': ('ood', 'refit_relative_loss'),
    'ood_loss_max': ('ood', 'refit_relative_loss_max'),
    # As inferred in training, from one start.
    'ood_loss_inferred': ('ood', _LOSS),
    'alignment': ('ood', 'alignment'),
    'residual': ('ood', 'identification_residual_direct'),
}


def draw_theorem(library: data.Library) -> cells.Drawn:
  """Returns the figure on Theorem 1 and the table of all students."""
  grid = cells.read(library, 'theorem', CELL_THEOREM)
  table = theorem_table(grid.frame)
  panels = {
      panel: [
          points.Points(name, colour, _losses(table, size, support), mark)
          for support, (name, colour, mark) in _SUPPORTS.items()
      ]
      for size, panel in _OUTPUTS.items()
  }
  figure = points.draw(
      panels,
      x_title=_TRAINING_LOSS,
      y_title='largest OOD loss, relative to target power',
      empty='not measured' if len(table) else 'no finished run',
      caption=grid.caption(
          'Converged inference from many starts, on all new combinations'
          ' that evaluation drew.',
          'Dotted: the training loss that counts as zero'
          f' ({NEAR_ZERO:g} of the power of the targets).',
      ),
      **_ROW,
  )
  figure.add_vline(x=NEAR_ZERO, line={'color': style.MUTED, 'dash': 'dot'})
  return figure, table


def _losses(table: pd.DataFrame, size: int, support: str) -> pd.DataFrame:
  """Returns the points of one support's students with so many outputs."""
  rows = pick.rows(table, {'output_dim': size, 'task_support': support})
  rows = rows.rename(columns={'train_loss': 'x', 'ood_loss_max': 'y'})
  labels = [
      f'seed {row.seed}, alignment {row.alignment:.4f},'
      f' residual {row.residual:.1e}'
      for row in rows.itertuples()
  ]
  return rows.assign(label=labels).dropna(subset='y')


def theorem_table(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns a row per student; losses are relative to target power."""
  table = theory_cells.find_students(frame, CELL_THEOREM, _OF_THEOREM)
  table = table[['seed', *_OF_THEOREM, 'task_support', 'output_dim']]
  order = ['output_dim', 'task_support', 'seed']
  return table.sort_values(order, ignore_index=True)


_CELL_INFERENCE = (
    theory_cells.SOLVER,
    'model.inner.num_steps',
    'model.inner.learning_rate',
    'model.inner.random_start',
    theory_cells.HIDDEN,
    theory_cells.MODULES,
)
# Solver -> name and colour. No run uses the published settings, and not all
# have converged.
_SOLVERS = {
    'levenberg_marquardt': ('Levenberg-Marquardt', '#0072B2'),
    'adamw': ('Adam', '#E69F00'),
}
# By modules, as a multiple of the teacher's.
_SYMBOLS = {2: 'circle', 4: 'square', 8: 'diamond'}
_OF_INFERENCE = {
    'train_loss': ('test', _LOSS),
    'support_loss': ('test', 'support_loss_after'),
    'excess': ('test', 'inference_excess'),
    'ood_loss': ('ood', _LOSS),
    'alignment': ('ood', 'alignment'),
}
_PANELS = {
    'train_loss': 'loss in training / target power',
    'support_loss': 'support loss after inference',
    'excess': 'loss that better inference removes',
}
# Negative excess is drawn here. It comes from rounding, or from inference on
# more examples than the fits that it is compared with.
_LEAST_EXCESS = 1e-9


def draw_inference(library: data.Library) -> cells.Drawn:
  """Returns the figure on inference, and the table of all students."""
  grid = cells.read(library, 'inference', _CELL_INFERENCE)
  table = theory_cells.find_students(grid.frame, _CELL_INFERENCE, _OF_INFERENCE)
  groups: Any = table.groupby(['solver', 'modules_per_teacher_module'])
  figure = points.draw(
      {
          panel: [_points(rows, metric, *key) for key, rows in groups]
          for metric, panel in _PANELS.items()
      },
      x_title='',
      y_title=_ALIGNMENT,
      y_type='linear',
      caption=grid.caption(
          'Discrete tasks, singles and ring.',
          "Circles: twice the teacher's size; squares: four times. Open"
          ' marks: inference from a random start.',
          'Right: relative loss minus that of latents inferred to'
          ' convergence, from many starts, on 64 examples; drawn at'
          f' {_LEAST_EXCESS:g} if that is no better.',
      ),
      **_ROW,
  )
  return figure, table


def _points(
    rows: pd.DataFrame, metric: str, solver: str, modules: int
) -> points.Points:
  name, colour = _SOLVERS.get(solver, (solver, style.MUTED))
  symbol = _SYMBOLS.get(modules, 'x')
  # The legend shows the symbol of the first row.
  rows = rows.sort_values('random_start')
  labels = [
      f'{row.num_steps} steps'
      + (f' at {row.learning_rate:g}' if solver == 'adamw' else '')
      + f', seed {row.seed}'
      for row in rows.itertuples()
  ]
  shown = pd.DataFrame({
      'x': rows[metric].clip(lower=_LEAST_EXCESS),
      'y': rows['alignment'],
      'label': labels,
  })
  symbols = [
      f'{symbol}-open' if start else symbol for start in rows['random_start']
  ]
  return points.Points(f'{name}, {modules} times', colour, shown, symbols)


_TEACHER = 'task.teacher_seed'
_TEACHER_COLOURS = ('#0072B2', '#E69F00', '#009E73')
_OF_RESTARTS = {
    'train_loss': ('test', _LOSS),
    'ood_loss': ('ood', _LOSS),
    'alignment': ('ood', 'alignment'),
    'residual': ('ood', 'identification_residual_direct'),
}


def draw_restarts(library: data.Library) -> cells.Drawn:
  """Returns the figure on starts, and the table by teacher and loss."""
  grid = cells.read(library, 'restarts', (_TEACHER,))
  table = theory_cells.find_students(grid.frame, (_TEACHER,), _OF_RESTARTS)
  table = table.rename(columns={'teacher_seed': 'teacher', 'seed': 'start'})
  table = table.sort_values(['teacher', 'train_loss'], ignore_index=True)
  table.insert(0, 'preset', ', '.join(grid.frame['preset'].unique()))
  figure = subplots.make_subplots(rows=1, cols=2, horizontal_spacing=0.08)
  for colour, (teacher, students) in zip(
      itertools.cycle(_TEACHER_COLOURS), table.groupby('teacher')
  ):
    counts = list(range(1, len(students) + 1))
    expected = [best_of(students['alignment'].to_numpy(), n) for n in counts]
    points = students['train_loss'], students['alignment']
    for column, (x, y) in enumerate((points, (counts, expected)), start=1):
      trace = go.Scatter(
          x=x,
          y=y,
          mode='markers' if column == 1 else 'lines+markers',
          marker={'color': colour, 'size': 9},
          name=f'teacher {teacher}',
          legendgroup=str(teacher),
          showlegend=column == 1,
      )
      figure.add_trace(trace, row=1, col=column)
  for column in (1, 2) if table.empty else ():
    layout.name_missing(figure, 'no finished run', 0, column)
  figure.update_xaxes(title_text=_TRAINING_LOSS, **_LOG, col=1)
  figure.update_xaxes(title_text='starts', col=2)
  figure.update_yaxes(title_text=_ALIGNMENT, col=1)
  figure.update_yaxes(title_text='alignment of the best start', col=2)
  layout.finish(
      figure,
      caption=grid.caption(
          'Converged inference, discrete tasks, singles and ring.',
          'Best start: the one with the lowest training loss; mean over all'
          ' choices of so many starts.',
      ),
  )
  return figure, table


def best_of(values: np.ndarray | Sequence[float], number: int) -> float:
  """Returns the expected best of `number` values, chosen without replacement.

  Values are sorted, the best first.
  """
  total = len(values)
  # Value i is the best chosen if the others are among those after i.
  chances = [math.comb(total - 1 - i, number - 1) for i in range(total)]
  return float(np.dot(chances, values) / math.comb(total, number))


_TITLES = {
    'theorem': (
        'Theorem 1: do students that fit all training tasks fit all others?'
    ),
    'inference': 'Do students find the modules if inference does not converge?',
    'restarts': "How often do students of the teacher's size find the modules?",
}
FIGURES = {
    name: described.Figure(title, (name,), draw)
    for (name, title), draw in zip(
        _TITLES.items(), (draw_theorem, draw_inference, draw_restarts)
    )
}
