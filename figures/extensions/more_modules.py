"""Accuracy on combinations of more modules than training combined.

Difficulty also depends on the number of modules, so each model is shown beside
a control that was trained on combinations of any size.
"""

from typing import Any

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'more_modules'
TITLE = 'More modules than in training, and a control trained on as many'
CELL = ('model.name', 'task.max_active')
# Few modules, as both were trained on; more, held out from the control, too;
# and all, of which there is a single combination.
SPLITS = ('ood_k2', 'ood_k4', 'ood_k8')
_NUMBERS = (1, 2, 4, 8)


def cell(model: str, most: int) -> dict[str, Any]:
  """Returns the cell of a model that was trained on up to `most` modules."""
  return dict(zip(CELL, (model, most)))


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of what it shows."""
  found = cells.read(library, EXPERIMENT, CELL)
  control = max(found.axis('max_active'))
  panels = {
      style.MODEL_NAMES[model]: [
          lines.Line(
              name=style.MODEL_NAMES[model],
              colour=style.COLOURS[model],
              seeds=lines.by_x(
                  {k: found.values(model_cell, f'ood_k{k}') for k in _NUMBERS}
              ),
              dash='dash' if most == control else 'solid',
              dash_name='control' if most == control else f'K = {most}',
          )
          for model_cell in found.find(name=model)
          for most in (model_cell['task.max_active'],)
      ]
      for model in style.HYPERNETWORKS
  }
  figure = lines.draw(
      panels,
      title=TITLE,
      x_title='modules per task',
      y_title='OOD accuracy',
      x_type='log',
      caption=found.caption(
          'Solid: trained on combinations of up to K modules. Dashed:'
          ' trained on combinations of any size.',
          'There is a single combination of all modules; controls may be'
          ' trained on it, too.',
      ),
  )
  figure.update_xaxes(tickvals=_NUMBERS, ticktext=list(map(str, _NUMBERS)))
  measures = {f'ood_k{k}': (f'ood_k{k}', 'accuracy') for k in _NUMBERS}
  return figure, cells.make_table(found, measures)
