"""Figure 3F: OOD accuracy over the student's width and number of modules.

Of several outer learning rates, the one with the lowest validation loss is
shown; the choice does not use OOD tasks. Where OOD loss would choose another,
its value stands below: the paper does not say how it chose (D45).
"""

from collections.abc import Sequence
import math

import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import bundles
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import heatmaps
from modular_hyperteacher.figures.plotting import style

SIZE = ('model.hidden_dim', 'model.modules_per_teacher_module')
_RATE = 'model.outer.learning_rate'
CELL = ('model.name', *SIZE, _RATE)


def notes(grid: cells.Cells) -> list[str]:
  """Returns the caption's lines on how the panels' rates were chosen."""
  if len(grid.axis('learning_rate')) < 2:
    return []
  return [
      'Of several learning rates, that of the lowest validation loss; below it,'
      ' the value at the lowest OOD loss, where this is at another rate.'
  ]


def make_panels(
    grid: cells.Cells, metric: str, size_columns: tuple[str, str] = SIZE
) -> dict[str, heatmaps.Grid]:
  """Returns a panel per model: an OOD metric over the student's size."""
  width, modules = size_columns
  return {
      style.MODEL_NAMES[model]: {
          (cell[width], cell[modules]): heatmaps.Cell(
              grid.values(cell, metric=metric),
              missing=grid.missing(cell),
              note=f'learning rate {cell[_RATE]:g}',
              below=_another(grid, cell, other, metric),
          )
          for cell, other in zip(
              best_rates(grid, model, size_columns),
              best_rates(grid, model, size_columns, split='ood'),
          )
      }
      for model in grid.models
  }


def _another(
    grid: cells.Cells, cell: cells.Cell, other: cells.Cell, metric: str
) -> str:
  values = grid.values(other, metric=metric)
  if other == cell or values.empty:
    return ''
  return f'{values.mean():.2f} at {other[_RATE]:g}'


def best_rates(
    grid: cells.Cells,
    model: str,
    size_columns: Sequence[str] = SIZE,
    split: str = 'valid',
) -> list[cells.Cell]:
  """Returns a cell per size: the one with the lowest loss on a split.

  Losses are means over the seeds that all of a size's trained cells have; that
  of a seed that diverged is infinite.
  """
  sizes: dict[tuple[float, ...], list[cells.Cell]] = {}
  for cell in grid.find(name=model):
    size = tuple(cell[column] for column in size_columns)
    sizes.setdefault(size, []).append(cell)
  return [_best(grid.frame, sizes[size], split) for size in sorted(sizes)]


def _best(
    frame: pd.DataFrame, rates: Sequence[cells.Cell], split: str
) -> cells.Cell:
  losses = pd.DataFrame(
      {index: _losses(frame, cell, split) for index, cell in enumerate(rates)}
  ).dropna(axis='columns', how='all')
  if losses.empty:  # Not trained yet.
    return rates[0]
  shared = losses.dropna()
  means = (losses if shared.empty else shared).mean()
  return rates[int(means.index[int(means.argmin())])]


def _losses(frame: pd.DataFrame, cell: cells.Cell, split: str) -> pd.Series:
  diverged = pick.seeds(frame, {**cell, 'metric': bundles.DIVERGED})
  lost = pd.Series(math.inf, sorted(diverged), float)
  losses = pick.values(frame, cell, split, metric='loss')
  return pd.concat([losses, lost])


FIGURE = described.heat_grid(
    title='Figure 3F: how large should a student be?',
    experiment='fig3f',
    cell=CELL,
    panels=lambda grid: make_panels(grid, 'accuracy'),
    measures={
        'test': ('test', 'accuracy'),
        'ood': ('ood', 'accuracy'),
        'valid_loss': ('valid', 'loss'),
    },
    notes=(notes,),
    x_title="student's width",
    y_title="student's modules / teacher's",
    z_title='OOD accuracy',
)
draw = FIGURE.draw
