"""Figures of this study, and its row in the comparison of all learners."""

from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.extensions import learners
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.studies.given_tasks.figures import given_tasks

FIGURES = {
    name: registry.Figure(
        given_tasks.TITLES[name], (given_tasks.EXPERIMENT,), draw
    )
    for name, draw in given_tasks.DRAW.items()
} | {
    'sg_given_or_inferred': registry.Figure(
        given_tasks.TITLES['sg_given_or_inferred'],
        (given_tasks.GIVEN, 'fig3b'),
        given_tasks.draw_given,
    )
}
LEARNERS = (
    learners.Learner(
        name='MLP',
        infers='given: the mask',
        experiment='given_or_inferred',
        fields={'model.name': 'multitask_mlp'},
        kind=learners.Kind('given', style.INK),
        decoding='decoding_r2_last',
    ),
)
