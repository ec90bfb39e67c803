"""Beyond the paper: how many starts find the modules at matched size?

Left: alignment of every student on new combinations against its training loss.
Right: expected alignment of the best of n starts, chosen by training loss,
which needs no knowledge of the teacher.
"""

import itertools
import math

import numpy as np
import pandas as pd
from plotly import subplots
import plotly.graph_objects as go

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.paper import theory_cells
from modular_hyperteacher.figures.plotting import layout

EXPERIMENT = 'restarts'
TITLE = "How often do students of the teacher's size find the modules?"
_TEACHER = 'task.teacher_seed'
CELL = (_TEACHER,)
_COLOURS = ('#0072B2', '#E69F00', '#009E73')
_METRICS = {
    'train_loss': ('test', 'pooled_relative_loss'),
    'ood_loss': ('ood', 'pooled_relative_loss'),
    'alignment': ('ood', 'alignment'),
    'residual': ('ood', 'identification_residual_direct'),
}


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of all students."""
  grid = cells.read(library, EXPERIMENT, CELL)
  table = make_table(grid.frame)
  figure = subplots.make_subplots(rows=1, cols=2, horizontal_spacing=0.08)
  for colour, (teacher, students) in zip(
      itertools.cycle(_COLOURS), table.groupby('teacher')
  ):
    for column, (x, y) in enumerate(
        (
            (students['train_loss'], students['alignment']),
            _expected(students),
        ),
        start=1,
    ):
      figure.add_trace(
          go.Scatter(
              x=x,
              y=y,
              mode='markers' if column == 1 else 'lines+markers',
              marker={'color': colour, 'size': 9},
              name=f'teacher {teacher}',
              legendgroup=str(teacher),
              showlegend=column == 1,
          ),
          row=1,
          col=column,
      )
  if table.empty:
    for column in (1, 2):
      layout.name_missing(figure, 'no finished run', 0, column)
  figure.update_xaxes(
      title_text='loss in training, relative to target power',
      type='log',
      exponentformat='power',
      col=1,
  )
  figure.update_xaxes(title_text='starts', col=2)
  figure.update_yaxes(title_text='joint module alignment, OOD', col=1)
  figure.update_yaxes(title_text='alignment of the best start', col=2)
  layout.finish(
      figure,
      title=TITLE,
      caption=grid.caption(
          'Converged inference, discrete tasks, singles and ring.',
          'Best start: the one with the lowest training loss; mean over all'
          ' choices of so many starts.',
      ),
  )
  return figure, table


def make_table(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns a row per student, by teacher and increasing training loss."""
  columns = ['preset', 'teacher', 'start', *_METRICS]
  if frame.empty:
    return pd.DataFrame(columns=columns)
  rows = []
  for teacher, runs in frame.groupby(_TEACHER):
    students = theory_cells.find_students(runs, {}, _METRICS)
    rows.append(
        students.rename(columns={'seed': 'start'})
        .sort_values('train_loss')
        .assign(teacher=teacher, preset=runs['preset'].iloc[0])
    )
  return pd.concat(rows, ignore_index=True)[columns]


def _expected(students: pd.DataFrame) -> tuple[list[int], list[float]]:
  """Returns numbers of starts, and the expected alignment of the best one."""
  alignment = students.sort_values('train_loss')['alignment'].to_numpy()
  counts = list(range(1, len(alignment) + 1))
  return counts, [best_of(alignment, n) for n in counts]


def best_of(values: np.ndarray, number: int) -> float:
  """Returns the expected best of `number` values chosen at random.

  Args:
    values: the best first.
    number: how many are chosen, without replacement.
  """
  total = len(values)
  # Value i is the best chosen if the others are among those after i.
  chances = [math.comb(total - 1 - i, number - 1) for i in range(total)]
  return float(np.dot(chances, values) / math.comb(total, number))
