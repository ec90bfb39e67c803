"""What figures and claims compute from curves: times, and values at an end.

A time is in outer steps, interpolated between evaluations. A seed that never
gets to a level counts with all of its steps, as in Figure A3.
"""

from collections.abc import Mapping
import math
from typing import Any

import numpy as np
import pandas as pd
import scipy.stats

from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.studies.learning_dynamics import supports
from modular_hyperteacher.studies.learning_dynamics import theory

EXPERIMENT = 'learning_dynamics'
EARLY = 'learning_dynamics_early'
CELL = ('task.latent_type', 'task.task_support')
MODULES = 'ld_modules'
CELL_MODULES = ('task.num_modules',)
RELATIVE_LOSS = 'pooled_relative_loss'
ALIGNED = 0.9  # Module alignment on new combinations.
DECODED = 0.9  # R2 of a module's latent on new combinations.
# Relative loss on training families; it is 0.5 for outputs of zero.
LEARNED = 0.05
# Loss on seen combinations, in nats. The means of Figure A3's bundled
# runs, which were known before, reach it with four to ten modules.
LEVEL_MODULES = 0.4


def cell(latent_type: str, task_support: str) -> dict[str, Any]:
  """Returns the cell of a run of `configs/learning_dynamics.py`."""
  return dict(zip(CELL, (latent_type, task_support)))


def label(latent_type: str, task_support: str) -> str:
  """Returns the name of a run in figures."""
  name = task_support.removeprefix(f'{latent_type}_').replace('_', ' ')
  return f'{latent_type}: {name}'


def steps_to(
    curves: pd.DataFrame,
    where: Mapping[str, Any],
    split: str,
    metric: str,
    level: float,
) -> pd.Series:
  """Returns the outer steps until a metric gets to a level, by seed.

  Losses fall to it, all other metrics rise to it.
  """
  table = pick.over_training(curves, where, split, metric)
  sign = -1.0 if metric.endswith('loss') else 1.0
  return pd.Series(
      {
          seed: min(
              stats.first_reach(
                  table.index.to_numpy(float),
                  sign * values.fillna(-sign * np.inf).to_numpy(),
                  sign * level,
                  never=np.inf,
              ),
              table.index[-1],
          )
          for seed, values in table.items()
      },
      dtype=float,
  )


def at_share(
    curves: pd.DataFrame,
    where: Mapping[str, Any],
    split: str,
    metric: str,
    share: float = 1.0,
) -> pd.Series:
  """Returns a metric at the last evaluation within a share of training.

  By seed; at the first evaluation if none is within it.
  """
  table = pick.over_training(curves, where, split, metric)
  if table.empty:
    return pd.Series(dtype=float)
  runs = pick.runs(curves, where)
  last = share * runs['training.num_outer_steps'].max()
  return table.iloc[max(int((table.index <= last).sum()), 1) - 1]


def sample(
    name: str,
    values: pd.Series,
    curves: pd.DataFrame,
    where: Mapping[str, Any],
    split: str,
) -> comparisons.Sample:
  """Returns a derived quantity of a cell, over seeds."""
  shown = f'{name} ({style.cell_name(where)})'
  return comparisons.of_curves(curves, where, shown, values, split, name)


def steps_sample(
    curves: pd.DataFrame,
    where: Mapping[str, Any],
    split: str,
    metric: str,
    level: float,
) -> comparisons.Sample:
  """Returns log10 of `steps_to`, as a sample."""
  steps = steps_to(curves, where, split, metric, level).map(math.log10)
  name = f'log10 steps to {metric} {level:g}, {split}'
  return sample(name, steps, curves, where, split)


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
  """Returns Spearman's rank correlation; 0 if either is constant.

  Numbers count as equal if nine digits are: how the others are rounded differs
  between libraries of linear algebra.
  """
  first, second = (
      np.array([float(f'{number:.9g}') for number in numbers])
      for numbers in (first, second)
  )
  if np.ptp(first) == 0 or np.ptp(second) == 0:
    return 0.0
  correlation: Any = scipy.stats.spearmanr(first, second)
  return float(correlation.statistic)


def module_times(latent_type: str, task_support: str) -> np.ndarray:
  """Returns the mean predicted time of each module, [M]; see `theory`.

  Its inverse is the module's eigenvalue: that of E[z z'], averaged over the
  directions in which the module has a share.
  """
  moment = supports.moment(latent_type, task_support)
  return np.array([theory.mean_time(unit, moment) for unit in np.eye(6)])


def family_times(latent_type: str, task_support: str) -> dict[str, float]:
  """Returns the same of each family: its split's name -> predicted time."""
  moment = supports.moment(latent_type, task_support)
  families = np.unique(supports.masks(task_support), axis=0)
  return {
      supports.family_split(family): theory.mean_time(
          family.astype(float), moment
      )
      for family in families
  }
