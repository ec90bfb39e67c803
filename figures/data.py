"""Finished runs as one long table per experiment.

Every field of a run's config is a column, named by its path ('model.name',
'task.num_modules'), so that a figure tells its cells apart by whatever fields
it likes.

The same config is the same run. A run is one of an experiment's if it lies in
the experiment's folder, or if it lies in another experiment's and is, by the
content hash in its id, what the experiment's own config describes. So figures
share runs without knowing of each other.

The bundled results lie in the folder `data/` beside this file.
"""

import functools
import hashlib
import json
import math
import pathlib
from typing import Any, Mapping

import numpy as np
import pandas as pd

from configs import common
from figures import reference
from figures import storage
from modular_hyperteacher import sweeps

BUNDLED = pathlib.Path(__file__).parent / 'data'
# Of every run, beside the fields of its config.
FACTS = (
    'experiment',
    'preset',  # 'smoke', 'laptop' or 'paper'
    'source',  # 'own' or 'bundled'
    'run_id',
    'condition',  # the same for runs that differ in their seeds alone
    'num_seeds',
    'commit',
    'device',
    # Of training, over all sessions; NaN if one did not record it, or is lost.
    'wall_s',
    'cpu_s',  # of processors
    'published_scale',  # whether nothing differs from what the paper ran
)
VALUES = (
    'seed',
    'kind',  # evaluated at the 'last' step or at 'best_validation'
    'split',
    'metric',
    'value',
)
CURVES = ('step', 'seed', 'split', 'metric', 'value')

# A user's own results come first; smoke results say nothing about a claim.
_PREFERENCE = (
    (('own', 'paper'), ('own', 'laptop')),
    tuple(('bundled', preset) for preset in reversed(common.PRESETS)),
    (('own', 'smoke'),),
)


class Library:
  """All finished runs that there are."""

  def __init__(
      self, results_root: pathlib.Path, bundled_root: pathlib.Path = BUNDLED
  ):
    """Reads all results but the curves.

    Args:
      results_root: the folder that training wrote to; need not exist.
      bundled_root: the folder of the bundles.

    Raises:
      UserError: if a file is damaged; names it.
    """
    self._folders = {
        (source, folder.parent.name, folder.name): folder
        for source, root in (('own', results_root), ('bundled', bundled_root))
        for folder in sorted(root.glob('*/*'))
        if folder.name in common.PRESETS and storage.has_results(folder)
    }
    self._finished = {
        place: storage.read(folder) for place, folder in self._folders.items()
    }

  def values(self, experiment: str) -> pd.DataFrame:
    """Returns a row per run, seed, kind, split and metric.

    From one source and preset only: the user's own results and, failing those,
    the bundled ones, at the preset with the most finished runs, the larger
    preset if equal. The user's smoke results come last of all.

    Returns:
      Columns FACTS, VALUES and the config's fields. What was not measured has
      no row.
    """
    return self._values(experiment, *self._choose(experiment))

  def every_preset(self, experiment: str) -> pd.DataFrame:
    """Returns the same of all presets, own results before bundled ones."""
    frames = []
    for preset in reversed(common.PRESETS):
      for source in ('own', 'bundled'):
        frame = self._values(experiment, source, preset)
        if len(frame):
          frames.append(frame)
          break
    return pd.concat(frames, ignore_index=True) if frames else empty()

  def curves(self, experiment: str) -> pd.DataFrame:
    """Returns the metrics at every evaluation, of the runs of `values`.

    Returns:
      Columns FACTS, CURVES and the config's fields.
    """
    source, preset = self._choose(experiment)
    found = self._find(experiment, source, preset)
    if not found:
      return pd.DataFrame(columns=list(FACTS + CURVES))
    curves = {place: self._read_curves(place) for place in found}
    return self._join(curves, experiment, source, preset, found)

  def stale(self) -> list[str]:
    """Returns the bundled runs that no current config describes."""
    return [
        f'{experiment}/{preset}/{run_id}'
        for (source, experiment, preset), finished in self._finished.items()
        if source == 'bundled'
        for run_id in finished.runs
        if sweeps.digest(run_id) not in _described(experiment, preset)
    ]

  def _choose(self, experiment):
    """Returns the source and preset that an experiment is read from."""
    for borrow in (False, True):
      for places in _PREFERENCE:
        counts = [
            sum(map(len, self._find(experiment, *place, borrow).values()))
            for place in places
        ]
        if any(counts):
          return places[counts.index(max(counts))]
    return 'bundled', 'laptop'

  def _find(self, experiment, source, preset, borrow=True):
    """Returns place -> ids of the runs there that are the experiment's."""
    own = source, experiment, preset
    found = {}
    if own in self._finished:
      found[own] = list(self._finished[own].runs)
    wanted = _described(experiment, preset) if borrow else frozenset()
    wanted -= {sweeps.digest(run_id) for run_id in found.get(own, ())}
    for place, finished in self._finished.items():
      if place[0] == source and place != own:
        ids = [run for run in finished.runs if sweeps.digest(run) in wanted]
        wanted -= {sweeps.digest(run_id) for run_id in ids}
        if ids:
          found[place] = ids
    return found

  def _values(self, experiment, source, preset):
    found = self._find(experiment, source, preset)
    if not found:
      return empty()
    values = {place: self._finished[place].values for place in found}
    return self._join(values, experiment, source, preset, found)

  def _join(self, tables, experiment, source, preset, found):
    """Sets beside every value what is known of its run, and its config."""
    kept = [
        tables[place][tables[place]['run_id'].isin(run_ids)]
        for place, run_ids in found.items()
    ]
    runs = pd.DataFrame([
        {
            'experiment': experiment,
            'preset': preset,
            'source': source,
            'run_id': run_id,
            **_facts(experiment, preset, self._finished[place].runs[run_id]),
        }
        for place, run_ids in found.items()
        for run_id in run_ids
    ])
    joined = pd.concat(kept).merge(runs, on='run_id', validate='many_to_one')
    # Names repeat in every row, and rows are looked up by them all the time.
    names = [c for c in joined if pd.api.types.is_string_dtype(joined[c])]
    return joined.astype(dict.fromkeys(names, 'category'))

  @functools.cache  # pylint: disable=method-cache-max-size-none
  def _read_curves(self, place):
    return storage.read_curves(self._folders[place])


