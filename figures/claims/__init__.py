"""The paper's claims, from one module per area, and those of studies."""

import functools

from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.figures.claims import appendix
from modular_hyperteacher.figures.claims import beyond
from modular_hyperteacher.figures.claims import gridworlds
from modular_hyperteacher.figures.claims import hyperteacher
from modular_hyperteacher.figures.claims import parts
from modular_hyperteacher.figures.claims import theory
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import data

PAPER: tuple[verdicts.Claim, ...] = (
    *theory.CLAIMS,
    *hyperteacher.CLAIMS,
    *appendix.CLAIMS,
    *gridworlds.CLAIMS,
)
# Our own, about the paper's tasks.
BEYOND: tuple[verdicts.Claim, ...] = beyond.CLAIMS
# Parts of the paper's claims on other runs; a figure shows them, not the list.
PARTS: tuple[verdicts.Claim, ...] = parts.CLAIMS


@functools.cache
def known() -> tuple[verdicts.Claim, ...]:
  """Returns the paper's claims, ours, then those of all studies."""
  named = [study.claims for study in plugins.studies() if study.claims]
  of_studies = (claim for name in named for claim in plugins.resolve(name))
  return (*PAPER, *BEYOND, *of_studies)


def evaluate(library: data.Library) -> list[verdicts.Entry]:
  """Returns the entries of claims.json, in the order of `known`."""
  return [verdicts.evaluate(claim, library) for claim in known()]
