"""Table A1: alignment of large students with and without weight decay.

The four columns of the published table have lost their headers, the sizes of
the students. So our sizes are ranked by their distance to each column, and the
sizes that are as close as the closest, within its error, are counted.
"""

from typing import Any

import numpy as np
import pandas as pd

from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import theory_cells
from modular_hyperteacher.published import schug2024

EXPERIMENT = 'table_a1'
TITLE = 'Table A1: does weight decay help students to find the modules?'
CELL = (
    theory_cells.SOLVER,
    theory_cells.HIDDEN,
    theory_cells.MODULES,
    theory_cells.WEIGHT_DECAY,
)
_PUBLISHED = {theory_cells.SOLVER: 'adamw'}
_DISCRETE = {theory_cells.LATENTS: 'discrete', **_PUBLISHED}


def draw(library: data.Library) -> tuple[None, pd.DataFrame]:
  """Returns no figure, and the table."""
  frame, _ = pick.select_conditions(library.values(EXPERIMENT), CELL)
  cells = pick.distinct(frame.sort_values(list(CELL)), CELL)
  table = theory_cells.make_table(frame, cells)
  (preset,) = frame['preset'].unique() if len(frame) else ('laptop',)
  grid = pick.rows(library.values('fig2d', preset), _DISCRETE)
  sizes, _ = pick.select_conditions(pd.concat([frame, grid]), CELL)
  if theory_cells.MODULES in sizes:
    # The published grid starts at twice the teacher's size.
    sizes = sizes[sizes[theory_cells.MODULES] > 1]
  published = pd.concat([_published_rows(), rank(sizes)], ignore_index=True)
  # A type of integers that may be missing, as they are in the other rows.
  integers = dict.fromkeys(table.select_dtypes('integer'), 'Int64')
  rows = [table.astype(integers), published]
  return None, pd.concat(rows, ignore_index=True)


def rank(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns which sizes come closest to each published column.

  By the root mean square difference over the published weight decays that were
  trained: none but zero below the published scale. Runs of the published solver
  count, one condition per cell.

  Returns:
    A row per column: the closest sizes, closest first, their distance, and how
    many sizes, the closest included, are within two standard errors of the
    difference from the closest.
  """
  point = {'split': 'ood', 'metric': 'alignment', 'kind': 'last'}
  runs = pick.rows(frame, {**_PUBLISHED, **point})
  keys = [*CELL[1:]]
  seeds = runs.astype(dict.fromkeys([*keys, 'value'], float)).groupby(keys)
  # A mean of one seed has no error.
  ours = seeds['value'].agg(['mean', 'sem']).dropna().reset_index()
  published = pd.DataFrame(
      schug2024.table_a1(),
      columns=[theory_cells.WEIGHT_DECAY, 'column', 'alignment'],
  )
  both = ours.merge(published)
  squares = both.assign(
      distance=(both['mean'] - both['alignment']) ** 2, error=both['sem'] ** 2
  ).groupby(['column', *keys[:2]])[['distance', 'error']]
  rows = []
  for column, sizes in (squares.mean() ** 0.5).groupby('column'):
    sizes = sizes.sort_values(['distance', 'error'])
    distance, error = sizes.iloc[0]
    bound = distance + 2 * np.hypot(error, sizes['error'])
    nearest: Any = sizes['distance'].head(4).items()
    closest = [
        f'{width:g} units, {modules:g} times the modules: {apart:.3f}'
        for (_, width, modules), apart in nearest
    ]
    rows.append({
        'solver': f'published, column {column}: closest sizes',
        'closest': '; '.join(closest),
        'not_told_apart': int((sizes['distance'] <= bound).sum()),
        'num_sizes': len(sizes),
        'preset': ', '.join(frame['preset'].unique()),
    })
  return pd.DataFrame(rows)


def _published_rows() -> pd.DataFrame:
  return pd.DataFrame([
      {
          'solver': f'published, column {column} (size unknown)',
          'weight_decay': weight_decay,
          'alignment_mean': value,
          'preset': 'published',
      }
      for weight_decay, column, value in schug2024.table_a1()
  ])