def empty() -> pd.DataFrame:
  """Returns the table of an experiment without a finished run."""
  return pd.DataFrame(columns=list(FACTS + VALUES))


def rows(frame: pd.DataFrame, cell: Mapping[str, Any]) -> pd.DataFrame:
  """Returns the rows whose columns have these values; None stands for none."""
  kept = np.ones(len(frame), bool)
  for column, value in cell.items():
    if column in frame:
      entries = frame[column]
      kept &= (entries.isna() if value is None else entries == value).to_numpy()
    elif value is not None:
      kept[:] = False
  return frame[kept]


def select_conditions(
    frame: pd.DataFrame, cell: tuple[str, ...]
) -> tuple[pd.DataFrame, dict[str, tuple]]:
  """Keeps one condition per cell of a figure; seeds of it are pooled.

  A preset's folder may hold more than one: the same model trained with and
  without an overridden field. The one with the most outer steps is kept, then
  the one with the most seeds.

  Args:
    frame: as `Library` returns it.
    cell: the columns that tell the figure's cells apart.

  Returns:
    The rows that are kept, with all columns of the cell; and of each condition
    that is not, a run id and its cell.
  """
  columns = dict.fromkeys([*frame.columns, *cell])
  frame = frame.reindex(columns=list(columns))  # Some models lack some fields.
  if frame.empty:
    return frame, {}
  facts = ['preset', *cell, 'condition', 'run_id', 'seed']
  runs = frame[[*facts, 'training.num_outer_steps']].drop_duplicates()
  kept, left_out = [], {}
  for names, group in runs.groupby(['preset', *cell], dropna=False):
    sizes = group.groupby('condition').agg(
        steps=('training.num_outer_steps', 'max'),
        seeds=('seed', 'nunique'),
        run_id=('run_id', 'first'),
    )
    sizes = sizes.sort_values(['steps', 'seeds'])
    kept.append((names[0], sizes.index[-1]))
    left_out |= {run_id: names[1:] for run_id in sizes['run_id'].iloc[:-1]}
  found = pd.MultiIndex.from_frame(frame[['preset', 'condition']]).isin(kept)
  point = ['condition', 'seed', 'split', 'metric']
  point.append('kind' if 'kind' in frame else 'step')
  return frame[found].drop_duplicates(point, ignore_index=True), left_out


def values(
    frame: pd.DataFrame,
    cell: Mapping[str, Any],
    split: str,
    *,
    metric: str = 'accuracy',
    kind: str = 'last',
) -> pd.Series:
  """Returns a metric indexed by seed; empty where it was not measured.

  Args:
    frame: with one condition per cell.
    cell: column -> value, such as {'model.name': 'anil'}.
    split: such as 'ood'.
    metric: such as 'accuracy'.
    kind: 'last' or 'best_validation'.
  """
  point = {'split': split, 'metric': metric, 'kind': kind}
  frame = rows(frame, {**cell, **point})
  return frame.set_index('seed')['value'].astype(float).dropna()


def _described(experiment, preset):
  """Returns the content hashes of what a config describes."""
  runs = reference.described_runs(experiment, preset)
  return frozenset(sweeps.digest(run.run_id) for run in runs)


def _facts(experiment, preset, run):
  config, sessions = run['config'], run['sessions']
  commits = dict.fromkeys(str(s.get('commit')) for s in sessions)
  devices = dict.fromkeys(_device(session) for session in sessions)
  fields = {
      path: _hashable(value)
      for block in sweeps.IDENTITY
      for path, value in sweeps.flatten(config[block], f'{block}.')
  }
  return {
      'condition': _condition(config),
      'num_seeds': len(config['training']['seeds']),
      'commit': ', '.join(commits),
      'device': ', '.join(devices),
      'wall_s': _total(sessions, 'wall_s'),
      'cpu_s': _total(sessions, 'cpu_s'),
      'published_scale': reference.is_published_scale(
          experiment, preset, config
      ),
      **fields,
  }


def _total(sessions, name):
  """Returns the sum over sessions, NaN unless they are all there."""
  steps = [0, *(session.get('last_step') for session in sessions)]
  for session, reached in zip(sessions, steps):
    # A killed session repeats the steps since its last checkpoint.
    if session.get('first_step', 0) > (reached or 0):
      return math.nan
  return sum(session.get(name, math.nan) for session in sessions)


def _device(session):
  kind = session.get('device_kind', 'unknown device')
  return session.get('processor', kind) if kind == 'cpu' else kind


def _hashable(value):
  return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _condition(config):
  decisive = {name: config[name] for name in sweeps.IDENTITY}
  training = dict(decisive['training'], seeds=None)
  text = json.dumps(decisive | {'training': training}, sort_keys=True)
  return hashlib.sha256(text.encode()).hexdigest()[:10]
