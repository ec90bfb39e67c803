"""In-context learners over training: Figures 2A to 2D and 3.

Of Kobayashi et al. (2024): R^2 on seen and new pairs of modules, for three
supports; R^2 on unrelated tasks, and of decoding latents. A reference line is
the best linear mix of training functions (`reference_lines.py`); a
learner below it may not have composed modules.
"""

import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import model_bars
from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.studies.in_context import reference_lines

EXPERIMENT = reference_lines.EXPERIMENT
TITLE = 'In context: are new pairs of modules solved?'
SUPPORTS = {
    'ring_chords': 'Connected+ (12 pairs)',
    'ring': 'Connected (6 pairs)',
    'triangles': 'Disconnected (6 pairs)',
}
# More panels of Connected+: title -> split, metric, dash.
_MORE = {
    'Decoded latents, Connected+': ('ood', 'decoding_r2', 'dash'),
    'Unrelated tasks, Connected+': ('unrelated', 'prediction_r2', 'dot'),
}
_CELL = model_bars.CELL
_MEASURES = {
    'test': ('test', 'prediction_r2'),
    'ood': ('ood', 'prediction_r2'),
    'ood_common': ('ood_common', 'prediction_r2'),
    'unrelated': ('unrelated', 'prediction_r2'),
    'decoding': ('ood', 'decoding_r2'),
}


def draw(library: data.Library) -> cells.Drawn:
  """Returns the curves over training and the table of last steps."""
  curves = cells.select(EXPERIMENT, library.curves(EXPERIMENT), _CELL)
  panels = {
      title: (
          [
              _curve(curves, model, support, split, dash)
              for model in curves.models
              for split, dash in (('test', 'solid'), ('ood', 'dash'))
          ]
          + _reference(curves, support)
      )
      for support, title in SUPPORTS.items()
  } | {
      title: [
          _curve(curves, model, 'ring_chords', split, dash, metric)
          for model in curves.models
      ]
      for title, (split, metric, dash) in _MORE.items()
  }
  figure = lines.draw(
      panels,
      x_title='training steps',
      y_title='R²',
      y_range=(-0.5, 1),
      num_columns=3,
      markers=False,
      caption=curves.caption(
          'Grey: what predictors reach on OOD tasks that know all training'
          ' functions and the target. The teacher has R² 1.',
      ),
  )
  layout.add_legend_row(figure)
  last = cells.read(library, EXPERIMENT, _CELL)
  return figure, cells.make_table(last, _MEASURES)


def _curve(
    curves: cells.Cells,
    model: str,
    support: str,
    split: str,
    dash: str,
    metric: str = 'prediction_r2',
) -> lines.Line:
  """Returns the curve of a model on a split."""
  cell = {'model.name': model, model_bars.SUPPORT: support}
  seeds = curves.over_training(cell, split, metric)
  return described.model_line(model, seeds, dash, style.SPLIT_NAMES[split])


def _reference(curves: cells.Cells, support: str) -> list[lines.Line]:
  """Returns the reference lines of a support, over the range of its curves."""
  frame = pick.rows(curves.frame, {'task.task_support': support})
  if frame.empty:
    return []
  ends = [0, int(frame['step'].max())]
  point = {'split': 'ood', 'task_support': support}
  chosen = pick.rows(reference_lines.MEASURED[EXPERIMENT].load(), point)
  seeds = chosen.pivot_table(index='predictor', columns='seed', values='r2')
  return [
      lines.Line(
          name=name,
          colour=style.MUTED,
          seeds=pd.DataFrame([seeds.loc[predictor]] * 2, index=ends),
          dash=dash,
      )
      for predictor, name, dash in (
          ('mix', 'best mix of training functions', 'dot'),
          ('nearest', 'nearest one', 'longdashdot'),
          ('mean', 'their mean', 'longdash'),
      )
  ]
