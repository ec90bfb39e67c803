"""Cells of the study's runs, and what figures and claims compute from them."""

import re
from typing import Any

import numpy as np
import pandas as pd

from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.studies.outer_gradients import costs

TRAINING, LONG = 'cr_training', 'cr_long'
UNROLLED = 'unrolled'
# Rule -> its name in figures, colour.
RULES = {
    UNROLLED: ('unrolled', '#000000'),
    'truncated': ('truncated', '#999999'),
    'first_order': ('first order', '#E69F00'),
    'implicit_cg': ('implicit, CG', '#F0E442'),
    'implicit_neumann': ('implicit, Neumann', '#D55E00'),
    't1_t2': ('T1-T2', '#8B4513'),
    'contrastive_standard': ('contrastive', '#CC79A7'),
    'contrastive_symmetric': ('contrastive, symmetric', '#0072B2'),
    'contrastive_second_order': ('contrastive, second order', '#56B4E9'),
    'contrastive_rescaled': ('contrastive, rescaled', '#882255'),
    'contrastive_control': ('contrastive, control run', '#44AA99'),
    'linearised_control': ('linearised, control run', '#009E73'),
}
CELL = (
    'model.name',
    'model.outer.gradient',
    'model.learn_proximal',
    'model.stop_norm',
    'task.task_support',
)
# Fields that only some rules have.
OF_RULES = tuple(
    f'model.outer.{field}'
    for field in (
        'beta',
        'max_query_loss',
        'num_nudged_steps',
        'num_iterations',
        'num_differentiated',
    )
)
CELL_LONG = (
    'model.outer.gradient',
    'model.outer.num_differentiated',
    'model.outer.num_nudged_steps',
)


def cell(
    model: str,
    gradient: str,
    *,
    learn_proximal: bool = False,
    stop_norm: bool = False,
    task_support: str = 'random',
) -> dict[str, Any]:
  """Returns the cell of a run of `configs/cr_training.py`."""
  values = (
      f'proximal_{model}',
      # The default is no part of a run's config.
      None if gradient == UNROLLED else gradient,
      learn_proximal,
      stop_norm if 'hypernetwork' in model else None,
      task_support,
  )
  return dict(zip(CELL, values, strict=True))


def cell_long(
    gradient: str, num_last_steps: int | None = None
) -> dict[str, Any]:
  """Returns the cell of a run of `configs/cr_long.py`."""
  truncated = num_last_steps if gradient == 'truncated' else None
  nudged = num_last_steps if truncated is None else None
  values = None if gradient == UNROLLED else gradient, truncated, nudged
  return dict(zip(CELL_LONG, values, strict=True))


def label(gradient: str | None, num_last_steps: int | None = None) -> str:
  """Returns the name of a rule in figures."""
  name, _ = RULES[gradient or UNROLLED]
  return f'{name}, T = {num_last_steps}' if num_last_steps else name


def shorten(name: str) -> str:
  """Returns a rule's name without its kind, for labels of bars."""
  return re.sub('contrastive, |implicit, |, control run', '', name)


def over_time(
    curves: pd.DataFrame, where: dict[str, Any], gradient: str, last: int | None
) -> pd.DataFrame:
  """Returns OOD accuracy of `cr_long`: index CPU seconds, a column per seed.

  CPU time is that of a step, measured once and alone (`costs.py`), times the
  steps: runs share their machine with others.
  """
  table = pick.over_training(curves, where, 'ood', 'accuracy')
  seconds = costs.find(gradient, num_steps=50, num_last_steps=last)['cpu_ms']
  table.index = table.index * float(seconds) / 1e3
  return table


def time_to(
    curves: pd.DataFrame,
    gradient: str,
    last: int | None,
    level: float,
    never: float,
) -> comparisons.Sample:
  """Returns log10 of the CPU seconds until OOD accuracy rises to a level.

  Interpolated; a seed that does not get there counts with `never`.
  """
  where = cell_long(gradient, last)
  table = over_time(curves, where, gradient, last)
  times = table.index.to_numpy(float)
  values = {
      seed: np.log10(
          max(stats.first_reach(times, y.to_numpy(), level, never), 1e-3)
      )
      for seed, y in table.items()
  }
  name = (
      f'log10 CPU seconds to OOD accuracy {level:.3f} ({label(gradient, last)})'
  )
  seconds = pd.Series(values, dtype=float)
  return comparisons.of_curves(curves, where, name, seconds)
