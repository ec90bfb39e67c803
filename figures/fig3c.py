"""Figures 3C and 3D: can the modules of a task be decoded?

R2 of a linear map from adapted parameters to latents, fitted on test tasks and
scored on OOD tasks, for four kinds of support of the training tasks.
"""

import pandas as pd
import plotly.graph_objects as go

from figures import bars
from figures import cells
from figures import data
from figures import decoding_targets
from figures import stats
from figures import style

EXPERIMENT = 'fig3c'
TITLE_3C = 'Figure 3C: decoding modules, compositional support or not'
TITLE_3D = 'Figure 3D: decoding modules, connected support or not'
CELL = ('model.name', 'task.task_support')


def draw_3c(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns Figure 3C and the table of what it shows."""
  return _draw(library, TITLE_3C, ('random', 'non_compositional'))


def draw_3d(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns Figure 3D and the table of what it shows."""
  return _draw(library, TITLE_3D, ('connected', 'disconnected'))


def _draw(library, title, supports):
  found = cells.read(library, EXPERIMENT, CELL)
  panels = {
      style.SUPPORT_NAMES[support]: [
          _bar(found, model, support) for model in style.HYPERNETWORKS
      ]
      for support in supports
  }
  figure = bars.draw(
      panels,
      title=title,
      y_title='R² of decoded latents (OOD tasks, at most 1)',
      caption=found.caption + _undefined(found, supports),
      beside_name='exact ridge in place of 10 iterations',
  )
  shown = [c for c in found.cells if c['task.task_support'] in supports]
  measures = {
      'r2': ('ood', 'r2'),
      'r2_exact': ('ood', 'r2_exact'),
      'ood_accuracy': ('ood', 'accuracy'),
      'test_accuracy': ('test', 'accuracy'),
  }
  return figure, cells.make_table(found._replace(cells=shown), measures)


def _bar(found, model, support):
  cell = dict(zip(CELL, (model, support)))
  exact = stats.mean(data.values(found.frame, cell, 'ood', metric='r2_exact'))
  return bars.Bar(
      label=style.MODEL_NAMES[model].replace(' ', '<br>'),
      colour=style.COLOURS[model],
      seeds=data.values(found.frame, cell, 'ood', metric='r2'),
      missing=found.missing(cell),
      beside=(exact.value, exact.standard_error) if exact.num_seeds else None,
  )


def _undefined(found, supports):
  """Returns a line on the targets that do not vary, and so have no R2."""
  frame = found.frame
  if frame.empty:
    return []
  lines = []
  of_target = frame['metric'].str.fullmatch(r'r2_l\d+_m\d+')
  for support in supports:
    runs = frame[frame['task.task_support'] == support]
    measured = runs[of_target.reindex(runs.index)]
    num_seeds = measured['seed'].nunique()
    counts = measured.groupby(['model.name', 'metric'])['seed'].nunique()
    expected = decoding_targets.of(runs)
    missing = sorted(
        name
        for name in expected
        if any(
            counts.get((model, name), 0) < num_seeds
            for model in measured['model.name'].unique()
        )
    )
    if num_seeds and missing:
      names = ', '.join(name.removeprefix('r2_') for name in missing)
      lines.append(
          f'{style.SUPPORT_NAMES[support]}: without {names}, which do not vary'
          ' over OOD tasks (of some seeds).'
      )
  return lines
