"""The papers' claims, and some of ours, collected from a module per area."""

from typing import Any

from figures import data
from figures import verdicts
from figures.claims import amortised
from figures.claims import appendix
from figures.claims import beyond
from figures.claims import gridworlds
from figures.claims import hyperteacher
from figures.claims import seq2seq
from figures.claims import theory

CLAIMS: tuple[verdicts.Claim, ...] = (
    *theory.CLAIMS,
    *hyperteacher.CLAIMS,
    *appendix.CLAIMS,
    *gridworlds.CLAIMS,
    *beyond.CLAIMS,
    *amortised.CLAIMS,
    *seq2seq.CLAIMS,
)


def evaluate(library: data.Library) -> list[dict[str, Any]]:
  """Returns the entry of claims.json of every claim, in order."""
  return [verdicts.evaluate(claim, library) for claim in CLAIMS]
