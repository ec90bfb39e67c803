"""Beyond the paper: adapted models evaluated by acting, on all supports.

`modular_hyperteacher/analysis/acting.py` defines the metrics.
"""

from typing import Any

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.paper import fig4e
from modular_hyperteacher.figures.paper import model_bars

_NOT_IN_PAPER = 'Not in the paper, which evaluates predictions only.'


def _describe(
    title: str,
    experiment: str,
    metric: str,
    supports: tuple[str, ...],
    *notes: str,
    **options: Any,
) -> described.Grid:
  return model_bars.describe(
      metric,
      supports,
      title=title,
      experiment=experiment,
      measures={split: (split, metric) for split in ('test', 'ood')},
      notes=(*notes, _NOT_IN_PAPER),
      options=options,
  )


GRIDS = {
    'acting_success': _describe(
        'Acting on goals: how often the agent succeeds',
        fig4e.EXPERIMENT,
        'success',
        fig4e.SUPPORTS,
        y_title='success (fraction of OOD tasks)',
        y_range=(0, 1),
    ),
    # Moves relative to the shortest path.
    'acting_paths': _describe(
        'Acting on goals: path lengths of agents that succeed',
        fig4e.EXPERIMENT,
        'path_ratio',
        fig4e.SUPPORTS,
        'Only tasks in which the agent succeeds; 1 is the shortest path. Models'
        ' that rarely succeed do so in easy tasks.',
        y_title='moves / shortest path (OOD tasks)',
    ),
} | {
    name: _describe(
        title,
        experiment,
        'relative_return',
        supports,
        '1: the demonstrating agent; 0: doing nothing.',
        y_title="return / demonstrator's (OOD tasks)",
    )
    for name, title, experiment, supports in (
        (
            'acting_return',
            'Acting on preferences: what the agent earns',
            'fig4c',
            ('random', 'non_compositional'),
        ),
        (
            'acting_connected',
            'Acting on preferences: return, connected support or not',
            'fig4b',
            ('connected', 'disconnected'),
        ),
    )
}
