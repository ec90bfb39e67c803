"""In-context learners with other sequence lengths, and other widths.

R^2 on pairs of modules that training never shows; beside each bar stands that
on seen ones.
"""

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'in_context_sizes'
TITLE = 'In context: sequence length and width'
CELL = ('model.name', 'task.num_support', 'model.body.embedding_dim')
_METRIC = 'prediction_r2'
_MEASURES = {'test': ('test', _METRIC), 'ood': ('ood', _METRIC)}


def draw(library: data.Library) -> cells.Drawn:
  """Returns a panel of bars per model, and the table of what they show."""
  found = cells.read(library, EXPERIMENT, CELL)
  panels = {
      style.MODEL_NAMES[model]: [
          _bar(found, cell) for cell in found.find(name=model)
      ]
      for model in found.models
  }
  figure = bars.draw(
      panels,
      title=TITLE,
      y_title='R² on new pairs',
      y_range=(0, 1),
      caption=found.caption(),
      beside_name='seen pairs, whisker: standard error',
  )
  return figure, cells.make_table(found, _MEASURES)


def _bar(found: cells.Cells, cell: cells.Cell) -> bars.Bar:
  model, num_support, width = (cell[column] for column in CELL)
  label = f'{num_support + 1} tokens,<br>width {width}'
  seen = found.seen(cell, _METRIC)
  return found.bar(cell, label, style.COLOURS[model], _METRIC, beside=seen)
