"""The papers' claims and ours, from one module per area."""

from figures.claims import amortised
from figures.claims import appendix
from figures.claims import beyond
from figures.claims import fuzzy_logic
from figures.claims import given_tasks
from figures.claims import gridworlds
from figures.claims import hyperteacher
from figures.claims import in_context
from figures.claims import seq2seq
from figures.claims import sparse_maml
from figures.claims import sraven
from figures.claims import theory
from figures.claims import verdicts
from figures.library import data

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
