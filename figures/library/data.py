"""Finished runs as one long table per experiment.

Every field of a run's config is a column, named by its path ('model.name',
'task.num_modules'), so a figure can distinguish its cells by any fields.

Experiments share runs: if two experiments describe the same run, one training
serves both. An experiment reads the runs in its own folder, then runs in other
folders that match its config.
"""

from collections.abc import Mapping, Sequence
import math
import numbers
import pathlib
import sys
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from modular_hyperteacher import errors
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.library import bundles
from modular_hyperteacher.figures.library import reference

BUNDLED = plugins.bundled_roots()[0]  # Of the paper.
# Columns of every run, beside the fields of its config.
FACTS = (
    'experiment',
    'preset',  # one of `presets.SCALES`
    'source',  # 'own' or 'bundled'
    'run_id',
    'condition',  # the same for runs that differ only in their seeds
    'num_seeds',
    'commit',
    'device',
    # Training time over all sessions; NaN if one is lost or untimed.
    'wall_s',
    'cpu_s',
    'published_scale',  # whether every field is as in the paper's run
)
VALUES = (
    'seed',
    'kind',  # 'last', the last step, or 'best_validation'
    'split',
    'metric',
    'value',
)
CURVES = ('step', 'seed', 'split', 'metric', 'value')


class _Origin(NamedTuple):
  """Which folder of results a run comes from."""

  source: str  # 'own' or 'bundled'
  experiment: str
  preset: str


# (source, preset), best first: the user's own results, then bundled ones. Smoke
# results come last, because they are too short to test a claim.
_PREFERENCE: tuple[tuple[tuple[str, str], ...], ...] = (
    tuple(('own', preset) for preset in ('paper', 'desktop', 'laptop')),
    tuple(('bundled', preset) for preset in reversed(presets.SCALES)),
    (('own', 'smoke'),),
)


