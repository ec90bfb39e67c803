"""What makes few modules slow to learn: OOD accuracy of `fig_a3_students`."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from figures.library import cells
from figures.library import data
from figures.plotting import bars
from figures.plotting import style

EXPERIMENT = 'fig_a3_students'
TITLE = 'Figure A3 with one thing changed: what makes few modules slow?'
_MODULES = 'task.num_modules'
_FACTOR = 'model.modules_per_teacher_module'
_HELD_OUT = 'task.fraction_ood'
CELL = ('model.name', _MODULES, _FACTOR, _HELD_OUT)
_SPLITS = {'New combinations': 'ood', 'Seen combinations': 'test'}


def draw(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the figure and the table of what it shows."""
  found = cells.read(library, EXPERIMENT, CELL)
  panels = {
      f'{title}:<br>{style.MODEL_NAMES[model].lower()}': [
          bars.Bar(
              label=_name(cell),
              colour=style.COLOURS[model],
              seeds=data.values(found.frame, cell, split),
              missing=found.missing(cell),
          )
          for cell in found.find(name=model)
      ]
      for title, split in _SPLITS.items()
      for model in found.models
  }
  figure = bars.draw(
      panels,
      title=TITLE,
      y_title='accuracy after the last step',
      caption=[
          *found.caption,
          (
              'M: the modules of the teacher. In Figure A3, students have four'
              ' for each of these, and a quarter of the combinations is held'
              ' out.'
          ),
      ],
  )
  measures = {split: (split, 'accuracy') for split in _SPLITS.values()}
  return figure, cells.make_table(found, measures)


def _name(cell: Mapping[str, Any]) -> str:
  students = cell[_MODULES] * cell[_FACTOR]
  name = f'M = {cell[_MODULES]}<br>{students} of student'
  held_out = cell[_HELD_OUT]
  return name if held_out == 0.25 else f'{name}<br>{held_out:.0%} held out'
