"""Scale, command, cost and origin of an experiment's runs."""

import pandas as pd

from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.library import data

_TRAIN = 'python -m modular_hyperteacher.main '


def describe(experiment: str, library: data.Library) -> dict[str, str]:
  """Returns scale, command, cost and origin of an experiment's runs."""
  frame = library.values(experiment)
  if frame.empty:
    flag = sweeps.config_flag(experiment, 'laptop')
    return {'Runs': 'none finished', 'Command': _TRAIN + flag}
  runs = frame.drop_duplicates('run_id')
  preset = runs['preset'].iloc[0]
  commits = dict.fromkeys(', '.join(runs['commit'].unique()).split(', '))
  scale = 'the published scale'
  if not runs['published_scale'].all():
    scale = 'not the published scale'
  return {
      'Scale': f'{preset}, {scale}; {len(runs)} runs',
      'Command': _TRAIN + sweeps.config_flag(experiment, preset),
      'Cost': _cost(runs),
      'Results': f'{runs["source"].iloc[0]}, of commit {", ".join(commits)}',
  }


def _cost(runs: pd.DataFrame) -> str:
  if runs['wall_s'].isna().any():
    return 'not timed'
  minutes = runs['wall_s'].sum() / 60
  devices = ', '.join(runs['device'].unique())
  hours = f'{minutes:.0f} minutes' if minutes < 600 else f'{minutes / 60:.0f} h'
  if runs['cpu_s'].notna().all():
    hours += f' (CPU time {runs["cpu_s"].sum() / 60:.0f} minutes)'
  return f'{hours} of training, on {devices}'
