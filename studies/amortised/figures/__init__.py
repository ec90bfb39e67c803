"""Figures of this study, and its rows in the comparison of all learners."""

from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.extensions import learners
from modular_hyperteacher.studies.amortised.figures import amortised

FIGURES = {'amortised': registry.of(amortised)}
LEARNERS = tuple(
    learners.Learner(
        name=name,
        infers='forward pass' + (f', {steps} steps' if steps else ''),
        experiment='amortised',
        fields={'model.name': model, 'model.inner.num_steps': steps},
        colour='#CC79A7',
    )
    for steps in (0, 3)
    for model, name in (
        ('amortised_linear_hypernetwork', 'linear hypernetwork'),
        ('amortised_nonlinear_hypernetwork', 'nonlinear hypernetwork'),
    )
)
