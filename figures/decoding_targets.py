"""Which latents of the hyperteacher's tasks are decoded."""

import pandas as pd


def of(runs: pd.DataFrame) -> list[str]:
  """Returns the metrics of all targets of some runs: r2_l{layer}_m{module}."""
  if runs.empty:
    return []
  layers = (runs['task.teacher_num_hidden'] - 1).clip(lower=1).max()
  modules = runs['task.num_modules'].max()
  return [
      f'r2_l{layer}_m{module}'
      for layer in range(int(layers))
      for module in range(int(modules))
  ]


def name(metric: str) -> str:
  """Returns how captions refer to a target: 'layer 0, module 7'."""
  layer, module = metric.removeprefix('r2_l').split('_m')
  return f'layer {layer}, module {module}'


def undefined(runs: pd.DataFrame) -> dict[str, int]:
  """Returns the targets without R2, as they do not vary over OOD tasks.

  Args:
    runs: rows of one cell or of models on the same tasks.

  Returns:
    metric -> in how many of the seeds; {} if nothing was decoded at all.
  """
  targets = of(runs)
  measured = runs[runs['metric'].isin(targets) & (runs['split'] == 'ood')]
  measured = measured[measured['kind'] == 'last']
  seeds = measured.groupby('metric', observed=True)['seed'].unique()
  every = set(measured['seed'])
  lacking = {t: len(every - set(seeds.get(t, ()))) for t in targets}
  return {t: number for t, number in lacking.items() if number and every}
