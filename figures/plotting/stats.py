"""Means and differences over seeds, each with its standard error."""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd


class Estimate(NamedTuple):
  """A mean or a difference of means; NaN if there is none."""

  value: float
  standard_error: float  # NaN with fewer than two seeds.
  num_seeds: int  # Of the smaller sample.


def mean(values: pd.Series | np.ndarray) -> Estimate:
  """Returns the mean over seeds and its standard error, s / sqrt(n).

  Seeds without a value (NaN) are left out.
  """
  found = np.asarray(values, float)  # Much faster than a series.
  found = found[~np.isnan(found)]
  if not len(found):
    return Estimate(math.nan, math.nan, 0)
  return Estimate(
      float(np.mean(found)), math.sqrt(_squared_error(found)), len(found)
  )


def _squared_error(values: np.ndarray) -> float:
  if len(values) < 2:
    return math.nan
  return float(np.var(values, ddof=1)) / len(values)
