"""Figure 3F: OOD accuracy over the student's width and number of modules.

Of several outer learning rates, the one with the lowest validation loss is
shown; the choice does not use OOD tasks.
"""

from collections.abc import Sequence
import math

import pandas as pd

from figures.library import bundles
from figures.library import cells
from figures.library import data
from figures.plotting import heatmaps
from figures.plotting import style

EXPERIMENT = 'fig3f'
TITLE = "Figure 3F: OOD accuracy over the student's size"
SIZE = ('model.hidden_dim', 'model.modules_per_teacher_module')
CELL = ('model.name', *SIZE, 'model.outer.learning_rate')


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of what it shows."""
  found = cells.read(library, EXPERIMENT, CELL)
  figure = heatmaps.draw(
      make_panels(found, 'accuracy', SIZE),
      title=TITLE,
      x_title="student's width",
      y_title="student's modules / teacher's",
      z_title='OOD accuracy',
      caption=found.caption(
          'If trained at several learning rates: that of the lowest validation'
          ' loss.'
      ),
  )
  measures = {
      'test': ('test', 'accuracy'),
      'ood': ('ood', 'accuracy'),
      'valid_loss': ('valid', 'loss'),
  }
  return figure, cells.make_table(found, measures)


def make_panels(
    found: cells.Cells, metric: str, size_columns: tuple[str, str]
) -> dict[str, heatmaps.Grid]:
  """Returns a panel per model: an OOD metric over the student's size."""
  width, modules = size_columns
  return {
      style.MODEL_NAMES[model]: {
          (cell[width], cell[modules]): heatmaps.Cell(
              found.values(cell, metric=metric),
              missing=found.missing(cell),
              note=f'learning rate {cell["model.outer.learning_rate"]:g}',
          )
          for cell in best_rates(found, model, size_columns)
      }
      for model in found.models
  }


def best_rates(
    found: cells.Cells, model: str, size_columns: Sequence[str] = SIZE
) -> list[cells.Cell]:
  """Returns a cell per size: the one with the lowest validation loss.

  Losses are means over the seeds that all of a size's trained cells have; that
  of a seed that diverged is infinite.
  """
  sizes: dict[tuple[float, ...], list[cells.Cell]] = {}
  for cell in found.find(name=model):
    size = tuple(cell[column] for column in size_columns)
    sizes.setdefault(size, []).append(cell)
  return [_best(found.frame, sizes[size]) for size in sorted(sizes)]


def _best(frame: pd.DataFrame, rates: Sequence[cells.Cell]) -> cells.Cell:
  losses = pd.DataFrame(
      {index: _validation_loss(frame, cell) for index, cell in enumerate(rates)}
  ).dropna(axis='columns', how='all')
  if losses.empty:  # Not trained yet.
    return rates[0]
  shared = losses.dropna()
  means = (losses if shared.empty else shared).mean()
  return rates[int(means.index[int(means.argmin())])]


def _validation_loss(frame: pd.DataFrame, cell: cells.Cell) -> pd.Series:
  diverged = data.seeds(frame, {**cell, 'metric': bundles.DIVERGED})
  lost = pd.Series(math.inf, sorted(diverged), float)
  found = data.values(frame, cell, 'valid', metric='loss')
  return pd.concat([found, lost])
