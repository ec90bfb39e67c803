"""Reads finished runs of a test, and decides claims by them alone."""

import pathlib

from modular_hyperteacher.figures import claims
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import data


def library(root: pathlib.Path) -> data.Library:
  """Returns the runs in a folder, without any bundled one."""
  return data.Library(root, root / 'nothing')


def claim(claim_id: str) -> verdicts.Claim:
  """Returns a claim by its id."""
  (known,) = [known for known in claims.known() if known.id == claim_id]
  return known


def judge(claim_id: str, runs: data.Library) -> verdicts.Entry:
  """Returns the verdict of some runs on a claim."""
  return verdicts.evaluate(claim(claim_id), runs)


def entry(root: pathlib.Path, claim_id: str) -> verdicts.Entry:
  """Returns the verdict of the runs in a folder on a claim."""
  return judge(claim_id, library(root))
