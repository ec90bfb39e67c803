"""Figures of this study, and its row in the comparison of all learners."""

from modular_hyperteacher.figures.extensions import learners
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.studies.given_tasks.figures import given_tasks

FIGURES = given_tasks.FIGURES
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
