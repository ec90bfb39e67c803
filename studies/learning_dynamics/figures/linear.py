"""Linear students: each direction over training, beside the closed form."""

from typing import Any

import pandas as pd

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.studies.learning_dynamics import measures
from modular_hyperteacher.studies.learning_dynamics import simulation

TITLE = 'Do linear students learn direction after direction, as predicted?'
# From the largest eigenvalue to the smallest.
_COLOURS = ('#0072B2', '#56B4E9', '#009E73', '#E69F00', '#D55E00', '#CC79A7')
_COLUMNS = {
    'trained': ('solid', 'trained'),
    'closed_form': ('dot', 'closed form'),
}


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the times at which losses have halved."""
  del library  # Nothing of it is trained by a config.
  table = simulation.MEASURED.load()
  panels = {}
  groups: Any = table.groupby(list(simulation.CELL), sort=False)
  for run, rows in groups:
    panels[measures.label(*run)] = [
        _line(rows, number, column)
        for number in range(1, 7)
        for column in _COLUMNS
    ]
  figure = lines.draw(
      panels,
      x_title='time',
      y_title='unlearned share',
      y_range=(0, 1),
      num_columns=2,
      markers=False,
      caption=[
          (
              f'{len(simulation.SEEDS)} seeds. Six modules, 16 inputs,'
              ' orthonormal teacher and student. Trained: tasks are sampled,'
              ' latents inferred by Levenberg-Marquardt, modules follow plain'
              ' gradient descent.'
          ),
          (
              'Directions are the eigenvectors of S, from the largest'
              ' eigenvalue to the smallest. Time is learning rate times steps.'
          ),
      ],
  )
  return figure, simulation.half_times(table).rename(
      columns={'value': 'relative_error'}
  )


def _line(rows: pd.DataFrame, number: int, column: str) -> lines.Line:
  curves = pick.rows(rows, {'quantity': f'direction {number}'})
  dash, dash_name = _COLUMNS[column]
  return lines.Line(
      f'direction {number}',
      _COLOURS[number - 1],
      curves.pivot_table(index='time', columns='seed', values=column),
      dash,
      dash_name,
  )
