"""Contradicted claims, with some of their runs trained four times as long."""

from collections.abc import Sequence
import dataclasses
import functools

import pandas as pd

from figures.claims import comparisons
from figures.claims import gridworlds
from figures.claims import hyperteacher
from figures.claims import over_training
from figures.claims import verdicts

TITLE = 'Contradicted claims: do they hold after four times the training?'
_CONTRADICTED = ('3E', '3F', '4C-1', 'A10')


def _compare(
    compare: verdicts.Compare, frame: pd.DataFrame
) -> Sequence[comparisons.Comparison]:
  """Returns the comparisons whose runs are among those trained longer."""
  found = compare(frame)
  return [c for c in found if all(len(s.runs) for s in c.samples)]


# They read `configs/<experiment>_longer.py` in place of their own experiment.
CLAIMS = tuple(
    dataclasses.replace(
        claim,
        experiment=f'{claim.experiment}_longer',
        compare=functools.partial(_compare, claim.compare),
    )
    for area in (hyperteacher, gridworlds)
    for claim in area.CLAIMS
    if claim.id in _CONTRADICTED
)

draw = functools.partial(over_training.draw, CLAIMS, title=TITLE)
