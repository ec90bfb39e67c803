"""ReLU students on many supports: how fast, in which order, whether at all.

Blue: connected families; orange: disconnected. Circles: discrete latents;
squares: continuous ones.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import theory_cells
from modular_hyperteacher.figures.plotting import points
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.studies.learning_dynamics import measures
from modular_hyperteacher.studies.learning_dynamics import supports

_TITLES = {
    'ld_times': (
        'Does the smallest eigenvalue tell how long it takes to find the'
        ' modules?'
    ),
    'ld_order': 'Which modules and families are learned first?',
    'ld_collapse': 'When can one tell whether a student will recompose?',
}
_COLUMNS = ['x', 'y', 'error', 'label']
_SYMBOLS = {'discrete': 'circle', 'continuous': 'square'}
_COLOURS = {True: theory_cells.CONNECTED, False: theory_cells.DISCONNECTED}
_CONVERGED = 'Converged inference.'


def draw_times(library: data.Library) -> cells.Drawn:
  """Returns steps to alignment over 1 / eigenvalue, and the table of runs."""
  grid = _select(library)
  kept: dict[tuple[str, bool], list[tuple[Any, ...]]] = {}
  for run in supports.RUNS:
    aligned = _steps(grid, run, 'ood', 'alignment', measures.ALIGNED)
    kept.setdefault((run[0], supports.is_connected(run[1])), []).append(
        (1 / supports.smallest_eigenvalue(*run), *aligned, measures.label(*run))
    )
  figure = points.draw(
      {'': [_points(key, rows) for key, rows in kept.items()]},
      x_title="1 / smallest eigenvalue of E[z z']",
      y_title=f'outer steps to alignment {measures.ALIGNED:g}',
      caption=grid.caption(
          _CONVERGED,
          'Alignment on combinations that training did not show. A seed that'
          ' does not get there counts with all of its steps.',
      ),
  )
  return figure, _table(grid)


def draw_order(
    library: data.Library, experiment: str = measures.EXPERIMENT
) -> cells.Drawn:
  """Returns steps of modules and families over their predicted times."""
  grid = _select(library, experiment)
  rows = [r for r in _order_rows(grid) if np.isfinite(r['steps_mean'])]
  panels = {
      panel: [
          _points(
              (kind, connected),
              [
                  (*times, f'{measures.label(*run)}, {what}')
                  for of, run, what, *times in (row.values() for row in rows)
                  if of == panel
                  and run[0] == kind
                  and supports.is_connected(run[1]) == connected
              ],
          )
          for kind in _SYMBOLS
          for connected in _COLOURS
      ]
      for panel in ('modules', 'families')
  }
  figure = points.draw(
      panels,
      x_title='predicted time, 1 / eigenvalue',
      y_title='outer steps',
      caption=grid.caption(
          _CONVERGED,
          'Modules: until their latents are decoded with R2'
          f' {measures.DECODED:g} on new combinations. Families: until their'
          f' relative loss is {measures.LEARNED:g}.',
          'The eigenvalue of a module or a family is that of the directions in'
          ' which it has a share.',
      ),
  )
  table = [{**row, 'run': measures.label(*row['run'])} for row in rows]
  return figure, pd.DataFrame(table)


def draw_collapse(library: data.Library) -> cells.Drawn:
  """Returns OOD loss over training loss, a path per run, and their table."""
  grid = _select(library)
  panels: dict[str, list[points.Points]] = {kind: [] for kind in _SYMBOLS}
  for kind, name in supports.RUNS:
    where, connected = measures.cell(kind, name), supports.is_connected(name)
    x, y = (
        grid.over_training(where, split, measures.RELATIVE_LOSS).mean(axis=1)
        for split in ('test', 'ood')
    )
    label = measures.label(kind, name)
    path = pd.DataFrame({'x': x, 'y': y, 'error': np.nan}, columns=_COLUMNS)
    path['label'] = [f'{label}, step {step}' for step in path.index]
    panels[kind].append(
        points.Points(_group(connected), _COLOURS[connected], path, path=True)
    )
  figure = points.draw(
      {f'{kind} latents': groups for kind, groups in panels.items()},
      x_title='relative loss on training families',
      y_title='relative loss on new combinations',
      caption=grid.caption(
          _CONVERGED,
          'Means over seeds; a path per support, a point per evaluation, from'
          ' the upper right on.',
      ),
  )
  return figure, _table(grid)


def _select(
    library: data.Library, experiment: str = measures.EXPERIMENT
) -> cells.Cells:
  curves = library.curves(experiment)
  return cells.select(experiment, curves, measures.CELL)


def _steps(
    grid: cells.Cells,
    run: tuple[str, str],
    split: str,
    metric: str,
    level: float,
) -> tuple[float, float]:
  """Returns the mean steps to a level, and the standard error."""
  steps = measures.steps_to(
      grid.frame, measures.cell(*run), split, metric, level
  )
  estimate = stats.mean(steps)
  return estimate.value, estimate.standard_error


def _order_rows(grid: cells.Cells) -> Iterator[dict[str, Any]]:
  """Yields when each module and family of a run is learned, and predicted."""
  columns = ('of', 'run', 'what', 'predicted_time', 'steps_mean', 'steps_se')
  for run in supports.RUNS:
    for module, time in enumerate(measures.module_times(*run)):
      metric = f'decoding_r2_m{module}'
      steps = _steps(grid, run, 'ood', metric, measures.DECODED)
      row = 'modules', run, f'module {module}', time, *steps
      yield dict(zip(columns, row))
    for split, time in measures.family_times(*run).items():
      metric = measures.RELATIVE_LOSS
      steps = _steps(grid, run, split, metric, measures.LEARNED)
      row = 'families', run, f'family {split.rpartition("_")[2]}', time, *steps
      yield dict(zip(columns, row))


def _points(
    key: tuple[str, bool], rows: list[tuple[Any, ...]]
) -> points.Points:
  kind, connected = key
  table = pd.DataFrame(rows, columns=_COLUMNS).dropna(subset='y')
  name = f'{_group(connected)}, {kind}'
  return points.Points(name, _COLOURS[connected], table, _SYMBOLS[kind])


def _group(connected: bool) -> str:
  return 'connected' if connected else 'disconnected'


def _table(grid: cells.Cells) -> pd.DataFrame:
  """Returns a row per run: what is predicted, and what was measured."""
  rows = []
  for run in supports.RUNS:
    where = measures.cell(*run)
    row: dict[str, Any] = dict(zip(('latent_type', 'task_support'), run))
    row['connected'] = supports.is_connected(run[1])
    row['smallest_eigenvalue'] = supports.smallest_eigenvalue(*run)
    for name, share in (('', 1.0), ('early_', 0.1)):
      for metric, split, field in (
          ('train_loss', 'test', measures.RELATIVE_LOSS),
          ('ood_loss', 'ood', measures.RELATIVE_LOSS),
          ('alignment', 'ood', 'alignment'),
      ):
        values = measures.at_share(grid.frame, where, split, field, share)
        row |= stats.mean(values).columns(f'{name}{metric}')
    for metric, split, field, level in (
        ('steps_to_fit', 'test', measures.RELATIVE_LOSS, measures.LEARNED),
        ('steps_to_align', 'ood', 'alignment', measures.ALIGNED),
    ):
      steps = measures.steps_to(grid.frame, where, split, field, level)
      row |= stats.mean(steps).columns(metric)
      row['num_seeds'] = len(steps)
    row['preset'] = ', '.join(pick.runs(grid.frame, where)['preset'].unique())
    rows.append(row)
  return pd.DataFrame(rows)


FIGURES = {
    name: described.Figure(_TITLES[name], (measures.EXPERIMENT,), draw)
    for name, draw in (
        ('ld_times', draw_times),
        ('ld_order', draw_order),
        ('ld_collapse', draw_collapse),
    )
}
