"""Claims about the hyperteacher: Appendix B, Figures A3 to A6."""

from collections.abc import Iterator, Sequence
import itertools
from typing import Any

import numpy as np
import pandas as pd

from modular_hyperteacher.figures.claims import hyperteacher
from modular_hyperteacher.figures.extensions import scaling_law
from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import fig3e
from modular_hyperteacher.figures.paper import fig_a3
from modular_hyperteacher.figures.paper import fig_a4
from modular_hyperteacher.figures.plotting import style

# A larger fall of accuracy on seen combinations counts as a fall.
_NOTICEABLE = 0.05


def more_tasks_for_more_modules(
    curves: pd.DataFrame,
    experiment: str = fig_a3.EXPERIMENT,
    levels: Sequence[float] = fig_a3.LEVELS,
    num_sizes: int = 3,
) -> comparisons.Comparisons:
  """Returns slopes of log2 tasks over M, each at the level of `_level`.

  They need at least `num_sizes` values of M, and runs of all those that the
  config describes.
  """
  selected = cells.select(experiment, curves, fig_a3.CELL)
  groups: Any = fig_a3.make_table(selected, levels).groupby(['model', 'K'])
  for (model, max_active), table in groups:
    level = _level(table)
    of_model = selected.find(name=model, max_active=max_active)
    sizes = sorted({int(cell['task.num_modules']) for cell in of_model})
    if len(sizes) < num_sizes or level is None:
      continue
    if model in style.HYPERNETWORKS:
      rows = pick.rows(table, {'level': level})
      # A seed that never gets there counts with all of its tasks, and one that
      # does so before the first evaluation, with the tasks until then.
      rows = rows.assign(tasks_before=rows['tasks_before'].replace(0, np.nan))
      samples = [
          tasks_to_level(curves, rows, (model, max_active, m), level)
          for m in sizes
      ]
      name = f'doublings per module, {style.MODEL_NAMES[model]}'
      name = f'{name}, K = {max_active}'
      yield comparisons.slope(name, samples, sizes) > 0


def _level(table: pd.DataFrame) -> float | None:
  """Returns the highest level that most runs reach, after one below it."""
  reached = table['tasks'].notna() & (table['tasks_before'] > 0)
  shares = reached.groupby(table['level']).mean()
  return max(shares.index[shares > 0.5], default=None)


def scaling_levels(
    curves: pd.DataFrame,
) -> Iterator[tuple[str, int, float, pd.DataFrame]]:
  """Yields (model, K, level, rows at the level) of each scaling law."""
  grid = cells.select(fig_a3.EXPERIMENT, curves, fig_a3.CELL)
  groups: Any = fig_a3.make_table(grid).groupby(['model', 'K'])
  for (model, max_active), rows in groups:
    level, reached = scaling_law.choose_level(rows)
    if model in style.HYPERNETWORKS and level is not None:
      yield model, max_active, level, reached


def tasks_to_level(
    curves: pd.DataFrame,
    rows: pd.DataFrame,
    values: tuple[str, int, int],
    level: float,
) -> comparisons.Sample:
  """Returns log2 of the tasks that each seed needs to reach a level.

  Rows are as `scaling_levels` yields them, values are model, K and M.
  """
  cell: cells.Cell = dict(zip(fig_a3.CELL, values))
  tasks = rows[rows['M'] == values[-1]].set_index('seed')[scaling_law.BOUNDS]
  log_tasks = tasks.astype(float).mean(axis=1).apply(np.log2).dropna()
  name = f'{style.cell_name(cell)}, to {level:g}'
  return comparisons.of_curves(
      curves, cell, name, log_tasks, metric='log2 tasks'
  )


def _more_shots_help(frame: pd.DataFrame) -> comparisons.Comparisons:
  for (m, k), model in itertools.product(
      hyperteacher.sizes(frame), style.HYPERNETWORKS
  ):
    cell: cells.Cell = dict(zip(fig_a4.CELL_A4, (model, m, k)))
    shots = _values(frame, fig_a4.CELL_A4, cell, 'num_support')
    if len(shots) > 1:
      accuracy = [
          comparisons.sample(frame, {**cell, 'task.num_support': number})
          for number in shots
      ]
      name = f'per doubling of shots, {style.cell_name(cell)}'
      yield comparisons.slope(name, accuracy, np.log2(shots)) > 0


