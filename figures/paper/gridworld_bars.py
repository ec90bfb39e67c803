"""Figures 4B, 4C and A9, and models that act: bars of the grid worlds.

The loss is what the models minimise: half the squared error of the predicted
action values, summed over the five actions. How adapted models do by acting is
not in the paper; `modular_hyperteacher/analysis/acting.py` defines the metrics.
"""

from modular_hyperteacher.figures.paper import model_bars

# In the captions of all figures on preferences.
LOSS_NOTE = (
    'Loss: half the squared error of the action values, summed over the five'
    ' actions: 2.5 × the mean squared error. Lower is better.'
)
_OF_LOSS = {
    'measures': {
        'test_loss': ('test', 'loss'),
        'ood_loss': ('ood', 'loss'),
        'r2': ('ood', 'r2'),
        'relative_return': ('ood', 'relative_return'),
    },
    'notes': (LOSS_NOTE,),
    'y_title': 'OOD loss (lower is better)',
}
_BY_ACTING = 'Not in the paper, which evaluates predictions only.'
_OF_RETURN = {
    'notes': ('1: the demonstrating agent; 0: doing nothing.', _BY_ACTING),
    'y_title': "return / demonstrator's (OOD tasks)",
}

FIG_4B = model_bars.describe(
    'Figure 4B: does connected support help with new preferences?',
    'fig4b',
    'loss',
    model_bars.CONNECTED,
    **_OF_LOSS,
)
FIG_4C = model_bars.describe(
    'Figure 4C: which models solve new preferences?',
    'fig4c',
    'loss',
    model_bars.COMPOSITIONAL,
    **_OF_LOSS,
)
FIG_A9 = model_bars.describe(
    'Figure A9: how often is a new goal predicted without a mistake?',
    'fig4e',
    'accuracy_all',
    model_bars.COMPOSITIONAL,
    measures={s: (s[:-4], 'accuracy_all') for s in ('test_all', 'ood_all')},
    y_title='without a mistake (fraction of OOD tasks)',
    y_range=(0, 1),
)
ACTING = {
    'acting_success': model_bars.describe(
        'Acting on goals: how often does the agent succeed?',
        'fig4e',
        'success',
        model_bars.COMPOSITIONAL,
        notes=(_BY_ACTING,),
        y_title='success (fraction of OOD tasks)',
        y_range=(0, 1),
    ),
    'acting_paths': model_bars.describe(
        'Acting on goals: how long are the paths of agents that succeed?',
        'fig4e',
        'path_ratio',
        model_bars.COMPOSITIONAL,
        notes=(
            (
                'Only tasks in which the agent succeeds; 1 is the shortest'
                ' path. Models that rarely succeed do so in easy tasks.'
            ),
            _BY_ACTING,
        ),
        y_title='moves / shortest path (OOD tasks)',
    ),
    'acting_return': model_bars.describe(
        'Acting on preferences: what does the agent earn?',
        'fig4c',
        'relative_return',
        model_bars.COMPOSITIONAL,
        **_OF_RETURN,
    ),
    'acting_connected': model_bars.describe(
        'Acting on preferences: does connected support help?',
        'fig4b',
        'relative_return',
        model_bars.CONNECTED,
        **_OF_RETURN,
    ),
}
