"""Figures A4 and A5: OOD accuracy over shots, and over the held-out share."""

from collections.abc import Sequence

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import style

TITLE_A4 = 'Figure A4: OOD accuracy over examples per task'
TITLE_A5 = 'Figure A5: accuracy over the share of combinations held out'
CELL_A4 = (
    'model.name',
    'task.num_modules',
    'task.max_active',
    'task.num_support',
)
CELL_A5 = ('model.name', 'task.num_modules', 'task.fraction_ood')


def draw_a4(library: data.Library) -> cells.Drawn:
  """Returns Figure A4 and the table of what it shows."""
  found = cells.read(library, 'fig_a4', CELL_A4)
  panels = {
      f'M = {num_modules}, K = {max_active}': [
          _line(found, line_cells, 'num_support')
          for model in found.models
          if (
              line_cells := found.find(
                  name=model, num_modules=num_modules, max_active=max_active
              )
          )
      ]
      for num_modules in found.axis('num_modules')
      for max_active in found.axis('max_active')
  }
  figure = lines.draw(
      panels,
      title=TITLE_A4,
      x_title='examples to adapt on, per task',
      y_title='OOD accuracy',
      x_type='log',
      caption=found.caption(),
  )
  ticks = found.axis('num_support')
  figure.update_xaxes(tickvals=ticks, ticktext=[str(tick) for tick in ticks])
  return figure, cells.make_table(found, _MEASURES)


def draw_a5(library: data.Library) -> cells.Drawn:
  """Returns Figure A5 and the table of what it shows."""
  found = cells.read(library, 'fig_a5', CELL_A5)
  panels = {
      f'M = {num_modules}': [
          _line(
              found,
              line_cells,
              'fraction_ood',
              split,
              # The long dashes of other figures look too much like OOD's.
              dash=dash,
              dash_name=style.SPLIT_NAMES[split],
          )
          for model in found.models
          if (line_cells := found.find(name=model, num_modules=num_modules))
          for split, dash in (('train', 'solid'), ('ood', 'dash'))
      ]
      for num_modules in found.axis('num_modules')
  }
  figure = lines.draw(
      panels,
      title=TITLE_A5,
      x_title='share of combinations held out',
      y_title='accuracy',
      caption=found.caption(),
  )
  return figure, cells.make_table(found, _MEASURES)


_MEASURES = {name: (name, 'accuracy') for name in ('train', 'test', 'ood')}


def _line(
    found: cells.Cells,
    line_cells: Sequence[cells.Cell],
    x_name: str,
    split: str = 'ood',
    dash: str = 'solid',
    dash_name: str = '',
) -> lines.Line:
  """Returns the line of one model's cells, over the field `task.{x_name}`."""
  column = f'task.{x_name}'
  seeds = {
      cell[column]: found.values(cell, split)
      for cell in sorted(line_cells, key=lambda cell: cell[column])
  }
  model = line_cells[0]['model.name']
  return lines.Line(
      name=style.MODEL_NAMES[model],
      colour=style.COLOURS[model],
      seeds=lines.by_x(seeds),
      dash=dash,
      dash_name=dash_name,
  )
