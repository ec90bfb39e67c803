"""Figures 4B and 4C: the loss on new preferences, by support and model.

The loss is what the models minimise: half the squared error of the predicted
action values, summed over the five actions. Lower is better.
"""

from modular_hyperteacher.figures.paper import model_bars

# In the captions of all figures on preferences.
LOSS_NOTE = (
    'Loss: half the squared error of the action values, summed over the five'
    ' actions: 2.5 × the mean squared error. Lower is better.'
)
GRIDS = {
    name: model_bars.describe(
        'loss',
        supports,
        title=title,
        experiment=name,
        measures={
            'test_loss': ('test', 'loss'),
            'ood_loss': ('ood', 'loss'),
            'r2': ('ood', 'r2'),
            'relative_return': ('ood', 'relative_return'),
        },
        notes=(LOSS_NOTE,),
        options={'y_title': 'OOD loss (lower is better)'},
    )
    for name, title, supports in (
        (
            'fig4b',
            'Figure 4B: loss on new preferences, connected support or not',
            ('connected', 'disconnected'),
        ),
        (
            'fig4c',
            'Figure 4C: loss on new preferences, compositional support or not',
            ('random', 'non_compositional'),
        ),
    )
}
