"""Figures 3F, A8 and A10: OOD metrics over the student's width and modules.

Of several outer learning rates, the one with the lowest validation loss is
shown; the choice does not use OOD tasks. Where OOD loss would choose another,
its value stands below: the paper does not say how it chose (D45).
"""

import math
from typing import Any

import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import bundles
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import gridworld_bars
from modular_hyperteacher.figures.plotting import heatmaps
from modular_hyperteacher.figures.plotting import style

_NAME, _RATE = 'model.name', 'model.outer.learning_rate'
# The columns between are the student's size.
CELL = (_NAME, 'model.hidden_dim', 'model.modules_per_teacher_module', _RATE)
CELL_GRIDWORLDS = (_NAME, 'model.hidden_dim', 'model.num_modules', _RATE)


def _note(grid: cells.Cells) -> list[str]:
  """Returns the caption's line on how the panels' rates were chosen."""
  if len(grid.axis('learning_rate')) < 2:
    return []
  return [
      'Of several learning rates, that of the lowest validation loss; below it,'
      ' the value at the lowest OOD loss, where this is at another rate.'
  ]


def size(cell: cells.Cell) -> tuple[int, int]:
  """Returns the width and the modules of a cell's student."""
  width, modules = (v for k, v in cell.items() if k not in (_NAME, _RATE))
  return width, modules


def _panel(
    grid: cells.Cells, model: str, metric: str
) -> dict[heatmaps.Point, heatmaps.Cell]:
  panel = {}
  by_ood = best_rates(grid, model, 'ood')
  for cell, other in zip(best_rates(grid, model), by_ood):
    another = grid.values(other, metric=metric)
    below = ''
    if other != cell and len(another):
      below = f'{another.mean():.2f} at {other[_RATE]:g}'
    panel[size(cell)] = heatmaps.Cell(
        grid.values(cell, metric=metric),
        grid.missing(cell),
        f'learning rate {cell[_RATE]:g}',
        below,
    )
  return panel


def best_rates(
    grid: cells.Cells, model: str, split: str = 'valid'
) -> list[cells.Cell]:
  """Returns a cell per size: the one with the lowest loss on a split.

  Losses are means over the seeds that all of a size's trained cells have; that
  of a seed that diverged is infinite.
  """
  by_size: dict[tuple[int, int], list[cells.Cell]] = {}
  for cell in grid.find(name=model):
    by_size.setdefault(size(cell), []).append(cell)
  return [_best(grid.frame, by_size[key], split) for key in sorted(by_size)]


def _best(
    frame: pd.DataFrame, rates: list[cells.Cell], split: str
) -> cells.Cell:
  losses = pd.DataFrame(
      {index: _losses(frame, cell, split) for index, cell in enumerate(rates)}
  ).dropna(axis='columns', how='all')
  if losses.empty:  # Not trained yet.
    return rates[0]
  shared = losses.dropna()
  means: Any = (losses if shared.empty else shared).mean()
  return rates[means.idxmin()]


def _losses(frame: pd.DataFrame, cell: cells.Cell, split: str) -> pd.Series:
  diverged = pick.seeds(frame, {**cell, 'metric': bundles.DIVERGED})
  lost = pd.Series(math.inf, sorted(diverged), float)
  return pd.concat([pick.values(frame, cell, split, metric='loss'), lost])


def _describe(metric: str, *notes: Any, **fields: Any) -> described.Figure:
  return described.heat_grid(
      panels=lambda grid: {
          style.MODEL_NAMES[model]: _panel(grid, model, metric)
          for model in grid.models
      },
      notes=(*notes, _note),
      x_title="student's width",
      **fields,
  )


_ACCURACY = {
    'test': ('test', 'accuracy'),
    'ood': ('ood', 'accuracy'),
    'valid_loss': ('valid', 'loss'),
}
FIG_3F = _describe(
    'accuracy',
    title='Figure 3F: how large should a student be?',
    experiment='fig3f',
    cell=CELL,
    measures=_ACCURACY,
    y_title="student's modules / teacher's",
    z_title='OOD accuracy',
)
FIG_A8 = _describe(
    'loss',
    gridworld_bars.LOSS_NOTE,
    title='Figure A8: do larger students lose more on new preferences?',
    experiment='fig_a8',
    cell=CELL_GRIDWORLDS,
    measures={name: (name, 'loss') for name in ('test', 'ood', 'valid')},
    y_title="student's modules",
    z_title='OOD loss (lower is better)',
    higher_is_better=False,
)
FIG_A10 = _describe(
    'accuracy',
    title='Figure A10: are larger students less accurate on new goals?',
    experiment='fig_a10',
    cell=CELL_GRIDWORLDS,
    measures=_ACCURACY,
    y_title="student's modules",
    z_title='OOD accuracy',
)
