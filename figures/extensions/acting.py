"""Beyond the paper: adapted models evaluated by acting, on all supports.

`modular_hyperteacher/analysis/acting.py` defines the metrics.
"""

from typing import Any

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.paper import fig4e
from modular_hyperteacher.figures.paper import model_bars

TITLE_SUCCESS = 'Acting on goals: how often the agent succeeds'
TITLE_PATHS = 'Acting on goals: path lengths of agents that succeed'
TITLE_RETURN = 'Acting on preferences: what the agent earns'
TITLE_CONNECTED = 'Acting on preferences: return, connected support or not'
_NOT_IN_PAPER = 'Not in the paper, which evaluates predictions only.'


def draw_success(library: data.Library) -> cells.Drawn:
  """Returns the success rates of all models and supports, and their table."""
  return _draw(
      library,
      fig4e.EXPERIMENT,
      'success',
      supports=fig4e.SUPPORTS,
      title=TITLE_SUCCESS,
      y_title='success (fraction of OOD tasks)',
      y_range=(0, 1),
  )


def draw_paths(library: data.Library) -> cells.Drawn:
  """Returns moves relative to the shortest path, where agents succeed."""
  return _draw(
      library,
      fig4e.EXPERIMENT,
      'path_ratio',
      'Only tasks in which the agent succeeds; 1 is the shortest path. Models'
      ' that rarely succeed do so in easy tasks.',
      supports=fig4e.SUPPORTS,
      title=TITLE_PATHS,
      y_title='moves / shortest path (OOD tasks)',
  )


def draw_return(library: data.Library) -> cells.Drawn:
  """Returns the return relative to the demonstrating agent's."""
  supports = ('random', 'non_compositional')
  return _draw_return(library, 'fig4c', supports=supports, title=TITLE_RETURN)


def draw_connected(library: data.Library) -> cells.Drawn:
  """Returns the relative return for connected and disconnected support."""
  supports = ('connected', 'disconnected')
  return _draw_return(
      library, 'fig4b', supports=supports, title=TITLE_CONNECTED
  )


def _draw_return(
    library: data.Library, experiment: str, **options: Any
) -> cells.Drawn:
  return _draw(
      library,
      experiment,
      'relative_return',
      '1: the demonstrating agent; 0: doing nothing.',
      y_title="return / demonstrator's (OOD tasks)",
      **options,
  )


def _draw(
    library: data.Library,
    experiment: str,
    metric: str,
    *notes: str,
    **options: Any,
) -> cells.Drawn:
  """Returns the bars and the table of a metric; notes go into the caption."""
  found = cells.read(library, experiment, model_bars.CELL)
  caption = found.caption(*notes, _NOT_IN_PAPER)
  figure = model_bars.draw_bars(found, metric, caption=caption, **options)
  measures = {split: (split, metric) for split in ('test', 'ood')}
  return figure, cells.make_table(found, measures)
