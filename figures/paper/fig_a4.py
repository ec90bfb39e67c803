"""Figures A4 and A5: OOD accuracy over shots, and over the held-out share."""

from modular_hyperteacher.figures import described

_MEASURES = {name: (name, 'accuracy') for name in ('train', 'test', 'ood')}
_SHOTS, _SHARE = 'task.num_support', 'task.fraction_ood'
CELL_A4 = ('model.name', 'task.num_modules', 'task.max_active', _SHOTS)
CELL_A5 = ('model.name', 'task.num_modules', _SHARE)
FIGURES = {
    'fig_a4': described.line_grid(
        title='Figure A4: how many examples does a new task take?',
        experiment='fig_a4',
        cell=CELL_A4,
        panels=described.split(
            'M = {num_modules}, K = {max_active}',
            described.over(_SHOTS, {'ood': 'solid'}),
        ),
        measures=_MEASURES,
        ticks=lambda grid: grid.axis('num_support'),
        x_title='examples to adapt on, per task',
        y_title='OOD accuracy',
        x_type='log',
    ),
    'fig_a5': described.line_grid(
        title='Figure A5: how many combinations can be held out?',
        experiment='fig_a5',
        cell=CELL_A5,
        panels=described.split(
            'M = {num_modules}',
            # The long dashes of other figures look too much like OOD's.
            described.over(_SHARE, {'train': 'solid', 'ood': 'dash'}),
        ),
        measures=_MEASURES,
        x_title='share of combinations held out',
        y_title='accuracy',
    ),
}
