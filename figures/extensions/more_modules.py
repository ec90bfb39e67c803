"""Accuracy on combinations of more modules than training combined.

Difficulty also depends on the number of modules, so each model is shown beside
a control that was trained on combinations of any size.
"""

from typing import Any

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import style

CELL = ('model.name', 'task.max_active')
# Few modules, as both were trained on; more, held out from the control, too;
# and all, of which there is a single combination.
SPLITS = ('ood_k2', 'ood_k4', 'ood_k8')
_NUMBERS = (1, 2, 4, 8)


def cell(model: str, most: int) -> dict[str, Any]:
  """Returns the cell of a model that was trained on up to `most` modules."""
  return dict(zip(CELL, (model, most)))


def _lines(grid: cells.Cells) -> dict[str, list[lines.Line]]:
  """Returns a panel per hypernetwork, with its control."""
  control = max(grid.axis('max_active'))
  return {
      style.MODEL_NAMES[model]: [
          described.model_line(
              model,
              lines.by_x({k: grid.values(of, f'ood_k{k}') for k in _NUMBERS}),
              'dash' if most == control else 'solid',
              'control' if most == control else f'K = {most}',
          )
          for of in grid.find(name=model)
          for most in (of['task.max_active'],)
      ]
      for model in style.HYPERNETWORKS
  }


FIGURE = described.line_grid(
    title=(
        'Section 4.1: do models solve tasks of more modules than in training?'
    ),
    experiment='more_modules',
    cell=CELL,
    panels=_lines,
    measures={f'ood_k{k}': (f'ood_k{k}', 'accuracy') for k in _NUMBERS},
    notes=(
        (
            'Solid: trained on combinations of up to K modules. Dashed: trained'
            ' on combinations of any size.'
        ),
        (
            'There is a single combination of all modules; controls may be'
            ' trained on it, too.'
        ),
    ),
    ticks=_NUMBERS,
    x_title='modules per task',
    y_title='OOD accuracy',
    x_type='log',
)