class Library:
  """All finished runs, the user's own and the bundled ones."""

  def __init__(
      self,
      results_root: pathlib.Path,
      bundled_root: pathlib.Path | None = None,
  ) -> None:
    """Reads all results except curves.

    Args:
      results_root: the folder that training wrote to; need not exist.
      bundled_root: the folder of the bundles; None for those of the paper and
        of all studies.

    Damaged results are skipped with a warning on stderr.
    """
    given = () if bundled_root is None else (bundled_root,)
    roots = [('bundled', root) for root in given or plugins.bundled_roots()]
    self._folders = {
        _Origin(source, folder.parent.name, folder.name): folder
        for source, root in (('own', results_root), *roots)
        for folder in sorted(root.glob('*/*'))
        if bundles.has_results(folder) and _is_preset(folder)
    }
    self._finished = {
        origin: finished
        for origin, folder in self._folders.items()
        if (finished := _read(origin, folder)).runs  # None if all are damaged.
    }
    self._conditions = {
        origin: {
            run_id: (
                reference.condition(run['config']),
                run['config']['training']['seeds'],
            )
            for run_id, run in finished.runs.items()
        }
        for origin, finished in self._finished.items()
    }
    # Tables built so far, by what they are of.
    self._curves: dict[_Origin, pd.DataFrame] = {}
    self._joined: dict[tuple[str, ...], pd.DataFrame] = {}

  def values(self, experiment: str, preset: str | None = None) -> pd.DataFrame:
    """Returns a row per run, seed, kind, split and metric.

    All rows have one source and preset. The user's own results are preferred to
    bundled ones; the user's smoke results are the last choice. Among presets,
    the one with most finished conditions is used; of several, the larger one.

    Args:
      experiment: such as 'fig3e'.
      preset: if given, only runs of this one.

    Returns:
      Columns FACTS, VALUES and the config's fields. Missing values have no row.
    """
    if preset is None:
      return self._table('values', experiment, *self._choose(experiment))
    # Own runs of another experiment, which this one shares, must not hide its
    # bundled ones.
    for borrow in (False, True):
      for source in ('own', 'bundled'):
        if self._find(experiment, source, preset, borrow):
          return self._table('values', experiment, source, preset)
    return empty()

  def every_preset(self, experiment: str) -> pd.DataFrame:
    """Returns the same for all presets, own results before bundled ones."""
    every = [self.values(experiment, p) for p in reversed(presets.SCALES)]
    frames = [frame for frame in every if len(frame)]
    return pd.concat(frames, ignore_index=True) if frames else empty()

  def curves(self, experiment: str) -> pd.DataFrame:
    """Returns the metrics at every evaluation of the runs of `values`.

    Returns:
      Columns FACTS, CURVES and the config's fields.
    """
    return self._table('curves', experiment, *self._choose(experiment))

  def stale(self) -> list[str]:
    """Returns the bundled runs that no current config describes."""
    return [
        f'{origin.experiment}/{origin.preset}/{run_id}'
        for origin, runs in self._conditions.items()
        if origin.source == 'bundled'
        for run_id, (condition, _) in runs.items()
        if condition
        not in reference.described_conditions(origin.experiment, origin.preset)
    ]

  def _choose(self, experiment: str) -> tuple[str, str]:
    """Returns the source and preset to read an experiment from."""
    for borrow in (False, True):
      for candidates in _PREFERENCE:
        counts = [
            len({
                self._conditions[origin][run_id][0]
                for origin, runs in self._find(
                    experiment, *candidate, borrow
                ).items()
                for run_id in runs
            })
            for candidate in candidates
        ]
        if any(counts):
          return candidates[counts.index(max(counts))]
    return 'bundled', 'laptop'

  def _find(
      self, experiment: str, source: str, preset: str, borrow: bool = True
  ) -> dict[_Origin, list[str]]:
    """Returns origin -> ids of the experiment's runs there."""
    own = _Origin(source, experiment, preset)
    found = {}
    if own in self._finished:
      found[own] = list(self._finished[own].runs)
    if not borrow:
      return found
    wanted = reference.described_conditions(experiment, preset)
    covered: dict[str, set[int]] = {}  # Condition -> seeds.
    for run_id in found.get(own, ()):
      condition, seeds = self._conditions[own][run_id]
      covered.setdefault(condition, set()).update(seeds)
    for origin, runs in self._conditions.items():
      if origin.source != source or origin == own:
        continue
      for run_id, (condition, seeds) in runs.items():
        known = covered.setdefault(condition, set())
        if condition in wanted and not known.issuperset(seeds):
          known.update(seeds)
          found.setdefault(origin, []).append(run_id)
    return found

  def _table(
      self, kind: str, experiment: str, source: str, preset: str
  ) -> pd.DataFrame:
    """Returns 'values' or 'curves' of an experiment."""
    found = self._find(experiment, source, preset)
    if not found:
      columns = VALUES if kind == 'values' else CURVES
      return pd.DataFrame(columns=list(FACTS + columns))
    key = kind, experiment, source, preset
    if key not in self._joined:
      read = self._read_values if kind == 'values' else self._read_curves
      tables = {origin: read(origin) for origin in found}
      self._joined[key] = self._join(tables, experiment, source, preset, found)
    return self._joined[key].copy(deep=False)

  def _read_values(self, origin: _Origin) -> pd.DataFrame:
    return self._finished[origin].values

  def _join(
      self,
      tables: Mapping[_Origin, pd.DataFrame],
      experiment: str,
      source: str,
      preset: str,
      found: Mapping[_Origin, Sequence[str]],
  ) -> pd.DataFrame:
    """Adds run facts and config fields to every row."""
    kept = [
        tables[origin][tables[origin]['run_id'].isin(run_ids)]
        for origin, run_ids in found.items()
    ]
    runs = pd.DataFrame([
        {
            'experiment': experiment,
            'preset': preset,
            'source': source,
            'run_id': run_id,
            **_facts(experiment, preset, self._finished[origin].runs[run_id]),
        }
        for origin, run_ids in found.items()
        for run_id in run_ids
    ])
    joined = pd.concat(kept).merge(runs, on='run_id', validate='many_to_one')
    # Runs may share some of their seeds. All values of a seed are of the first
    # run that has it: another may have diverged, or measured something else.
    seed = ['condition', 'seed']
    of_run = joined[[*seed, 'run_id']].drop_duplicates().drop_duplicates(seed)
    joined = joined.merge(of_run, on=list(of_run))
    # Strings repeat in many rows; categories make lookups fast.
    names = [c for c in joined if pd.api.types.is_string_dtype(joined[c])]
    return joined.astype(dict.fromkeys(names, 'category'))

  def _read_curves(self, origin: _Origin) -> pd.DataFrame:
    if origin not in self._curves:
      self._curves[origin] = bundles.read_curves(self._folders[origin])
    return self._curves[origin]


