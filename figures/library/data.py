"""Finished runs as one long table per experiment.

Every field of a run's config is a column, named by its path ('model.name',
'task.num_modules'), so a figure can distinguish its cells by any fields.
`pick` picks rows of such tables.
"""

import copy
import os
import pathlib
import sys
from typing import Any

import pandas as pd

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.figures.library import bundles
from modular_hyperteacher.figures.library import facts
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.runs import store

BUNDLED = plugins.bundled_roots()[0]  # Those of the paper.
_OWN, _BUNDLED = 'own', 'bundled'
_NEAREST_FIRST = presets.SCALES[::-1]  # To the paper's scale.
# (source, preset), best first: the user's own results, then bundled ones. Smoke
# results come last, because they are too short to test a claim.
_PREFERENCE = (
    [(_OWN, preset) for preset in _NEAREST_FIRST if preset != 'smoke'],
    [(_BUNDLED, preset) for preset in _NEAREST_FIRST],
    [(_OWN, 'smoke')],
)


class Library:
  """All finished runs, the user's own and the bundled ones, read once."""

  def __init__(
      self,
      results_root: str | os.PathLike[str],
      bundled_root: str | os.PathLike[str] | None = None,
  ) -> None:
    """Reads all results except curves.

    Damaged results are skipped with a warning on stderr.

    Args:
      results_root: the folder that training wrote to; need not exist.
      bundled_root: the folder of the bundles; None for those of the paper and
        of all studies.
    """
    own = files.locate(results_root, 'results_root')
    bundled = plugins.bundled_roots()
    if bundled_root is not None:
      bundled = (files.locate(bundled_root, 'bundled_root'),)
    # What was read and built so far, by kind and folder or experiment.
    self._tables: dict[tuple[Any, ...], pd.DataFrame] = {}
    self._runs: dict[str, list[bundles.Run]] = {
        source: [run for root in roots for run in self._read(root)]
        for source, roots in ((_OWN, [own]), (_BUNDLED, bundled))
    }
    # (Experiment, preset) -> where to read it from; see `_choose`.
    self._chosen: dict[tuple[str, str | None], tuple[str, str]] = {}
    self._ends: dict[str, int] = {}  # Experiment -> step, see `until`.
    self._scales: dict[str, str] = {}  # Experiment -> preset, see `at_scale`.

  def values(self, experiment: str, preset: str | None = None) -> pd.DataFrame:
    """Returns a row per run, seed, kind, split and metric.

    All rows have one source and preset. The user's own results are preferred to
    bundled ones; the user's smoke results are the last choice. Among presets,
    the one with most finished conditions is used; of several, the larger one.

    Returns:
      Columns `facts.COLUMNS`, `bundles.VALUE_COLUMNS` and the config's fields.
      Missing values have no row.
    """
    end = self._ends.get(experiment)
    if end is None:
      return self._table('values', experiment, preset)
    curves = self.curves(experiment, preset)
    return curves[curves['step'] == end].assign(kind='last')

  def curves(self, experiment: str, preset: str | None = None) -> pd.DataFrame:
    """Returns the metrics at every evaluation of the runs of `values`.

    Returns:
      Columns `facts.COLUMNS`, `bundles.CURVE_COLUMNS` and the config's fields.
    """
    curves = self._table('curves', experiment, preset)
    end = self._ends.get(experiment)
    return curves if end is None else curves[curves['step'] <= end]

  def until(self, experiment: str, step: int) -> 'Library':
    """Returns the library as it was after some outer steps of an experiment.

    There, the experiment's curves end, and its values are those of this step.
    """
    earlier = copy.copy(self)
    earlier._ends = {**self._ends, experiment: step}
    return earlier

  def at_scale(self, experiment: str, preset: str) -> 'Library':
    """Returns the library in which an experiment has this preset alone."""
    alone = copy.copy(self)
    alone._scales = {**self._scales, experiment: preset}
    return alone

  def presets(self, experiment: str) -> list[str]:
    """Returns the presets with finished runs, nearest to the paper first."""
    return [
        preset
        for preset in _NEAREST_FIRST
        if any(store.find(r, experiment, preset) for r in self._runs.values())
    ]

  def every_preset(self, experiment: str) -> pd.DataFrame:
    """Returns the values of all of `presets`, in their order."""
    every = [self.values(experiment, p) for p in self.presets(experiment)]
    every = every or [self.values(experiment)]
    return pd.concat(every, ignore_index=True)

  def stale(self) -> list[str]:
    """Returns the bundled runs that no current config describes."""
    return [
        '/'.join([*run.where, run.run_id])
        for run in self._runs[_BUNDLED]
        if not run.is_described(*run.where)
    ]

  def _read(self, root: pathlib.Path) -> list[bundles.Run]:
    """Returns the runs in a folder of results or bundles; keeps their values.

    Runs whose fields have odd types are left out, with a warning.
    """
    runs = []
    for folder in sorted(root.glob('*/*')):
      if not bundles.has_results(folder):
        continue
      if folder.name not in presets.SCALES:
        known = ', '.join(presets.SCALES)
        _warn(f'{folder} is not drawn: its preset is none of {known}.')
        continue
      self._tables['values', folder], runs_by_id = bundles.read(folder)
      for run in runs_by_id.values():
        if odd := reference.odd_field(*run.where, run.config):
          _warn(
              f'{folder / run.run_id} is not drawn: {odd} has another type than'
              f' in {plugins.config_of(run.where[0]).path}.'
          )
        else:
          runs.append(run)
    return runs

  def _choose(self, experiment: str, preset: str | None) -> tuple[str, str]:
    """Returns the source and preset to read an experiment from."""
    one = [[(source, preset)] for source in self._runs if preset]
    # Own runs of another experiment, which this one shares, must not hide its
    # bundled ones.
    for borrow in (False, True):
      for candidates in one or _PREFERENCE:
        keys = [
            store.find(self._runs[source], experiment, p, borrow)
            for source, p in candidates
        ]
        counts = [len({condition for condition, _ in k}) for k in keys]
        if any(counts):
          return candidates[counts.index(max(counts))]
    return _BUNDLED, preset or 'laptop'

  def _table(
      self, kind: str, experiment: str, preset: str | None
  ) -> pd.DataFrame:
    """Returns 'values' or 'curves' of an experiment."""
    asked = experiment, preset or self._scales.get(experiment)
    if asked not in self._chosen:
      self._chosen[asked] = self._choose(*asked)
    key = kind, experiment, *self._chosen[asked]
    if key not in self._tables:
      self._tables[key] = self._join(*key)
    return self._tables[key].copy(deep=False)

  def _join(
      self, kind: str, experiment: str, source: str, preset: str
  ) -> pd.DataFrame:
    """Returns all rows, each with the facts and config fields of its run."""
    # All values of a seed are of one run: another one of the same condition may
    # have diverged, or measured something else.
    picked_runs = store.find(self._runs[source], experiment, preset)
    if not picked_runs:
      curves = bundles.CURVE_COLUMNS
      measured = bundles.VALUE_COLUMNS if kind == 'values' else curves
      columns = dict.fromkeys((*facts.COLUMNS, *measured))
      return pd.DataFrame(columns=list(columns))
    known = {
        run: facts.describe(run, experiment, preset, source)
        for run in dict.fromkeys(picked_runs.values())
    }
    kept = []
    for folder in dict.fromkeys(run.folder for run in known):
      if (kind, folder) not in self._tables:
        self._tables[kind, folder] = bundles.read_curves(folder)
      table = self._tables[kind, folder]
      ids = [run.run_id for run in known if run.folder == folder]
      kept.append(table[table['run_id'].isin(ids)])
    picked = [
        {'seed': seed, **known[r]} for (_, seed), r in picked_runs.items()
    ]
    joined = pd.concat(kept).astype({'seed': int})
    joined = joined.merge(pd.DataFrame(picked), on=['run_id', 'seed'])
    # Strings repeat in many rows; categories make lookups fast.
    names = [c for c in joined if pd.api.types.is_string_dtype(joined[c])]
    return joined.astype(dict.fromkeys(names, 'category'))


def _warn(message: str) -> None:
  print(errors.line(f'warning: {message}'), file=sys.stderr)
