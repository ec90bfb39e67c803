"""Figures 3C and 3D: can the modules of a task be decoded?

R2 of a linear map from adapted parameters to latents, fitted on test tasks and
scored on OOD tasks, for four kinds of training support.
"""

from collections.abc import Sequence

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import decoding_targets
from modular_hyperteacher.figures.paper import model_bars
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'fig3c'
TITLE_3C = 'Figure 3C: decoding modules, compositional support or not'
TITLE_3D = 'Figure 3D: decoding modules, connected support or not'
CELL = model_bars.CELL


def draw_3c(library: data.Library) -> cells.Drawn:
  """Returns Figure 3C and the table of what it shows."""
  return _draw(library, TITLE_3C, ('random', 'non_compositional'))


def draw_3d(library: data.Library) -> cells.Drawn:
  """Returns Figure 3D and the table of what it shows."""
  return _draw(library, TITLE_3D, ('connected', 'disconnected'))


def _draw(
    library: data.Library, title: str, supports: Sequence[str]
) -> cells.Drawn:
  found = cells.read(library, EXPERIMENT, CELL)
  figure = bars.draw(
      model_bars.panels(found, supports, _bar),
      title=title,
      y_title='R² of decoded latents (OOD tasks, at most 1)',
      caption=found.caption() + _undefined(found, supports),
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


def _bar(found: cells.Cells, cell: cells.Cell) -> bars.Bar:
  exact = stats.mean(found.values(cell, metric='r2_exact'))
  return model_bars.bar(
      found,
      cell,
      seeds=found.values(cell, metric='r2'),
      missing=found.missing(cell),
      beside=exact.beside,
  )


def _undefined(found: cells.Cells, supports: Sequence[str]) -> list[str]:
  """Returns lines that name the targets without R2: they do not vary."""
  lines = []
  for support in supports:
    runs = pick.rows(found.frame, {'task.task_support': support})
    num_seeds = runs['seed'].nunique()
    names = [
        f'{decoding_targets.name(metric)} ({number} of {num_seeds} seeds)'
        for metric, number in decoding_targets.undefined(runs).items()
    ]
    if names:
      lines.append(
          f'{style.SUPPORT_NAMES[support]}: without {"; ".join(names)}, which'
          ' do not vary over OOD tasks.'
      )
  return lines
