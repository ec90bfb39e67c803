"""Power laws fitted to measurements over seeds, with bootstrap intervals.

  log y = log c + exponent log x

is fitted by least squares to the values of all seeds. The band is from a
bootstrap: seeds are resampled with replacement separately at every x, since
each x has teachers of its own. A value known only to lie between two bounds is
drawn uniformly between them. With few seeds the band is rough, and more likely
too narrow than too wide.

The same draws give the share in which an exponential, log y = a + b x, fits
better.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

MIN_SIZES = 3  # Any two points lie on a line.
_MIN_SEEDS = 2
_NUM_DRAWS = 2000
_COVERAGE = 0.95


class Law(NamedTuple):
  """A fitted power law."""

  exponent: float
  low: float  # Ends of the exponent's 95% interval.
  high: float
  curve: pd.DataFrame  # Index x; columns 'fit', 'low' and 'high' of y.
  power_law_fits_better: float  # Share of draws, against an exponential.

  @property
  def told_apart(self) -> bool:
    """Whether one of the two forms fits better in nearly all draws."""
    share = self.power_law_fits_better
    return max(share, 1 - share) >= _COVERAGE


def why_undetermined(bounds: pd.DataFrame) -> str:
  """Returns why no law can be fitted; empty if one can."""
  num_seeds = bounds.groupby('x')['seed'].nunique()
  usable = (num_seeds >= _MIN_SEEDS).sum()
  if usable >= MIN_SIZES:
    return ''
  return (
      f'not determined: {usable} sizes with {_MIN_SEEDS} seeds or more, where'
      f' {MIN_SIZES} are needed'
  )


def fit_power_law(bounds: pd.DataFrame) -> Law:
  """Returns the power law of values that lie between bounds.

  Args:
    bounds: a row per measurement: 'x', 'seed', and the positive bounds 'low'
      and 'high' of y.

  Raises:
    ValueError: if `why_undetermined` has a reason.
  """
  if reason := why_undetermined(bounds):
    raise ValueError(reason)
  x = bounds['x'].to_numpy(float)
  grid = np.geomspace(x.min(), x.max(), 41)
  middle = np.log(bounds[['low', 'high']].to_numpy(float).mean(1))
  slope, intercept = np.polyfit(np.log(x), middle, 1)
  drawn = _draw(bounds).T
  (slopes, intercepts), errors, *_ = np.polyfit(np.log(x), drawn, 1, full=True)
  _, exponential_errors, *_ = np.polyfit(x, drawn, 1, full=True)
  tails = [(1 - _COVERAGE) / 2, (1 + _COVERAGE) / 2]
  low, high = np.quantile(
      intercepts[:, None] + slopes[:, None] * np.log(grid)[None], tails, axis=0
  )
  curve = pd.DataFrame(
      np.exp(np.stack([intercept + slope * np.log(grid), low, high], axis=1)),
      index=grid,
      columns=['fit', 'low', 'high'],
  )
  low, high = np.quantile(slopes, tails).tolist()
  share = float((errors < exponential_errors).mean())
  return Law(float(slope), low, high, curve, share)


def _draw(bounds: pd.DataFrame) -> np.ndarray:
  """Returns log y of bootstrap draws of all measurements: [draws, N]."""
  rng = np.random.default_rng(0)
  rows = np.empty((_NUM_DRAWS, len(bounds)), int)
  for size in bounds['x'].unique():
    at_size = np.flatnonzero(bounds['x'] == size)
    rows[:, at_size] = rng.choice(at_size, (_NUM_DRAWS, len(at_size)))
  low, high = (bounds[end].to_numpy(float)[rows] for end in ('low', 'high'))
  return np.log(rng.uniform(low, high))
