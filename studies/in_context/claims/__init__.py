"""Claims of this study, from one module per problem."""

from modular_hyperteacher.studies.in_context.claims import fuzzy_logic
from modular_hyperteacher.studies.in_context.claims import in_context
from modular_hyperteacher.studies.in_context.claims import sraven

CLAIMS = (*in_context.CLAIMS, *fuzzy_logic.CLAIMS, *sraven.CLAIMS)
