"""Figures of this study, and its rows in the comparison of all learners."""

from collections.abc import Mapping

from modular_hyperteacher.figures import registry
from modular_hyperteacher.studies.in_context.figures import fuzzy_logic
from modular_hyperteacher.studies.in_context.figures import in_context
from modular_hyperteacher.studies.in_context.figures import in_context_bridge
from modular_hyperteacher.studies.in_context.figures import in_context_sizes
from modular_hyperteacher.studies.in_context.figures import sraven

FIGURES: Mapping[str, registry.Figure] = {
    'in_context': registry.of(in_context),
    'in_context_sizes': registry.of(in_context_sizes),
    'in_context_hyperteacher': registry.of(
        in_context_bridge, *in_context_bridge.EXPERIMENTS[1:]
    ),
    'fuzzy_logic': registry.Figure(
        fuzzy_logic.TITLE_2C, (fuzzy_logic.EXPERIMENT,), fuzzy_logic.draw_2c
    ),
    'fuzzy_logic_a1': registry.Figure(
        fuzzy_logic.TITLE_A1, (fuzzy_logic.EXPERIMENT,), fuzzy_logic.draw_a1
    ),
    'fuzzy_logic_decoding': registry.Figure(
        fuzzy_logic.TITLE_DECODING,
        (fuzzy_logic.EXPERIMENT,),
        fuzzy_logic.draw_decoding,
    ),
    'sraven': registry.of(sraven),
    'sraven_decoding': registry.Figure(
        sraven.TITLE_DECODING, (sraven.EXPERIMENT,), sraven.draw_decoding
    ),
}
LEARNERS = in_context_bridge.LEARNERS
