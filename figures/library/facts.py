"""What is known of a finished run: its origin, cost, and config's fields."""

from collections.abc import Mapping, Sequence
import math
from typing import Any

from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.library import bundles

# Columns of every run, beside the fields of its config.
COLUMNS = (
    'experiment',
    'preset',  # one of `presets.SCALES`
    'source',  # 'own' or 'bundled'
    'run_id',
    'condition',  # the same for runs that differ only in their seeds
    'described',  # whether the config describes it, whatever its seeds
    'num_seeds',
    'commit',
    'device',
    # Training time over all sessions; NaN if one is lost or untimed.
    'wall_s',
    'cpu_s',
    'published_scale',  # whether all but the seeds is as in the paper's run
)


def describe(
    run: bundles.Run, experiment: str, preset: str, source: str
) -> dict[str, Any]:
  """Returns a run's facts and fields, by column.

  Experiment and preset are those that it is shown as: it may be shared.
  """
  config, sessions = run.config, run.sessions
  commits = dict.fromkeys(str(s.get('commit')) for s in sessions)
  devices = dict.fromkeys(_device(session) for session in sessions)
  fields = {
      path: _hashable(value)
      for block in sweeps.DECISIVE
      for path, value in sweeps.flatten(config[block], f'{block}.')
  }
  is_described = run.is_described(experiment, preset)
  return {
      'experiment': experiment,
      'preset': preset,
      'source': source,
      'run_id': run.run_id,
      'condition': run.condition,
      'described': is_described,
      'num_seeds': len(config['training']['seeds']),
      'commit': ', '.join(commits),
      'device': ', '.join(devices),
      'wall_s': _total(sessions, 'wall_s'),
      'cpu_s': _total(sessions, 'cpu_s'),
      # The preset alone is not enough: its fields can be overridden.
      'published_scale': preset == 'paper' and is_described,
      **fields,
  }


def _total(sessions: Sequence[Mapping[str, Any]], name: str) -> float:
  """Returns the sum over sessions; NaN if any is lost."""
  steps = [0, *(session.get('last_step') for session in sessions)]
  for session, reached in zip(sessions, steps):
    # A killed session repeats the steps since its last checkpoint.
    if session.get('first_step', 0) > (reached or 0):
      return math.nan
  return sum(session.get(name, math.nan) for session in sessions)


def _device(session: Mapping[str, Any]) -> str:
  kind = session.get('device_kind', 'unknown device')
  return session.get('processor', kind) if kind == 'cpu' else kind


def _hashable(value: Any) -> Any:
  return tuple(map(_hashable, value)) if isinstance(value, list) else value
