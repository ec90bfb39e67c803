"""What makes few modules slow to learn: OOD accuracy of `fig_a3_students`."""

from collections.abc import Mapping
from typing import Any

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'fig_a3_students'
_MODULES = 'task.num_modules'
FACTOR = 'model.modules_per_teacher_module'
HELD_OUT = 'task.fraction_ood'
CELL = ('model.name', _MODULES, FACTOR, HELD_OUT)
_SPLITS = {'New': 'ood', 'Seen': 'test'}


def _name(cell: Mapping[str, Any]) -> str:
  modules = cell[_MODULES]
  return f'{modules}<br>{modules * cell[FACTOR]}<br>{cell[HELD_OUT]:.0%}'


def _bars(grid: cells.Cells) -> dict[str, list[bars.Bar]]:
  return {
      f'{title}, {style.MODEL_NAMES[model].lower()}': [
          grid.bar(cell, _name(cell), style.COLOURS[model], split=split)
          for cell in grid.find(name=model)
      ]
      for title, split in _SPLITS.items()
      for model in grid.models
  }


FIGURE = described.bar_grid(
    title='Figure A3 with one thing changed: what makes few modules slow?',
    experiment=EXPERIMENT,
    cell=CELL,
    panels=_bars,
    measures={split: (split, 'accuracy') for split in _SPLITS.values()},
    notes=(
        (
            'New and seen: combinations of modules. Below each bar: modules of'
            ' the teacher (M), modules of the student, and the share of'
            ' combinations that is held out. The first bar of each M is as in'
            ' Figure A3.'
        ),
    ),
    y_title='accuracy after the last step',
)
draw = FIGURE.draw
