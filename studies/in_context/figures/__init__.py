"""Figures of this study, and its rows in the comparison of all learners."""

from collections.abc import Mapping

from modular_hyperteacher.figures import registry
from modular_hyperteacher.studies.in_context.figures import fuzzy_logic
from modular_hyperteacher.studies.in_context.figures import in_context
from modular_hyperteacher.studies.in_context.figures import (
    in_context_hyperteacher,
)
from modular_hyperteacher.studies.in_context.figures import in_context_sizes
from modular_hyperteacher.studies.in_context.figures import sraven

FIGURES: Mapping[str, registry.Figure] = {
    'in_context': registry.of(in_context),
    'in_context_sizes': in_context_sizes.FIGURE,
    'in_context_hyperteacher': (
        registry.of(
            in_context_hyperteacher, *in_context_hyperteacher.EXPERIMENTS[1:]
        )._replace(preset='laptop')
    ),
    **fuzzy_logic.FIGURES,
    **sraven.FIGURES,
}
LEARNERS = in_context_hyperteacher.LEARNERS
