"""One-sided paired t tests over seeds, with correction for several tests.

The last axis of every array runs over the comparisons of one claim.
"""

from typing import Any

import numpy as np
from scipy import special

LEVEL = 0.05  # Significance level of SUPPORTED and of CONTRADICTED.


def p_value(t: Any, num_seeds: Any) -> Any:
  """Returns the one-sided p value; NaN with fewer than two seeds."""
  return special.stdtr(np.asarray(num_seeds) - 1.0, -np.asarray(t))


def quantile(num_seeds: int) -> float:
  """Returns the t that is exceeded with chance LEVEL; infinite for one seed."""
  if num_seeds < 2:
    return np.inf
  return float(special.stdtrit(num_seeds - 1, 1 - LEVEL))


def holds(t: Any, num_seeds: Any) -> np.ndarray:
  """Returns which means exceed their bounds significantly.

  A claim needs all its comparisons to hold (an intersection-union test). No
  correction is needed: if the claim is false, one of its comparisons is false,
  and that one holds with probability at most LEVEL.
  """
  return p_value(t, num_seeds) <= LEVEL


def is_reversed(t: Any, num_seeds: Any) -> np.ndarray:
  """Returns which means are significantly below their bounds (Holm, 1979).

  A single reversal contradicts the claim, so p values are corrected for the
  number of comparisons.
  """
  p = p_value(-np.asarray(t), num_seeds)
  order = np.argsort(p, axis=-1)
  remaining = np.arange(p.shape[-1], 0, -1)
  rejected = np.take_along_axis(p, order, -1) <= LEVEL / remaining
  rejected = np.logical_and.accumulate(rejected, axis=-1)
  return np.take_along_axis(rejected, np.argsort(order, axis=-1), -1)
