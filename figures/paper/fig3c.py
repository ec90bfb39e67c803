"""Figures 3C and 3D: can the modules of a task be decoded?

R2 of a linear map from adapted parameters to latents, fitted on test tasks and
scored on OOD tasks, for four kinds of training support. At 'desktop', the
published problem, it is shown over training.
"""

from collections.abc import Sequence
import functools

import pandas as pd

from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import decoding_targets
from modular_hyperteacher.figures.paper import fig3b
from modular_hyperteacher.figures.paper import model_bars
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style

CELL = model_bars.CELL
_DASHES = dict(zip(model_bars.CONNECTED, ('solid', 'dash')))
_MEASURES = {
    'r2': ('ood', 'r2'),
    'r2_exact': ('ood', 'r2_exact'),
    'ood_accuracy': ('ood', 'accuracy'),
    'test_accuracy': ('test', 'accuracy'),
}


def _exact(grid: cells.Cells, cell: cells.Cell) -> tuple[float, float] | None:
  return stats.mean(grid.values(cell, metric='r2_exact')).beside


def _undefined(supports: Sequence[str], grid: cells.Cells) -> list[str]:
  """Returns lines that name the targets without R2: they do not vary."""
  lines = []
  for support in supports:
    runs = pick.rows(grid.frame, {model_bars.SUPPORT: support})
    num_seeds = runs['seed'].nunique()
    names = [
        f'{target} ({number} of {num_seeds} seeds)'
        for target, number in decoding_targets.undefined(runs).items()
    ]
    if names:
      lines.append(
          f'{style.SUPPORT_NAMES[support]}: without {"; ".join(names)}, which'
          ' do not vary over OOD tasks.'
      )
  return lines


def _table(supports: Sequence[str], grid: cells.Cells) -> pd.DataFrame:
  return cells.make_table(grid.keep(model_bars.SUPPORT, supports), _MEASURES)


def _describe(title: str, supports: Sequence[str]) -> described.Figure:
  return model_bars.describe(
      title,
      'fig3c',
      'r2',
      supports,
      _exact,
      measures=functools.partial(_table, supports),
      notes=(functools.partial(_undefined, supports),),
      y_title='R² of decoded latents (OOD tasks, at most 1)',
      beside_name='exact ridge in place of 10 iterations',
  )


FIGURES = {
    'fig3c': _describe(
        'Figure 3C: can modules be decoded if one is left out of training?',
        model_bars.COMPOSITIONAL,
    ),
    'fig3d': _describe(
        'Figure 3D: can modules be decoded better with connected support?',
        model_bars.CONNECTED,
    ),
    'fig3d_desktop': described.line_grid(
        "Figure 3D on the paper's own problem: does connected support help?",
        'fig3c',
        panels=lambda grid: fig3b.over_tasks(
            grid,
            model_bars.SUPPORT,
            lambda support: (_DASHES[support], style.SUPPORT_NAMES[support]),
        ),
        measures=lambda grid: fig3b.make_curves(grid, *fig3b.CURVES.values()),
        notes=(
            (
                'R²: how well a linear map reads modules off adapted parameters'
                ' of new combinations.'
            ),
        ),
        y_title='OOD accuracy, R²',
        y_range=(0.2, 0.8),
        read=data.Library.curves,
        preset=presets.DESKTOP,
        keep=(model_bars.SUPPORT, model_bars.CONNECTED),
        **fig3b.OF_CURVES,
    ),
}
