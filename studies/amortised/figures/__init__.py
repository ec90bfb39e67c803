"""Figures of this study, and its rows in the comparison of all learners."""

from modular_hyperteacher.figures import registry
from modular_hyperteacher.studies.amortised.figures import amortised

FIGURES = {'amortised': registry.of(amortised)}
LEARNERS = amortised.LEARNERS
