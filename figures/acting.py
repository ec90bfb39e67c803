"""Beyond the paper: adapted models judged by acting, on all supports.

What is measured is explained in `modular_hyperteacher/analysis/acting.py`.
"""

import pandas as pd
import plotly.graph_objects as go

from figures import cells
from figures import data
from figures import fig4e
from figures import gridworlds
from figures import style

TITLE_SUCCESS = 'Acting on goals: how often the agent gets there'
TITLE_PATHS = 'Acting on goals: the way of agents that get there'
TITLE_RETURN = 'Acting on preferences: what the agent earns'
TITLE_CONNECTED = 'Acting on preferences: the same, connected support or not'
_NOT_IN_PAPER = 'Not in the paper, which judges predictions only.'


def draw_success(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the success rates of all models and supports, and their table."""
  found = cells.read(library, fig4e.EXPERIMENT, gridworlds.CELL)
  figure = gridworlds.draw_bars(
      found,
      'success',
      supports=fig4e.SUPPORTS,
      models=style.MODELS,
      title=TITLE_SUCCESS,
      y_title='success (fraction of OOD tasks)',
      y_range=(0, 1),
      caption=found.caption + [_NOT_IN_PAPER],
  )
  return figure, _make_table(found, 'success')


def draw_paths(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the moves over the shortest path, where an agent succeeds."""
  found = cells.read(library, fig4e.EXPERIMENT, gridworlds.CELL)
  figure = gridworlds.draw_bars(
      found,
      'path_ratio',
      supports=fig4e.SUPPORTS,
      models=style.MODELS,
      title=TITLE_PATHS,
      y_title='moves / shortest path (OOD tasks)',
      caption=found.caption
      + [
          'Of tasks in which the agent succeeds: 1 is the shortest path. A'
          ' model that succeeds rarely does so where the way is easy.',
          _NOT_IN_PAPER,
      ],
  )
  return figure, _make_table(found, 'path_ratio')


def draw_return(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the return relative to the demonstrating agent's."""
  supports = ('random', 'non_compositional')
  return _draw_return(library, 'fig4c', supports, style.MODELS, TITLE_RETURN)


def draw_connected(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the same with connected support or not."""
  supports = ('connected', 'disconnected')
  return _draw_return(
      library, 'fig4b', supports, style.HYPERNETWORKS, TITLE_CONNECTED
  )


def _draw_return(library, experiment, supports, models, title):
  found = cells.read(library, experiment, gridworlds.CELL)
  figure = gridworlds.draw_bars(
      found,
      'relative_return',
      supports=supports,
      models=models,
      title=title,
      y_title='return / demonstrator\'s (OOD tasks)',
      caption=found.caption
      + [
          '1: as good as the agent that is imitated; 0: as doing nothing.',
          _NOT_IN_PAPER,
      ],
  )
  return figure, _make_table(found, 'relative_return')


def _make_table(found, metric):
  measures = {split: (split, metric) for split in ('test', 'ood')}
  return cells.make_table(found, measures)
