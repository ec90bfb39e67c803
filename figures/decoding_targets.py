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
