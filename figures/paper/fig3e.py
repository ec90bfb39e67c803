"""Figures 3E, A6 and A7: the grid over modules M and combined modules K."""

from collections.abc import Callable
import math
from typing import Any

import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.paper import decoding_targets
from modular_hyperteacher.figures.plotting import heatmaps
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'fig3e'
CELL = ('model.name', 'task.num_modules', 'task.max_active')


def _thinned(grid: cells.Cells) -> list[str]:
  """Returns lines that name the published cells without a run here."""
  left_out = []
  for model in grid.models:
    published = {
        _size(fields)
        for fields in reference.described_fields(EXPERIMENT, 'paper')
        if fields['model.name'] == model
    }
    sizes = sorted(published - {_size(cell) for cell in grid.find(name=model)})
    if sizes:
      pairs = ', '.join(f'{size[0]}/{size[1]}' for size in sizes)
      left_out.append(f'{style.MODEL_NAMES[model]} {pairs}')
  if not left_out:
    return []
  return [f'Published, but not run at this scale (M/K): {"; ".join(left_out)}.']


def _undefined(grid: cells.Cells) -> list[str]:
  """Returns lines that name the targets without R2: they do not vary."""
  lacking = []
  for size in _sizes(grid):
    runs = pick.rows(grid.frame, dict(zip(CELL[1:], size)))
    names = [
        f'{decoding_targets.name(metric)} ({number})'
        for metric, number in decoding_targets.undefined(runs).items()
    ]
    if names:
      lacking.append(f'{size[0]}/{size[1]} {", ".join(names)}')
  if not lacking:
    return []
  return [
      'Left out, because they do not vary over OOD tasks (after M/K; in'
      f' brackets, in how many seeds): {"; ".join(lacking)}.'
  ]


def _published(cell: cells.Cell) -> tuple[float, float] | None:
  """Returns the published OOD accuracy of a cell, with its dispersion."""
  return reference.published_accuracy(EXPERIMENT, cell, 'ood')


def _panels(
    grid: cells.Cells,
    metric: str,
    published: Callable[[cells.Cell], Any] = lambda cell: None,
) -> dict[str, heatmaps.Grid]:
  """Returns a panel per model; published values stand below ours."""
  return {
      style.MODEL_NAMES[model]: {
          (cell['task.max_active'], cell['task.num_modules']): heatmaps.Cell(
              grid.values(cell, metric=metric),
              missing=grid.missing(cell),
              below=f'({number[0]:.2f})' if number else '',
          )
          for cell in sorted(grid.find(name=model), key=_size)
          for number in [published(cell)]
      }
      for model in grid.models
  }


def _size(cell: cells.Cell) -> tuple[int, int]:
  return cell['task.num_modules'], cell['task.max_active']


def _sizes(grid: cells.Cells) -> list[tuple[int, int]]:
  return sorted({_size(cell) for cell in grid.cells})


def _curves(grid: cells.Cells) -> dict[str, list[lines.Line]]:
  """Returns a panel per size, with both splits of every model."""
  return {
      f'M = {size[0]}, K = {size[1]}': [
          described.model_line(
              model,
              grid.over_training(dict(zip(CELL, (model, *size))), split),
              style.DASHES[split],
              style.SPLIT_NAMES[split],
          )
          for model in grid.models
          for split in ('test', 'ood')
      ]
      for size in _sizes(grid)
  }


def _table_3e(grid: cells.Cells) -> pd.DataFrame:
  table = cells.make_table(
      grid, {name: (name, 'accuracy') for name in ('train', 'test', 'ood')}
  )
  numbers = [_published(cell) or (math.nan, math.nan) for cell in grid.cells]
  table['published_ood'] = [mean for mean, _ in numbers]
  table['published_ood_dispersion'] = [spread for _, spread in numbers]
  return table


def _table_a7(grid: cells.Cells) -> pd.DataFrame:
  """Returns accuracies at every evaluation."""
  shown = pick.rows(grid.frame, {'metric': 'accuracy'})
  point = [*CELL, 'split', 'step', 'preset']
  table = shown.groupby(point, dropna=False, observed=True)['value']
  table = table.agg(['mean', 'sem', 'count']).reset_index()
  names = {'mean': 'accuracy_mean', 'sem': 'accuracy_se', 'count': 'num_seeds'}
  table = table.rename(columns=names)
  return table.rename(columns=style.column_name)


def _heatmap(z_title: str, **fields: Any) -> described.Figure:
  return described.heat_grid(
      experiment=EXPERIMENT,
      cell=CELL,
      x_title='K, combined modules',
      y_title='M, modules',
      z_title=z_title,
      z_range=(0, 1),
      num_columns=2,
      **fields,
  )


FIGURE_3E = _heatmap(
    'OOD accuracy',
    title='Figure 3E: must training combine modules?',
    panels=lambda grid: _panels(grid, 'accuracy', _published),
    measures=_table_3e,
    notes=(
        'In brackets: published, after 100,000 steps (Tables A2 to A8).',
        _thinned,
    ),
)
FIGURE_A6 = _heatmap(
    'R² (OOD tasks)',
    title='Figure A6: can modules be decoded where models recompose?',
    panels=lambda grid: _panels(grid, 'r2'),
    measures={'r2': ('ood', 'r2'), 'r2_exact': ('ood', 'r2_exact')},
    notes=('Colours end at 0; R² may be below.', _undefined, _thinned),
)
FIGURE_A7 = described.line_grid(
    title='Figure A7: how does accuracy grow during training?',
    experiment=EXPERIMENT,
    cell=CELL,
    panels=_curves,
    measures=_table_a7,
    x_title='outer steps',
    y_title='accuracy',
    y_range=(0, 1),
    num_columns=3,
    markers=False,
    read=data.Library.curves,
)
