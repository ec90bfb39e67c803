"""Figures 3E, A6 and A7: the grid over modules M and combined modules K.

At 'desktop', the published problem with M = 8, 3E is shown over training.
"""

from collections.abc import Callable, Mapping
import math
from typing import Any

import pandas as pd

from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.paper import decoding_targets
from modular_hyperteacher.figures.paper import fig3b
from modular_hyperteacher.figures.plotting import heatmaps
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'fig3e'
CELL = ('model.name', 'task.num_modules', 'task.max_active')
_DASHES = {1: 'dot', 2: 'dash', 4: 'solid'}  # Of K; dash-dotted for others.


def _size(fields: Mapping[str, Any]) -> tuple[int, int]:
  return fields['task.num_modules'], fields['task.max_active']


def _thinned(grid: cells.Cells) -> list[str]:
  """Returns lines that name the published cells without a run here."""
  published = reference.described_fields(EXPERIMENT, 'paper')
  left_out = []
  for model in grid.models:
    sizes = {_size(f) for f in published if f['model.name'] == model}
    sizes -= {_size(cell) for cell in grid.find(name=model)}
    if sizes:
      pairs = ', '.join(f'{m}/{k}' for m, k in sorted(sizes))
      left_out.append(f'{style.MODEL_NAMES[model]} {pairs}')
  shown = f'Published, but not run at this scale (M/K): {"; ".join(left_out)}.'
  return [shown] if left_out else []


def _undefined(grid: cells.Cells) -> list[str]:
  """Returns lines that name the targets without R2: they do not vary."""
  lacking = []
  for size in sorted({_size(cell) for cell in grid.cells}):
    runs = pick.rows(grid.frame, dict(zip(CELL[1:], size)))
    names = [
        f'{target} ({number})'
        for target, number in decoding_targets.undefined(runs).items()
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
  return reference.published_accuracy(EXPERIMENT, cell, 'ood')


def _fill(
    metric: str, below: Callable[[cells.Cell], Any] = lambda cell: None
) -> Callable[[cells.Cells, list[cells.Cell]], heatmaps.Grid]:
  """Returns what fills a panel with a metric, and numbers below its values."""
  return lambda grid, panel: {
      (cell['task.max_active'], cell['task.num_modules']): heatmaps.Cell(
          grid.values(cell, metric=metric),
          missing=grid.missing(cell),
          below=f'({number[0]:.2f})' if (number := below(cell)) else '',
      )
      for cell in sorted(panel, key=_size)
  }


def _table_3e(grid: cells.Cells) -> pd.DataFrame:
  measures = {name: (name, 'accuracy') for name in ('train', 'test', 'ood')}
  table = cells.make_table(grid, measures)
  table[['published_ood', 'published_ood_dispersion']] = [
      _published(cell) or (math.nan, math.nan) for cell in grid.cells
  ]
  return table


def _table_a7(grid: cells.Cells) -> pd.DataFrame:
  """Returns accuracies at every evaluation."""
  shown = pick.rows(grid.frame, {'metric': 'accuracy'})
  point = [*CELL, 'split', 'step', 'preset']
  table = cells.summarise(shown, point, 'accuracy')
  return table.rename(columns=style.column_name)


def _heatmap(z_title: str, fill: Any, **fields: Any) -> described.Figure:
  return described.heat_grid(
      experiment=EXPERIMENT,
      cell=CELL,
      panels=described.split('{name}', fill),
      x_title='K, combined modules',
      y_title='M, modules',
      z_title=z_title,
      z_range=(0, 1),
      num_columns=2,
      **fields,
  )


FIGURE_3E = _heatmap(
    'OOD accuracy',
    _fill('accuracy', _published),
    title='Figure 3E: must training combine modules?',
    measures=_table_3e,
    notes=(
        'In brackets: published, after 100,000 steps (Tables A2 to A8).',
        _thinned,
    ),
)
FIGURE_A6 = _heatmap(
    'R² (OOD tasks)',
    _fill('r2'),
    title='Figure A6: can modules be decoded where models recompose?',
    measures={'r2': ('ood', 'r2'), 'r2_exact': ('ood', 'r2_exact')},
    notes=('Colours end at 0; R² may be below.', _undefined, _thinned),
)
FIGURE_3E_DESKTOP = described.line_grid(
    "Figure 3E on the paper's own problem: must training combine modules?",
    EXPERIMENT,
    panels=lambda grid: fig3b.over_tasks(
        grid, CELL[-1], lambda k: (_DASHES.get(k, 'dashdot'), f'K = {k}')
    ),
    measures=lambda grid: fig3b.make_curves(grid, *fig3b.CURVES.values()),
    notes=(
        (
            'Tasks combine up to K of eight modules, in training and in the'
            ' test. R²: how well a linear map reads modules off adapted'
            ' parameters of new combinations.'
        ),
    ),
    y_title='OOD accuracy, R²',
    y_range=(-0.3, 1),
    read=data.Library.curves,
    preset=presets.DESKTOP,
    **{**fig3b.OF_CURVES, 'cell': CELL},
)
FIGURE_A7 = described.line_grid(
    title='Figure A7: how does accuracy grow during training?',
    experiment=EXPERIMENT,
    cell=CELL,
    panels=described.split(
        'M = {num_modules}, K = {max_active}',
        described.over('step', {n: style.DASHES[n] for n in ('test', 'ood')}),
    ),
    measures=_table_a7,
    x_title='outer steps',
    y_title='accuracy',
    y_range=(0, 1),
    num_columns=3,
    markers=False,
    read=data.Library.curves,
)