def _values(
    frame: pd.DataFrame,
    columns: Sequence[str],
    cell: cells.Cell,
    name: str,
) -> list[Any]:
  """Returns the values of a field, in the config or in runs, in order."""
  grid = cells.of(frame, columns)
  kept = [c for c in grid.cells if c.items() >= cell.items()]
  return sorted({c[f'task.{name}'] for c in kept})


def _robust_for_more_modules(frame: pd.DataFrame) -> comparisons.Comparisons:
  """Compares the fall with more held-out combinations at small and large M."""
  accuracy = comparisons.at(frame, fig_a4.CELL_A5)
  for model in style.HYPERNETWORKS:
    held_out, num_modules = (
        _values(frame, fig_a4.CELL_A5, {comparisons.MODEL: model}, name)
        for name in ('fraction_ood', 'num_modules')
    )
    if len(held_out) < 2 or len(num_modules) < 2:
      continue
    least, most = held_out[0], held_out[-1]
    few, many = num_modules[0], num_modules[-1]
    of_few, of_many = (
        accuracy(model, m, least) - accuracy(model, m, most)
        for m in (few, many)
    )
    name = f'fall with fewer modules - with more, {style.MODEL_NAMES[model]}'
    yield (of_few - of_many).named(name) > 0
    for m in (few, many):
      fewer, more = (accuracy(model, m, x, split='test') for x in (least, most))
      yield more - fewer > -_NOTICEABLE


def _correlation(table: pd.DataFrame) -> pd.Series:
  """Returns the correlation of a row's halves."""
  x, y = (
      pd.DataFrame(half, table.index)
      for half in np.split(table.to_numpy(), 2, axis=1)
  )
  return x.corrwith(y, axis=1)


def _decodability_mirrors_accuracy(
    frame: pd.DataFrame,
) -> comparisons.Comparisons:
  """Correlates R2 with OOD accuracy over the grid, for each seed."""
  sizes = hyperteacher.sizes(frame)
  at = comparisons.at(frame, fig3e.CELL)
  for model in style.HYPERNETWORKS if len(sizes) > 2 else ():
    accuracy = [at(model, *size) for size in sizes]
    r2 = [at(model, *size, metric='r2') for size in sizes]
    name = f'correlation of R2 with accuracy, {style.MODEL_NAMES[model]}'
    yield comparisons.of_table(name, [*accuracy, *r2], _correlation) > 0
    if frame['published_scale'].all():
      yield from (x > 0 for x, (_, k) in zip(r2, sizes) if k > 1)


CLAIMS = (
    verdicts.of_hypernetworks(
        'A3',
        'With more modules, both hypernetworks need more training tasks for'
        ' a given OOD accuracy.',
        'fig_a3',
        more_tasks_for_more_modules,
        cell=fig_a3.CELL,
        read=data.Library.curves,
    ),
    verdicts.of_hypernetworks(
        'A4',
        'Fewer shots lower the OOD accuracy of both hypernetworks.',
        'fig_a4',
        _more_shots_help,
        cell=fig_a4.CELL_A4,
    ),
    verdicts.of_hypernetworks(
        'A5',
        'With more modules, holding out more combinations costs both'
        ' hypernetworks less OOD accuracy; on seen ones, they lose less'
        f' than {_NOTICEABLE:g}.',
        'fig_a5',
        _robust_for_more_modules,
        cell=fig_a4.CELL_A5,
    ),
    verdicts.of_hypernetworks(
        'A6',
        'Across M and K, R2 of decoding correlates with OOD accuracy (both'
        ' hypernetworks).',
        'fig_a6',
        _decodability_mirrors_accuracy,
        experiment='fig3e',
        cell=fig3e.CELL,
        at_published_scale=' There it is above zero with K > 1.',
    ),
)
