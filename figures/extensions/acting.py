"""Beyond the paper: adapted models evaluated by acting, on all supports.

`modular_hyperteacher/analysis/acting.py` defines the metrics.
"""

from collections.abc import Sequence
import functools
from typing import Any

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.paper import model_bars


def _describe(
    experiment: str,
    metric: str,
    title: str,
    supports: Sequence[str],
    *notes: str,
    **options: Any,
) -> described.Figure:
  return model_bars.describe_ood(
      metric,
      supports,
      title=title,
      experiment=experiment,
      measures={split: (split, metric) for split in ('test', 'ood')},
      notes=(*notes, 'Not in the paper, which evaluates predictions only.'),
      **options,
  )


_describe_return = functools.partial(
    _describe, y_title="return / demonstrator's (OOD tasks)"
)
_RETURN = '1: the demonstrating agent; 0: doing nothing.'
FIGURES = {
    'acting_success': _describe(
        'fig4e',
        'success',
        'Acting on goals: how often does the agent succeed?',
        model_bars.COMPOSITIONAL,
        y_title='success (fraction of OOD tasks)',
        y_range=(0, 1),
    ),
    # Moves relative to the shortest path.
    'acting_paths': _describe(
        'fig4e',
        'path_ratio',
        'Acting on goals: how long are the paths of agents that succeed?',
        model_bars.COMPOSITIONAL,
        'Only tasks in which the agent succeeds; 1 is the shortest path. Models'
        ' that rarely succeed do so in easy tasks.',
        y_title='moves / shortest path (OOD tasks)',
    ),
    'acting_return': _describe_return(
        'fig4c',
        'relative_return',
        'Acting on preferences: what does the agent earn?',
        model_bars.COMPOSITIONAL,
        _RETURN,
    ),
    'acting_connected': _describe_return(
        'fig4b',
        'relative_return',
        'Acting on preferences: does connected support help?',
        model_bars.CONNECTED,
        _RETURN,
    ),
}
