"""The papers' claims and ours, from one module per area."""

from modular_hyperteacher.figures.claims import appendix
from modular_hyperteacher.figures.claims import beyond
from modular_hyperteacher.figures.claims import gridworlds
from modular_hyperteacher.figures.claims import hyperteacher
from modular_hyperteacher.figures.claims import theory
from modular_hyperteacher.figures.claims import verdicts
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.studies.amortised import claims as amortised
from modular_hyperteacher.studies.given_tasks import claims as given_tasks
from modular_hyperteacher.studies.in_context.claims import fuzzy_logic
from modular_hyperteacher.studies.in_context.claims import in_context
from modular_hyperteacher.studies.in_context.claims import sraven
from modular_hyperteacher.studies.meta_seq2seq import claims as seq2seq
from modular_hyperteacher.studies.sparse_maml import claims as sparse_maml

CLAIMS: tuple[verdicts.Claim, ...] = (
    *theory.CLAIMS,
    *hyperteacher.CLAIMS,
    *appendix.CLAIMS,
    *gridworlds.CLAIMS,
    *beyond.CLAIMS,
    *amortised.CLAIMS,
    *sparse_maml.CLAIMS,
    *given_tasks.CLAIMS,
    *seq2seq.CLAIMS,
    *in_context.CLAIMS,
    *fuzzy_logic.CLAIMS,
    *sraven.CLAIMS,
)


def evaluate(library: data.Library) -> list[verdicts.Entry]:
  """Returns the entries of claims.json, in the order of CLAIMS."""
  return [verdicts.evaluate(claim, library) for claim in CLAIMS]
