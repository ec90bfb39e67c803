"""Table A1: alignment of large students with and without weight decay.

The four columns of the published table have lost their headers, so its values
are shown beside ours but cannot be matched with them.
"""

import pandas as pd

from figures.library import data
from figures.paper import theory_cells
from modular_hyperteacher.published import schug2024

EXPERIMENT = 'table_a1'
TITLE = 'Table A1: module alignment under weight decay, discrete tasks'
CELL = (
    theory_cells.SOLVER,
    theory_cells.HIDDEN,
    theory_cells.MODULES,
    theory_cells.WEIGHT_DECAY,
)


def draw(library: data.Library) -> tuple[None, pd.DataFrame]:
  """Returns no figure, and the table."""
  frame, _ = data.select_conditions(library.values(EXPERIMENT), CELL)
  cells = theory_cells.find_cells(frame, CELL)
  table = theory_cells.make_table(frame, cells)
  return None, pd.concat([table, _published_rows()], ignore_index=True)


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
