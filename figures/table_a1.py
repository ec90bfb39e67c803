"""Table A1: alignment of large students with and without weight decay.

The published table has four columns whose headers are lost, so its values can
only be shown beside ours, not matched with them.
"""

import pandas as pd

from figures import data
from figures import theory
from modular_hyperteacher import published

EXPERIMENT = 'table_a1'
TITLE = 'Table A1: module alignment under weight decay, discrete tasks'
CELL = (theory.SOLVER, theory.HIDDEN, theory.MODULES, theory.WEIGHT_DECAY)


def draw(library: data.Library) -> tuple[None, pd.DataFrame]:
  """Returns no figure, and the table."""
  frame, _ = data.select_conditions(library.values(EXPERIMENT), CELL)
  present = [column for column in CELL if column in frame]
  cells = frame[present].drop_duplicates().sort_values(present)
  table = theory.make_table(frame, cells.to_dict('records'))
  return None, pd.concat([table, _published_rows()], ignore_index=True)


def _published_rows():
  return pd.DataFrame([
      {
          'solver': f'published, column {column} (size unknown)',
          'weight_decay': weight_decay,
          'alignment_mean': value,
          'preset': 'published',
      }
      for weight_decay, column, value in published.table_a1()
  ])
