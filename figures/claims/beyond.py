"""Our own claims, beyond the paper: sample complexity.

We fixed them before their runs were complete.
"""

import dataclasses
import functools
import math

import numpy as np
import pandas as pd

from modular_hyperteacher.figures.claims import appendix
from modular_hyperteacher.figures.extensions import sample_complexity
from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import fig_a3
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.tasks.supports import combinations


def _slower_than_combinations(curves: pd.DataFrame) -> comparisons.Comparisons:
  """Exponent of M in the combinations minus that in the training tasks."""
  for model, max_active, level, rows in appendix.scaling_levels(curves):
    sizes = sorted(set(rows['M']))
    samples = []
    for size in sizes:
      tasks = appendix.tasks_to_level(
          curves, rows, (model, max_active, size), level
      )
      num_hidden = tasks.runs['task.teacher_num_hidden'].iloc[0]
      per_layer = math.log2(combinations.num_masks(size, max_active))
      saved = max(num_hidden - 1, 1) * per_layer - tasks.values
      samples.append(dataclasses.replace(tasks, values=saved))
    name = f'difference of exponents, {style.MODEL_NAMES[model]}'
    name = f'{name}, K = {max_active}'
    yield comparisons.slope(name, samples, np.log2(sizes)) > 0


def _more_shots_on_fewer_tasks(frame: pd.DataFrame) -> comparisons.Comparisons:
  """Compares twice the shots on half the tasks with the original budget."""
  curves = sample_complexity.accuracies(frame)
  for model in style.HYPERNETWORKS:
    runs = pick.rows(curves, {'model.name': model})
    shots = sorted(set(runs['task.num_support']))
    after = functools.partial(_after, frame, curves, model)
    budget = runs['tasks'].max()
    gains = [
        after(2 * few, budget // 2) - after(few, budget)
        for few in shots
        if 2 * few in shots
    ]
    if gains and (runs['tasks'] * 2 == budget).any():
      name = f'twice the shots on half the tasks, {style.MODEL_NAMES[model]}'
      yield comparisons.mean(name, gains) > 0


def _after(
    frame: pd.DataFrame,
    curves: pd.DataFrame,
    model: str,
    num_support: int,
    tasks: int,
) -> comparisons.Sample:
  cell: cells.Cell = dict(zip(sample_complexity.CELL, (model, num_support)))
  name = f'{style.cell_name(cell)}, after {tasks} tasks'
  accuracy = sample_complexity.at(curves, cell, tasks).dropna()
  metric = 'accuracy after some tasks'
  return comparisons.of_curves(frame, cell, name, accuracy, metric=metric)


_claim = functools.partial(
    verdicts.of_hypernetworks,
    artefact='beyond the paper',
    read=data.Library.curves,
)
CLAIMS = (
    _claim(
        'SC-1',
        'Ours: with more modules, the number of training tasks that both'
        ' hypernetworks need for a given OOD accuracy grows more slowly'
        ' than the number of module combinations.',
        'scaling_law',
        _slower_than_combinations,
        experiment='fig_a3',
        cell=fig_a3.CELL,
    ),
    _claim(
        'SC-2',
        'Ours: with a fixed total of support examples in training, both'
        ' hypernetworks reach a higher OOD accuracy with twice the shots (also'
        ' at test) on half as many tasks, averaged over all doublings.',
        'sample_complexity',
        _more_shots_on_fewer_tasks,
        cell=sample_complexity.CELL,
    ),
)
