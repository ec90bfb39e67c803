"""Power laws through measurements over seeds, and how well they are known.

  log y = log c + exponent log x

is fitted by least squares to the values of all seeds. The band is that of a
bootstrap: seeds are drawn with replacement at every x, as different x are
different teachers; and where a value is known only to lie between two bounds,
it is drawn from there. With few seeds such a band is rough, and rather too
narrow than too wide.

Whether an exponential, log y = a + b x, fits better is counted over the same
draws.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

MIN_SIZES = 3  # Two points are on a line in any case.
_MIN_SEEDS = 2
_NUM_DRAWS = 2000
_COVERAGE = 0.95


class Law(NamedTuple):
  """A fitted power law."""

  exponent: float
  low: float  # End of the exponent's interval of 95%.
  high: float
  curve: pd.DataFrame  # Index x; columns 'fit', 'low' and 'high' of y.
  power_law_fits_better: float  # Share of draws, against an exponential.

  @property
  def told_apart(self) -> bool:
    """Whether data favour one of the two forms in nearly all draws."""
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
  """Returns the law of what lies between bounds.

  Args:
    bounds: a row per measurement: 'x', 'seed', and 'low' and 'high', between
      which y lies; both positive.

  Raises:
    ValueError: if `why_undetermined` has a reason.
  """
  if reason := why_undetermined(bounds):
    raise ValueError(reason)
  x = bounds['x'].to_numpy(float)
  grid = np.geomspace(x.min(), x.max(), 41)
  middle = np.log(bounds[['low', 'high']].to_numpy(float).mean(1))
  slope, intercept, _ = _fit_lines(np.log(x), middle)
  drawn = _draw(bounds)
  slopes, intercepts, errors = _fit_lines(np.log(x), drawn)
  _, _, exponential_errors = _fit_lines(x, drawn)
  tails = [(1 - _COVERAGE) / 2, (1 + _COVERAGE) / 2]
  low, high = np.quantile(
      intercepts[:, None] + slopes[:, None] * np.log(grid)[None], tails, axis=0
  )
  curve = pd.DataFrame(
      np.exp(np.stack([intercept + slope * np.log(grid), low, high], axis=1)),
      index=grid,
      columns=['fit', 'low', 'high'],
  )
  return Law(
      float(slope),
      *np.quantile(slopes, tails).tolist(),
      curve,
      float((errors < exponential_errors).mean()),
  )


def _draw(bounds):
  """Returns log y of as many measurements, drawn again: [draws, N]."""
  rng = np.random.default_rng(0)
  rows = np.empty((_NUM_DRAWS, len(bounds)), int)
  for size in bounds['x'].unique():
    at_size = np.flatnonzero(bounds['x'] == size)
    rows[:, at_size] = rng.choice(at_size, (_NUM_DRAWS, len(at_size)))
  low, high = (bounds[end].to_numpy(float)[rows] for end in ('low', 'high'))
  return np.log(rng.uniform(low, high))


def _fit_lines(x, y):
  """Returns slopes, intercepts and squared errors of lines through points.

  Args:
    x: [N].
    y: [..., N].
  """
  centred = x - x.mean()
  slopes = y @ centred / (centred**2).sum()
  intercepts = y.mean(-1) - slopes * x.mean()
  fitted = intercepts[..., None] + slopes[..., None] * x
  return slopes, intercepts, ((y - fitted) ** 2).sum(-1)