def empty() -> pd.DataFrame:
  """Returns the table of an experiment without a finished run."""
  return pd.DataFrame(columns=list(FACTS + VALUES))


def as_runs(
    measured: pd.DataFrame, name: pd.Series, **fields: str
) -> pd.DataFrame:
  """Returns what was measured without training in the form of finished runs.

  Args:
    measured: a row per value; has columns 'seed' and 'value'.
    name: of the run that a row belongs to.
    **fields: further columns with a single value, such as split='test'.
  """
  return measured.assign(
      preset='constructed',
      source='bundled',
      run_id=name,
      condition=name,
      kind='last',
      published_scale=False,
      **fields,
      **{'training.num_outer_steps': 0},
  )


def rows(frame: pd.DataFrame, cell: Mapping[str, Any]) -> pd.DataFrame:
  """Returns the rows with these values; None selects missing values."""
  return frame[_matches(frame, cell)]


def runs(frame: pd.DataFrame, cell: Mapping[str, Any]) -> pd.DataFrame:
  """Returns the first of these rows of every run."""
  found = np.flatnonzero(_matches(frame, cell))
  repeated = frame['run_id'].iloc[found].duplicated().to_numpy()
  return frame.iloc[found[~repeated]]


def seeds(frame: pd.DataFrame, cell: Mapping[str, Any]) -> set[int]:
  """Returns the seeds of the rows with these values."""
  return set(frame['seed'].to_numpy()[_matches(frame, cell)])


def has_diverged(frame: pd.DataFrame) -> pd.Series:
  """Returns which rows, of results or curves, say that a seed diverged."""
  did = frame['metric'] == bundles.DIVERGED
  if 'step' in frame:  # Of curves.
    last = frame.groupby('run_id', observed=True)['step'].transform('max')
    is_loss = (frame['split'] == 'valid') & (frame['metric'] == 'loss')
    did |= is_loss & (frame['step'] == last) & ~np.isfinite(frame['value'])
  return did


def has_rows(frame: pd.DataFrame, cell: Mapping[str, Any]) -> bool:
  """Returns whether `rows` has any, much faster than by taking them."""
  return bool(_matches(frame, cell).any())


def _matches(frame: pd.DataFrame, cell: Mapping[str, Any]) -> np.ndarray:
  kept = np.ones(len(frame), bool)
  for column, value in cell.items():
    if column in frame:
      kept &= _equal(frame[column], value)
    elif value is not None:
      kept[:] = False
  return kept


def _equal(entries: pd.Series, value: Any) -> np.ndarray:
  """Returns which entries are a value; None stands for missing ones.

  Codes and arrays are compared several times as fast as series.
  """
  array = entries.array
  if value is not None and isinstance(array, pd.Categorical):
    known = array.categories
    return array.codes == (known.get_loc(value) if value in known else -2)
  plain = isinstance(entries.dtype, np.dtype) and entries.dtype.kind in 'biuf'
  if plain and isinstance(value, numbers.Number):
    return entries.to_numpy() == value
  return (entries.isna() if value is None else entries == value).to_numpy()


def distinct(
    frame: pd.DataFrame, columns: Sequence[str]
) -> list[dict[str, Any]]:
  """Returns the distinct combinations of values in some columns, in order."""
  found: Any = frame[list(columns)].drop_duplicates().to_dict('records')
  return found


