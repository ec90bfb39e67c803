"""Figure 3D for teachers with two generated layers: OOD accuracy and R2."""

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import style


def _bars(grid: cells.Cells, panel: list[cells.Cell]) -> list[bars.Bar]:
  names = {
      k: v.removesuffix(' support') for k, v in style.SUPPORT_NAMES.items()
  }
  return [
      grid.bar(c, names[c['task.task_support']], style.COLOURS[c['model.name']])
      for c in panel
  ]


FIGURE = described.bar_grid(
    title='Figure 3D with two generated layers: does it hold?',
    experiment='two_layers',
    cell=('model.name', 'task.num_modules', 'task.task_support'),
    panels=described.split('{name}, M = {num_modules}', _bars),
    measures={
        'ood_accuracy': ('ood', 'accuracy'),
        'r2': ('ood', 'r2'),
        'test_accuracy': ('test', 'accuracy'),
    },
    y_title='OOD accuracy',
)
