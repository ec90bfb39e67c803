"""All figures and tables: a line each.

A figure reads the finished runs of the experiments that it names, and does not
care where they were trained: `data.Library` finds runs by their content. Two
figures that name the same experiment share its runs.
"""

from typing import Callable, NamedTuple

import pandas as pd
import plotly.graph_objects as go

from figures import data
from figures import fig3b


class Figure(NamedTuple):
  """One figure or table.

  Attributes:
    title: what it shows, in a line.
    experiments: whose finished runs it needs; () if it needs none.
    draw: `draw(library) -> (figure, table)`. The table holds what the figure
      shows; the figure of a mere table is None.
  """

  title: str
  experiments: tuple[str, ...]
  draw: Callable[[data.Library], tuple[go.Figure | None, pd.DataFrame]]


FIGURES = {
    'fig3b': Figure(fig3b.TITLE, (fig3b.EXPERIMENT,), fig3b.draw),
}
