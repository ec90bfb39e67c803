"""Figures A8 and A10: the students' width and modules, on the grid worlds.

Learning rates are chosen as for Figure 3F.
"""

from typing import Any

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.paper import fig3f
from modular_hyperteacher.figures.paper import fig4b

SIZE = ('model.hidden_dim', 'model.num_modules')
CELL = ('model.name', *SIZE, 'model.outer.learning_rate')


def _describe(metric: str, *notes: Any, **fields: Any) -> described.Figure:
  return described.heat_grid(
      cell=CELL,
      panels=lambda grid: fig3f.make_panels(grid, metric, SIZE),
      notes=(*notes, fig3f.notes),
      x_title="student's width",
      y_title="student's modules",
      **fields,
  )


FIGURE_A8 = _describe(
    'loss',
    fig4b.LOSS_NOTE,
    title='Figure A8: do larger students lose more on new preferences?',
    experiment='fig_a8',
    measures={name: (name, 'loss') for name in ('test', 'ood', 'valid')},
    z_title='OOD loss (lower is better)',
    higher_is_better=False,
)
FIGURE_A10 = _describe(
    'accuracy',
    title='Figure A10: are larger students less accurate on new goals?',
    experiment='fig_a10',
    measures={
        'test': ('test', 'accuracy'),
        'ood': ('ood', 'accuracy'),
        'valid_loss': ('valid', 'loss'),
    },
    z_title='OOD accuracy',
)
