"""Table A1: alignment of large students with and without weight decay.

The four columns of the published table have lost their headers, the sizes of
the students. So our sizes are ranked by their distance to each column, and the
sizes that are as close as the closest, within its error, are counted.
"""

import math
from typing import Any

import numpy as np
import pandas as pd

from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import theory_cells
from modular_hyperteacher.figures.plotting import stats
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
  trained; below the published scale that is none. Runs of the published solver
  count, one condition per cell.

  Returns:
    A row per column: the closest sizes, closest first, their distance, and how
    many sizes, the closest included, are within two standard errors of the
    difference from the closest.
  """
  rows = []
  sizes = pick.rows(frame, _PUBLISHED).sort_values(list(CELL))
  cells = pick.distinct(sizes, CELL[:-1])
  columns: dict[Any, dict[float, float]] = {}
  for decay, column, alignment in schug2024.table_a1():
    columns.setdefault(column, {})[decay] = alignment
  for column, expected in sorted(columns.items()):
    sizes = []
    for size in cells:
      nearest = _distance(frame, size, expected)
      if nearest is not None:
        width, modules = (int(size[name]) for name in CELL[1:3])
        name = f'{width} units, {modules} times the modules'
        sizes.append((*nearest, name))
    if not sizes:
      continue
    sizes.sort()
    distance, error, _ = sizes[0]
    alike = [s for s in sizes if s[0] <= distance + 2 * math.hypot(error, s[1])]
    rows.append({
        'solver': f'published, column {column}: closest sizes',
        'closest': '; '.join(f'{name}: {d:.3f}' for d, _, name in sizes[:4]),
        'not_told_apart': len(alike),
        'num_sizes': len(sizes),
        'preset': ', '.join(frame['preset'].unique()),
    })
  return pd.DataFrame(rows)


def _distance(
    frame: pd.DataFrame,
    size: dict[str, object],
    expected: dict[float, float],
) -> tuple[float, float] | None:
  """Returns the distance of a size from a column, and its standard error."""
  apart, errors = [], []
  for decay, alignment in expected.items():
    cell = {**size, theory_cells.WEIGHT_DECAY: decay}
    ours = stats.mean(pick.values(frame, cell, 'ood', metric='alignment'))
    if ours.num_seeds > 1:
      apart.append(ours.value - alignment)
      errors.append(ours.standard_error)
  if not apart:
    return None
  distance, error = (np.mean(np.square(x)) ** 0.5 for x in (apart, errors))
  return float(distance), float(error)


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
