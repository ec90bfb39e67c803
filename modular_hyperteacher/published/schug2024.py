"""Published numbers of Schug et al. (2024), Tables A1-A8."""

from collections.abc import Mapping
import functools
import pathlib
from typing import Any

import pandas as pd

_PATH = pathlib.Path(__file__).parent / 'schug2024.csv'
_MODELS = {
    'anil': 'ANIL',
    'maml': 'MAML',
    'linear_hypernetwork': 'Linear hypernetwork',
    'nonlinear_hypernetwork': 'Nonlinear hypernetwork',
}
# Tables A2-A8 share these values; they vary M and K.
_TABULATED = {
    'task_support': 'random',
    'fraction_ood': 0.25,
    'num_support': 256,
    'teacher_hidden_dim': 32,
}
_KEYS = ['task', 'num_modules', 'max_modules_per_task', 'model', 'metric']


@functools.cache
def table() -> pd.DataFrame:
  """Returns all published values."""
  return pd.read_csv(_PATH)


def accuracy(
    config: Mapping[str, Any], split: str
) -> tuple[float, float] | None:
  """Returns the published accuracy of a config at the published scale.

  Returns:
    Fractions (mean, standard deviation or error; the paper does not say which)
    of a split, such as 'ood' or 'ood_k8'. None if nothing is published.
  """
  task = config['task']
  if any(task.get(field) != value for field, value in _TABULATED.items()):
    return None
  metric = split.replace('ood_k', 'ood_accuracy_k')
  metric = metric if metric != split else f'{split}_accuracy'
  return _look_up(
      task['name'],
      task.get('num_modules'),
      task.get('max_active'),
      _MODELS.get(config['model']['name']),
      metric,
  )


@functools.cache
def _look_up(*values: Any) -> tuple[float, float] | None:
  """Returns the number in the one row with these values of _KEYS, if any."""
  frame = table()
  rows = frame[(frame[_KEYS] == list(values)).all(axis=1)]
  if len(rows) != 1:
    return None
  return float(rows['mean'].iloc[0]) / 100, float(rows['std'].iloc[0]) / 100


def table_a1() -> list[tuple[float, int, float]]:
  """Returns (weight decay, column, module alignment) of all of Table A1.

  The paper does not say which student sizes columns 1 to 4 stand for.
  """
  frame = table()
  rows = frame[frame['artifact'] == 'Table A1']
  fields = rows['model'].str.extract(r'column (\d) of 4.*weight decay ([\d.]+)')
  return [
      (float(weight_decay), int(column), value)
      for column, weight_decay, value in zip(
          fields[0], fields[1], rows['mean'].astype(float)
      )
  ]
