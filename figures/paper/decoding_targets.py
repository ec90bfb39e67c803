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


def name(metric: str) -> str:
  """Returns how captions refer to a target: 'layer 0, module 7'."""
  layer, module = metric.removeprefix('r2_l').split('_m')
  return f'layer {layer}, module {module}'


def undefined(runs: pd.DataFrame) -> dict[str, int]:
  """Returns the targets that have no R2 because they do not vary (OOD tasks).

  Args:
    runs: rows of one cell, or of several models on the same tasks.

  Returns:
    metric -> number of seeds without R2; {} if nothing was decoded at all.
  """
  targets = of(runs)
  measured = pick.rows(runs, {'split': 'ood', 'kind': 'last'})
  measured = measured.loc[measured['metric'].isin(targets)]
  every = set(measured['seed'])
  lacking = {
      target: len(every - set(pick.rows(measured, {'metric': target})['seed']))
      for target in targets
  }
  return {target: number for target, number in lacking.items() if number}
