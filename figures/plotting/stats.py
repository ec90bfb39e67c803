"""Means over seeds, with standard errors; when curves reach a level."""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd


class Estimate(NamedTuple):
  """A mean; NaN if there is none."""

  value: float
  standard_error: float  # NaN with fewer than two seeds.
  num_seeds: int  # Those with a value.

  @property
  def beside(self) -> tuple[float, float] | None:
    """Value and standard error, as `bars.Bar.beside`; None without seeds."""
    return (self.value, self.standard_error) if self.num_seeds else None

  def columns(self, name: str) -> dict[str, float]:
    """Returns '{name}_mean' and '{name}_se', as `tables` takes them."""
    return {f'{name}_mean': self.value, f'{name}_se': self.standard_error}


def mean(values: pd.Series | np.ndarray) -> Estimate:
  """Returns the mean over seeds and its standard error, s / sqrt(n).

  Seeds without a value (NaN) are left out.
  """
  present = np.asarray(values, float)  # Much faster than a series.
  present = present[~np.isnan(present)]
  if not len(present):
    return Estimate(math.nan, math.nan, 0)
  error = math.nan
  if len(present) > 1:
    error = math.sqrt(float(np.var(present, ddof=1)) / len(present))
  return Estimate(float(np.mean(present)), error, len(present))


def first_reach(
    x: np.ndarray, values: np.ndarray, level: float, never: float
) -> float:
  """Returns where values first rise to a level, linearly interpolated.

  The first x if they start there; `never` if they do not get there. Both x,
  which increases, and values are [n].
  """
  reached = np.flatnonzero(values >= level)
  if not len(reached):
    return never
  i = reached[0]
  if i == 0:
    return float(x[0])
  share = (level - values[i - 1]) / (values[i] - values[i - 1])
  return float(x[i - 1] + share * (x[i] - x[i - 1]))
