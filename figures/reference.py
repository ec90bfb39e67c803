"""What the paper ran and what it found, to set beside ours."""

import functools
import importlib
from typing import Any

from modular_hyperteacher import published
from modular_hyperteacher import sweeps

# Which seeds were drawn is not a matter of scale.
_FREE_FIELDS = ('training.seeds', 'training.prng_impl')


@functools.cache
def published_runs(experiment: str) -> tuple[sweeps.Run, ...]:
  """Returns the runs at the published scale; none for an unknown experiment."""
  name = f'configs.{experiment}'
  try:
    module = importlib.import_module(name)
  except ModuleNotFoundError as error:
    if error.name != name:
      raise
    return ()
  return tuple(sweeps.expand(module.get_config('paper')))


def is_published_scale(
    experiment: str, preset: str, config: dict[str, Any]
) -> bool:
  """Returns whether a run is what the paper ran, down to every field.

  The preset alone does not say: any of its fields can be overridden.
  """
  run = sweeps.Run(experiment, preset, config, run_id='')
  runs = list(published_runs(experiment))
  changed = set(sweeps.deviations(run, runs)) - set(_FREE_FIELDS)
  return preset == 'paper' and not changed


def published_accuracy(
    experiment: str, model: str, task_support: str, split: str
) -> tuple[float, float] | None:
  """Returns a tabulated accuracy, as fractions.

  Returns:
    (mean, dispersion as printed), or None where the paper has no number.
  """
  for run in published_runs(experiment):
    names = run.config['model']['name'], run.config['task'].get('task_support')
    if names == (model, task_support):
      return published.accuracy(run.config, split)
  return None
