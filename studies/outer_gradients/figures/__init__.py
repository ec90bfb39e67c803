"""Figures of this study, and its rows in the comparison of all learners."""

from modular_hyperteacher.figures.extensions import learners
from modular_hyperteacher.studies.outer_gradients import measures
from modular_hyperteacher.studies.outer_gradients.configs import cr_training
from modular_hyperteacher.studies.outer_gradients.figures import constructed
from modular_hyperteacher.studies.outer_gradients.figures import trained

FIGURES = {**constructed.FIGURES, **trained.FIGURES}
LEARNERS = tuple(
    learners.Learner(
        name=f'linear, {measures.label(rule)}',
        infers='10 steps, proximal',
        experiment=measures.TRAINING,
        fields=measures.cell('linear_hypernetwork', rule),
        kind=learners.Kind('gradients, not unrolled', '#882255'),
    )
    for rule in cr_training.ALL
)
