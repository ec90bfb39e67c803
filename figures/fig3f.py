"""Figure 3F: OOD accuracy over the student's width and number of modules.

Where a cell was trained with several outer learning rates, the one with the
lowest validation loss is shown: OOD tasks are not looked at to choose.
"""

import math
from typing import Sequence

import pandas as pd
import plotly.graph_objects as go

from figures import cells
from figures import data
from figures import heatmaps
from figures import style

EXPERIMENT = 'fig3f'
TITLE = "Figure 3F: OOD accuracy over the student's size"
SIZE = ('model.hidden_dim', 'model.modules_per_teacher_module')
CELL = ('model.name', *SIZE, 'model.outer.learning_rate')


def draw(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the figure and the table of what it shows."""
  found = cells.read(library, EXPERIMENT, CELL)
  panels = {
      style.MODEL_NAMES[model]: {
          tuple(_axes(cell)): heatmaps.Cell(
              data.values(found.frame, cell, 'ood'),
              missing=found.missing(cell),
              note=f'learning rate {cell["model.outer.learning_rate"]:g}',
          )
          for cell in best_rates(found, model)
      }
      for model in style.HYPERNETWORKS
  }
  figure = heatmaps.draw(
      panels,
      title=TITLE,
      x_title="student's width",
      y_title="student's modules / teacher's",
      z_title='OOD accuracy',
      caption=found.caption
      + ['If trained at several learning rates: that of the lowest validation'
         ' loss.'],
  )
  measures = {
      'test': ('test', 'accuracy'),
      'ood': ('ood', 'accuracy'),
      'valid_loss': ('valid', 'loss'),
  }
  return figure, cells.make_table(found, measures)


def best_rates(
    found: cells.Cells, model: str, size_columns: Sequence[str] = SIZE
) -> list[cells.Cell]:
  """Returns a cell per size: the one with the lowest validation loss."""
  best = {}
  for cell in found.find(name=model):
    loss = validation_loss(found, cell)
    size = tuple(cell[column] for column in size_columns)
    if size not in best or loss < best[size][0]:
      best[size] = loss, cell
  return [best[size][1] for size in sorted(best)]


def validation_loss(found: cells.Cells, cell: cells.Cell) -> float:
  """Returns the mean over seeds at the last step; infinite without a run."""
  loss = data.values(found.frame, cell, 'valid', metric='loss').mean()
  return math.inf if math.isnan(loss) else float(loss)


def _axes(cell):
  return [cell[column] for column in SIZE]
