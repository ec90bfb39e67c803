"""Rules of made-up results of the hyperteacher: fields -> mean over seeds."""

from collections.abc import Callable
import math
from typing import Any

from modular_hyperteacher.figures.plotting import style

# (fields of the config by path, split, metric) -> mean over seeds.
Rule = Callable[[dict[str, Any], str, str], float]


def constant(fields: dict[str, Any], split: str, metric: str) -> float:
  del fields, split, metric
  return 0.5


def by_support(
    compositional: float, other: float, connected: float, disconnected: float
) -> Rule:
  values = dict(
      random=compositional,
      non_compositional=other,
      connected=connected,
      disconnected=disconnected,
  )
  return lambda fields, split, metric: values[fields['task.task_support']]


def by_k(
    single: float, combined: float, r2_single: float, r2_combined: float
) -> Rule:
  """ANIL and MAML are 0.1 below the hypernetworks."""

  def rule(fields: dict[str, Any], split: str, metric: str) -> float:
    of_metric = {'accuracy': (single, combined), 'r2': (r2_single, r2_combined)}
    low, high = of_metric.get(metric, (0.5, 0.5))
    if fields['model.name'] in style.MONOLITHIC:
      low, high = low - 0.1, high - 0.1
    return low if fields['task.max_active'] == 1 else high

  return rule


def by_size(smallest: float, middle: float, largest: float) -> Rule:
  def rule(fields: dict[str, Any], split: str, metric: str) -> float:
    width = fields['model.hidden_dim']
    of_width = {8: smallest, 32: middle, 64: largest}
    return 1 - of_width[width] if metric == 'loss' else of_width[width]

  return rule


def growing(fields: dict[str, Any], split: str, metric: str) -> float:
  """The larger the student, the better."""
  del split
  modules = fields['model.modules_per_teacher_module']
  value = 0.4 + 0.02 * math.log2(fields['model.hidden_dim'] * modules)
  return 1 - value if metric == 'loss' else value


def by_shots(slope: float) -> Rule:
  return lambda fields, split, metric: (
      0.5 + slope * math.log2(fields['task.num_support'])
  )


def by_fraction(fall_small: float, fall_large: float, fall_seen: float) -> Rule:
  def rule(fields: dict[str, Any], split: str, metric: str) -> float:
    small = fields['task.num_modules'] == 6
    fall = fall_small if small else fall_large
    fall = fall_seen if split == 'test' else fall
    return 0.9 - fall * fields['task.fraction_ood']

  return rule