def select_conditions(
    frame: pd.DataFrame, cell: tuple[str, ...]
) -> tuple[pd.DataFrame, dict[str, tuple[Any, ...]]]:
  """Keeps one condition per cell of a figure, with all its seeds.

  A preset's folder may hold several, such as a model trained with and without
  an overridden field. This keeps the condition with the most outer steps; of
  several, the one with the most seeds; of these, the one of the config.

  Args:
    frame: as `Library` returns it.
    cell: the columns that distinguish the figure's cells.

  Returns:
    The rows that are kept, with all columns of the cell; and run id -> cell,
    one run for each condition that is left out.
  """
  columns = dict.fromkeys([*frame.columns, *cell])
  frame = frame.reindex(columns=list(columns))  # Some models lack some fields.
  if frame.empty:
    return frame, {}
  keys = ['preset', *cell]
  point = ['condition', 'seed', 'split', 'metric']
  point.append('kind' if 'kind' in frame else 'step')
  conditions = frame[[*keys, 'condition']].drop_duplicates()
  if not conditions.duplicated(keys).any():  # As usual; much faster.
    return frame.drop_duplicates(point, ignore_index=True), {}
  facts = [*keys, 'condition', 'run_id', 'seed', 'experiment']
  runs = frame[[*facts, 'training.num_outer_steps']].drop_duplicates()
  groups = runs.groupby([*keys, 'condition'], dropna=False, observed=True)
  sizes = groups.agg(
      steps=('training.num_outer_steps', 'max'),
      seeds=('seed', 'nunique'),
      run_id=('run_id', 'first'),
      experiment=('experiment', 'first'),
  ).reset_index()
  sizes['is_described'] = [
      condition in reference.described_conditions(experiment, preset)
      for experiment, preset, condition in sizes[
          ['experiment', 'preset', 'condition']
      ].itertuples(index=False)
  ]
  sizes = sizes.sort_values(['steps', 'seeds', 'is_described'], kind='stable')
  kept = sizes.drop_duplicates(keys, keep='last')
  rest: Any = sizes.drop(index=kept.index).sort_index()
  left_out = {
      run_id: tuple(values)
      for run_id, *values in rest[['run_id', *cell]].itertuples(index=False)
  }
  kept = pd.MultiIndex.from_frame(kept[['preset', 'condition']])
  found = pd.MultiIndex.from_frame(frame[['preset', 'condition']]).isin(kept)
  return frame[found].drop_duplicates(point, ignore_index=True), left_out


def values(
    frame: pd.DataFrame,
    cell: Mapping[str, Any],
    split: str,
    *,
    metric: str = 'accuracy',
    kind: str = 'last',
) -> pd.Series:
  """Returns a metric indexed by seed; empty if it was not measured.

  Args:
    frame: with one condition per cell.
    cell: column -> value, such as {'model.name': 'anil'}.
    split: such as 'ood'.
    metric: such as 'accuracy'.
    kind: 'last' or 'best_validation'.
  """
  point = {'split': split, 'metric': metric, 'kind': kind}
  # Taking two columns is much faster than taking all.
  every = frame['value'].to_numpy(float)
  kept = _matches(frame, {**cell, **point}) & ~np.isnan(every)
  seeds = pd.Index(frame['seed'].to_numpy()[kept], name='seed')
  return pd.Series(every[kept], seeds, name='value')


def _read(origin: _Origin, folder: pathlib.Path) -> bundles.FinishedRuns:
  """Returns finished runs; warns of those whose fields have odd types."""
  finished = bundles.read(folder)
  odd = {
      run_id: field
      for run_id, run in finished.runs.items()
      if (
          field := reference.odd_field(
              origin.experiment, origin.preset, run['config']
          )
      )
  }
  for run_id, field in odd.items():
    _warn(
        f'{folder / run_id} is not drawn: {field} has another type than in'
        f' {plugins.config_of(origin.experiment).path}.'
    )
  if not odd:
    return finished
  return bundles.FinishedRuns(
      finished.values[~finished.values['run_id'].isin(odd)],
      {name: run for name, run in finished.runs.items() if name not in odd},
  )


def _warn(message: str) -> None:
  print(errors.line(f'warning: {message}'), file=sys.stderr)


def _is_preset(folder: pathlib.Path) -> bool:
  """Returns whether a preset is known; warns if it is not."""
  known = folder.name in presets.SCALES
  if not known:
    _warn(
        f'{folder} is not drawn: its preset is none of'
        f' {", ".join(presets.SCALES)}.'
    )
  return known


def _facts(experiment: str, preset: str, run: dict[str, Any]) -> dict[str, Any]:
  config, sessions = run['config'], run['sessions']
  commits = dict.fromkeys(str(s.get('commit')) for s in sessions)
  devices = dict.fromkeys(_device(session) for session in sessions)
  fields = {
      path: _hashable(value)
      for block in sweeps.IDENTITY
      for path, value in sweeps.flatten(config[block], f'{block}.')
  }
  return {
      'condition': reference.condition(config),
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
