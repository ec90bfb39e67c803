"""In-context learners with other sequence lengths, and other widths.

R^2 on pairs of modules that training never shows; beside each bar stands that
on seen ones.
"""

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import style

CELL = ('model.name', 'task.num_support', 'model.body.embedding_dim')
_METRIC = 'prediction_r2'


def _bars(grid: cells.Cells, panel: list[cells.Cell]) -> list[bars.Bar]:
  return [
      grid.bar(
          cell,
          f'{num_support + 1} tokens,<br>width {width}',
          style.COLOURS[model],
          _METRIC,
          beside=grid.seen(cell, _METRIC),
      )
      for cell in panel
      for model, num_support, width in [cell.values()]
  ]


FIGURE = described.bar_grid(
    title='In context: do sequence length and width matter?',
    experiment='in_context_sizes',
    cell=CELL,
    panels=described.split('{name}', _bars),
    measures={split: (split, _METRIC) for split in ('test', 'ood')},
    y_title='R² on new pairs',
    y_range=(0, 1),
    beside_name='seen pairs, whisker: standard error',
)
