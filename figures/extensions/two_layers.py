"""Figure 3D for teachers with two generated layers: OOD accuracy and R2."""

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'two_layers'
TITLE = 'Figure 3D with two generated layers: connected support or not'
CELL = ('model.name', 'task.num_modules', 'task.task_support')
_MEASURES = {
    'ood_accuracy': ('ood', 'accuracy'),
    'r2': ('ood', 'r2'),
    'test_accuracy': ('test', 'accuracy'),
}


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of what it shows."""
  found = cells.read(library, EXPERIMENT, CELL)
  panels = {
      f'{style.MODEL_NAMES[model]}, M = {num_modules}': [
          found.bar(cell, _name(cell), style.COLOURS[model])
          for cell in found.find(name=model, num_modules=num_modules)
      ]
      for model in found.models
      for num_modules in found.axis('num_modules')
  }
  figure = bars.draw(
      panels, title=TITLE, y_title='OOD accuracy', caption=found.caption()
  )
  return figure, cells.make_table(found, _MEASURES)


def _name(cell: cells.Cell) -> str:
  return style.SUPPORT_NAMES[cell['task.task_support']].replace(' support', '')
