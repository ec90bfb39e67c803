"""The latents of the hyperteacher's tasks that are decoded."""

import pandas as pd

from modular_hyperteacher.figures.library import pick


def of(runs: pd.DataFrame) -> list[str]:
  """Returns the metrics of all targets of some runs: r2_l{layer}_m{module}."""
  if runs.empty:
    return []
  num_layers = max(int(runs.loc[:, 'task.teacher_num_hidden'].max()) - 1, 1)
  return [
      f'r2_l{layer}_m{module}'
      for layer in range(num_layers)
      for module in range(int(runs.loc[:, 'task.num_modules'].max()))
  ]


def undefined(runs: pd.DataFrame) -> dict[str, int]:
  """Returns the targets that have no R2 because they do not vary (OOD tasks).

  Args:
    runs: rows of one cell, or of several models on the same tasks.

  Returns:
    'layer 0, module 7' -> number of seeds without R2; {} if nothing was decoded
    at all.
  """
  metrics = of(runs)
  measured = pick.rows(runs, {'split': 'ood', 'kind': 'last'})
  measured = measured[measured['metric'].isin(metrics)]
  lacking = {}
  for metric in metrics:
    layer, module = metric.removeprefix('r2_l').split('_m')
    having = measured.loc[measured['metric'] == metric, 'seed'].nunique()
    number = measured['seed'].nunique() - having
    if number:
      lacking[f'layer {layer}, module {module}'] = number
  return lacking
