"""Beyond the paper: starts that it takes to find the modules at matched size.

Left, every student: its alignment on new combinations against its error in
training. Right, the alignment to expect of the best of n starts, chosen by the
error in training, as one would without knowing the teacher.
"""

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly import subplots

from figures import data
from figures import layout
from figures import style

EXPERIMENT = 'restarts'
TITLE = 'Beyond the paper: many starts of students of matching size'
_TEACHER = 'task.teacher_seed'
CELL = (_TEACHER,)
_COLOURS = ('#0072B2', '#E69F00', '#009E73')
_METRICS = {
    'train_loss': ('test', 'pooled_relative_loss'),
    'ood_loss': ('ood', 'pooled_relative_loss'),
    'alignment': ('ood', 'alignment'),
    'residual': ('ood', 'identification_residual_direct'),
}


def draw(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the figure and the table of all students."""
  frame, left_out = data.select_conditions(library.values(EXPERIMENT), CELL)
  table = make_table(frame)
  figure = subplots.make_subplots(rows=1, cols=2, horizontal_spacing=0.08)
  for colour, (teacher, students) in zip(_COLOURS, table.groupby('teacher')):
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
      layout.name_missing(figure, 'no finished run', 0, 1, column)
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
      caption=[
          f'{style.scale_note(frame, CELL)}; converged inference, discrete'
          ' tasks, singles and ring.',
          'Best: of lowest loss in training; its mean over all choices of so'
          ' many of the starts.',
          *style.left_out_notes(left_out),
      ],
  )
  return figure, table


def make_table(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns a row per student, the least loss in training first."""
  columns = ['preset', 'teacher', 'start', *_METRICS]
  if frame.empty:
    return pd.DataFrame(columns=columns)
  rows = []
  for teacher, runs in frame.groupby(_TEACHER):
    values = {
        name: data.values(runs, {}, split, metric=metric)
        for name, (split, metric) in _METRICS.items()
    }
    of_teacher = pd.DataFrame(values).rename_axis('start').reset_index()
    rows.append(
        of_teacher.sort_values('train_loss').assign(
            teacher=teacher, preset=runs['preset'].iloc[0]
        )
    )
  return pd.concat(rows, ignore_index=True)[columns]


def _expected(students):
  """Returns numbers of starts, and the mean alignment of the best of them."""
  alignment = students.sort_values('train_loss')['alignment'].to_numpy()
  counts = np.arange(1, len(alignment) + 1)
  return counts, [best_of(alignment, n) for n in counts]


def best_of(values: np.ndarray, number: int) -> float:
  """Returns the mean, over all choices of so many, of the first one chosen.

  Args:
    values: the best first.
    number: how many are chosen.
  """
  total = len(values)
  # The first chosen is i if the others are among those after i.
  chances = [math.comb(total - 1 - i, number - 1) for i in range(total)]
  return float(np.dot(chances, values) / math.comb(total, number))
