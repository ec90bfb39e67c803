"""Figures 3E, A6 and A7: the grid over modules M and combined modules K."""

from collections.abc import Callable, Iterator
import math
from typing import Any

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.paper import decoding_targets
from modular_hyperteacher.figures.plotting import heatmaps
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'fig3e'
TITLE_3E = 'Figure 3E: OOD accuracy over modules and combined modules'
TITLE_A6 = 'Figure A6: decoding modules, over modules and combined modules'
TITLE_A7 = 'Figure A7: accuracy while training'
CELL = ('model.name', 'task.num_modules', 'task.max_active')


def draw_3e(library: data.Library) -> cells.Drawn:
  """Returns Figure 3E and the table of what it shows."""
  found = cells.read(library, EXPERIMENT, CELL)
  figure = heatmaps.draw(
      _panels(found, 'accuracy', _published),
      title=TITLE_3E,
      x_title='K, combined modules',
      y_title='M, modules',
      z_title='OOD accuracy',
      z_range=(0, 1),
      caption=found.caption(
          'In brackets: published, after 100,000 steps (Tables A2 to A8).',
          *_thinned(found),
      ),
      num_columns=2,
  )
  measures = {name: (name, 'accuracy') for name in ('train', 'test', 'ood')}
  table = cells.make_table(found, measures)
  numbers = [_published(cell) or (math.nan, math.nan) for cell in found.cells]
  table['published_ood'] = [mean for mean, _ in numbers]
  table['published_ood_dispersion'] = [spread for _, spread in numbers]
  return figure, table


def draw_a6(library: data.Library) -> cells.Drawn:
  """Returns Figure A6 and the table of what it shows."""
  found = cells.read(library, EXPERIMENT, CELL)
  figure = heatmaps.draw(
      _panels(found, 'r2'),
      title=TITLE_A6,
      x_title='K, combined modules',
      y_title='M, modules',
      z_title='R² (OOD tasks)',
      z_range=(0, 1),
      caption=found.caption(
          'Colours end at 0; R² may be below.',
          *_undefined(found),
          *_thinned(found),
      ),
      num_columns=2,
  )
  measures = {'r2': ('ood', 'r2'), 'r2_exact': ('ood', 'r2_exact')}
  return figure, cells.make_table(found, measures)


def draw_a7(library: data.Library) -> cells.Drawn:
  """Returns Figure A7 and the table of what it shows."""
  found = cells.select(EXPERIMENT, library.curves(EXPERIMENT), CELL)
  panels = {
      f'M = {num_modules}, K = {max_active}': [
          line
          for model in found.models
          for line in _curves(
              found, dict(zip(CELL, (model, num_modules, max_active)))
          )
      ]
      for num_modules, max_active in _sizes(found)
  }
  figure = lines.draw(
      panels,
      title=TITLE_A7,
      x_title='outer steps',
      y_title='accuracy',
      y_range=(0, 1),
      caption=found.caption(),
      num_columns=3,
      markers=False,
  )
  shown = pick.rows(found.frame, {'metric': 'accuracy'})
  point = [*CELL, 'split', 'step', 'preset']
  table = shown.groupby(point, dropna=False, observed=True)['value']
  table = table.agg(['mean', 'sem', 'count']).reset_index()
  names = {'mean': 'accuracy_mean', 'sem': 'accuracy_se', 'count': 'num_seeds'}
  table = table.rename(columns=names)
  return figure, table.rename(columns=style.column_name)


def _thinned(found: cells.Cells) -> list[str]:
  """Returns lines that name the published cells without a run here."""
  left_out = []
  for model in found.models:
    published = {
        _size(fields)
        for fields in reference.described_fields(EXPERIMENT, 'paper')
        if fields['model.name'] == model
    }
    sizes = sorted(published - {_size(cell) for cell in found.find(name=model)})
    if sizes:
      pairs = ', '.join(f'{size[0]}/{size[1]}' for size in sizes)
      left_out.append(f'{style.MODEL_NAMES[model]} {pairs}')
  if not left_out:
    return []
  return [f'Published, but not run at this scale (M/K): {"; ".join(left_out)}.']


def _undefined(found: cells.Cells) -> list[str]:
  """Returns lines that name the targets without R2: they do not vary."""
  lacking = []
  for size in _sizes(found):
    runs = pick.rows(found.frame, dict(zip(CELL[1:], size)))
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
    found: cells.Cells,
    metric: str,
    published: Callable[[cells.Cell], Any] = lambda cell: None,
) -> dict[str, heatmaps.Grid]:
  """Returns a panel per model; published values stand below ours."""
  return {
      style.MODEL_NAMES[model]: {
          (cell['task.max_active'], cell['task.num_modules']): heatmaps.Cell(
              found.values(cell, metric=metric),
              missing=found.missing(cell),
              below=f'({number[0]:.2f})' if number else '',
          )
          for cell in sorted(found.find(name=model), key=_size)
          for number in [published(cell)]
      }
      for model in found.models
  }


def _size(cell: cells.Cell) -> tuple[int, int]:
  return cell['task.num_modules'], cell['task.max_active']


def _sizes(found: cells.Cells) -> list[tuple[int, int]]:
  return sorted({_size(cell) for cell in found.cells})


def _curves(found: cells.Cells, cell: cells.Cell) -> Iterator[lines.Line]:
  for split in ('test', 'ood'):
    yield lines.Line(
        name=style.MODEL_NAMES[cell['model.name']],
        colour=style.COLOURS[cell['model.name']],
        dash=style.DASHES[split],
        dash_name=style.SPLIT_NAMES[split],
        seeds=found.over_training(cell, split),
    )
