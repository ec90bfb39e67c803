"""What makes few modules slow to learn: OOD accuracy of `fig_a3_students`."""

from collections.abc import Mapping
from typing import Any

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'fig_a3_students'
TITLE = 'Figure A3 with one thing changed: what makes few modules slow?'
_MODULES = 'task.num_modules'
FACTOR = 'model.modules_per_teacher_module'
HELD_OUT = 'task.fraction_ood'
CELL = ('model.name', _MODULES, FACTOR, HELD_OUT)
_SPLITS = {'New': 'ood', 'Seen': 'test'}


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of what it shows."""
  found = cells.read(library, EXPERIMENT, CELL)
  panels = {
      f'{title}, {style.MODEL_NAMES[model].lower()}': [
          found.bar(cell, _name(cell), style.COLOURS[model], split=split)
          for cell in found.find(name=model)
      ]
      for title, split in _SPLITS.items()
      for model in found.models
  }
  figure = bars.draw(
      panels,
      title=TITLE,
      y_title='accuracy after the last step',
      caption=found.caption(
          'New and seen: combinations of modules. Below each bar: modules'
          ' of the teacher (M), modules of the student, and the share of'
          ' combinations that is held out. The first bar of each M is as in'
          ' Figure A3.',
      ),
  )
  measures = {split: (split, 'accuracy') for split in _SPLITS.values()}
  return figure, cells.make_table(found, measures)


def _name(cell: Mapping[str, Any]) -> str:
  modules = cell[_MODULES]
  return f'{modules}<br>{modules * cell[FACTOR]}<br>{cell[HELD_OUT]:.0%}'
