"""Figure 3D for teachers with two generated layers: OOD accuracy and R2."""

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import style


def _bar(found: cells.Cells, cell: cells.Cell) -> bars.Bar:
  name = style.SUPPORT_NAMES[cell['task.task_support']]
  colour = style.COLOURS[cell['model.name']]
  return found.bar(cell, name.replace(' support', ''), colour)


FIGURE = described.Grid(
    title='Figure 3D with two generated layers: connected support or not',
    experiment='two_layers',
    cell=('model.name', 'task.num_modules', 'task.task_support'),
    plot=bars.draw,
    panels='{name}, M = {num_modules}',
    fill=described.each(_bar),
    measures={
        'ood_accuracy': ('ood', 'accuracy'),
        'r2': ('ood', 'r2'),
        'test_accuracy': ('test', 'accuracy'),
    },
    options={'y_title': 'OOD accuracy'},
)
