"""Figures 4B and 4C: the loss on new preferences, by support and model.

The loss is what the models minimise: half the squared error of the predicted
action values, summed over the five actions. Lower is better.
"""

from collections.abc import Sequence

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.paper import model_bars

# In the captions of all figures on preferences.
LOSS_NOTE = (
    'Loss: half the squared error of the action values, summed over the five'
    ' actions: 2.5 × the mean squared error. Lower is better.'
)


def _describe(
    experiment: str, title: str, supports: Sequence[str]
) -> described.Figure:
  return model_bars.describe_ood(
      'loss',
      supports,
      title=title,
      experiment=experiment,
      measures={
          'test_loss': ('test', 'loss'),
          'ood_loss': ('ood', 'loss'),
          'r2': ('ood', 'r2'),
          'relative_return': ('ood', 'relative_return'),
      },
      notes=(LOSS_NOTE,),
      y_title='OOD loss (lower is better)',
  )


FIGURES = {
    'fig4b': _describe(
        'fig4b',
        'Figure 4B: does connected support help with new preferences?',
        model_bars.CONNECTED,
    ),
    'fig4c': _describe(
        'fig4c',
        'Figure 4C: which models solve new preferences?',
        model_bars.COMPOSITIONAL,
    ),
}
