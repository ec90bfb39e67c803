"""One-sided paired t tests over seeds, and what several of them decide.

All functions take arrays whose last axis is the comparisons of one claim.
"""

from typing import Any

import numpy as np
from scipy import special

LEVEL = 0.05  # Of every error that a verdict may make.


def p_value(t: Any, num_seeds: Any) -> Any:
  """Returns the chance of a t as large, or larger, if the mean is the bound.

  NaN with fewer than two seeds, which cannot be tested.
  """
  freedom = np.where(np.asarray(num_seeds) > 1, np.asarray(num_seeds) - 1.0, 1)
  return np.where(
      np.asarray(num_seeds) > 1, special.stdtr(freedom, -np.asarray(t)), np.nan
  )


def quantile(num_seeds: int) -> float:
  """Returns the t that is exceeded with chance LEVEL; infinite for one seed."""
  if num_seeds < 2:
    return np.inf
  return float(special.stdtrit(num_seeds - 1, 1 - LEVEL))


def holds(t: Any, num_seeds: Any) -> np.ndarray:
  """Returns which means exceed their bounds significantly.

  All of a claim's comparisons must (an intersection-union test), so there is
  nothing to correct: a false claim has a comparison that holds with chance
  LEVEL at most.
  """
  return p_value(t, num_seeds) <= LEVEL


def is_reversed(t: Any, num_seeds: Any) -> np.ndarray:
  """Returns which means are significantly below their bounds (Holm, 1979).

  A single one contradicts the claim, so the more comparisons there are, the
  smaller the p value must be.
  """
  p = p_value(-np.asarray(t), num_seeds)
  order = np.argsort(p, axis=-1)
  remaining = np.arange(p.shape[-1], 0, -1)
  rejected = np.take_along_axis(p, order, -1) <= LEVEL / remaining
  rejected = np.logical_and.accumulate(rejected, axis=-1)
  return np.take_along_axis(rejected, np.argsort(order, axis=-1), -1)
