"""Loads trained models by name.

  loaded = pretrained.load(
      'fig3b/laptop', model='linear_hypernetwork', task_support='random'
  )
  student = loaded.student()
  task = student.sample('ood', jax.random.key(1))
  fast_params = student.adapt(task.support)
  student.score(fast_params, task.query)['accuracy']

Parameters come from the checkpoints in a results folder or, if there are none,
from the files bundled with the repository (`figures/bundle.py --parameters`).
"""

from collections.abc import Sequence
import contextlib
import dataclasses
import functools
import os
import pathlib
import sys
from typing import Any
import warnings

import jax
import pandas as pd

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher.devices import jax_settings
from modular_hyperteacher.experiments import bilevel
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import draws
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import settings
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.learning import programs
from modular_hyperteacher.pretrained import student as students
from modular_hyperteacher.pretrained import weights
from modular_hyperteacher.runs import memory
from modular_hyperteacher.runs import records
from modular_hyperteacher.runs import run_folder
from modular_hyperteacher.runs import store

FOLDER = 'parameters'  # In a bundle, beside its results.
_TRAIN = 'python -m modular_hyperteacher.main '


@dataclasses.dataclass(frozen=True, eq=False)
class _Trained(store.Finished):
  """A run with parameters; its config has only the seeds that have some."""

  kind: str | None  # What a bundle has, as 'last'; None for a run: it has all.
  drawn: dict[str, Any]  # Seed -> the digest of the tasks it learned.

  @property
  def name(self) -> str:
    """Such as 'fig3b/laptop'."""
    return '/'.join(self.where)

  @property
  def source(self) -> pathlib.Path:
    """The folder of the run, or of the bundle's parameters."""
    return self.folder / (FOLDER if self.kind else self.run_id)


@dataclasses.dataclass(frozen=True)
class Pretrained(students.Rebuilt):
  """A trained run."""

  run_id: str
  config: dict[str, Any]  # nested: task, model, training and execution
  kind: str  # 'last' or 'best_validation'
  folder: pathlib.Path  # where the parameters were read from
  experiment: settings.Experiment  # task, model and learner
  meta_params: Any  # leaves [R, ...], one slice per seed of `seeds`
  # Seed -> the digest of the tasks on which it was trained, if known.
  drawn: dict[str, Any] = dataclasses.field(default_factory=dict, repr=False)

  @property
  def seeds(self) -> tuple[int, ...]:
    """The seeds that have parameters."""
    return self.experiment.training.seeds

  @jax_settings.always
  def student(self, seed: int | None = None) -> students.Student:
    """Returns the trained model of one seed; by default, the first.

    Raises:
      UserError: if the seed has no parameters, or the model does not adapt.
    """
    if not isinstance(self.experiment, bilevel.BilevelExperiment):
      package = build.system_package(self.config)
      raise errors.UserError(
          f"{self.run_id} is a '{self.config['model']['name']}', which does not"
          ' adapt to tasks; pass its meta_params to the functions in'
          f' {package}.'
      )
    seed = self.seeds[0] if seed is None else seed
    rule = f'{self.run_id} has {", ".join(map(str, self.seeds))}'
    errors.require(seed in self.seeds, 'seed', seed, rule)
    index = self.seeds.index(seed)
    return students.Student(
        self.config,
        self.experiment,
        seed,
        *self._seed_tasks[index],
        jax.tree.map(lambda x: x[index], self.meta_params),
    )

  @functools.cached_property
  def _seed_tasks(self) -> list[programs.SeedTasks]:
    tasks = build.draw_tasks(self.experiment)
    now = build.digest_tasks(self.experiment, tasks)
    told = {draws.compare(self.drawn.get(seed), d) for seed, d in now.items()}
    for text in filter(None, told):
      warnings.warn(
          f'{self.run_id} was trained on other tasks than those drawn here, as'
          f' {text}. What its students solve here is new to them.',
          stacklevel=1,
      )
    return tasks


@jax_settings.always
def load(
    name: str | os.PathLike[str],
    *,
    kind: str = 'last',
    results_root: str | os.PathLike[str] = 'results',
    bundled_root: str | os.PathLike[str] | None = None,
    **fields: Any,
) -> Pretrained:
  """Returns a trained run.

  Args:
    name: '<experiment>/<preset>', '<experiment>/<preset>/<run id>', or the
      folder of a finished run.
    kind: 'last' for the parameters after the last step, as in the figures;
      'best_validation' for those with the lowest validation loss.
    results_root: the folder of training results; need not exist. Runs that are
      not in it are looked up among the bundled parameters.
    bundled_root: the folder of the bundles; None for those of the package.
    **fields: select the run: `model='maml'`, `run_id`, or any field of a config
      by the end of its path, such as `task_support='random'`.

  Raises:
    UserError: unless exactly one run matches; lists the alternatives.
  """
  jax_settings.check_asserts()
  errors.require_choice('kind', kind, records.KINDS)
  folder = files.locate(name, 'name')
  if files.exists(folder / 'summary.json'):
    runs = _read_run(folder)
  else:
    experiment, preset, run_id, *_ = *str(name).split('/', 2), '', ''
    fields |= {'run_id': run_id} if run_id else {}
    trained = _find(results_root, bundled_root)
    runs = _named(f'{experiment}/{preset}', fields.get('run_id'), trained)
  # In JSON, tuples are lists.
  values = (list(v) if isinstance(v, tuple) else v for v in fields.values())
  only = [f'{field}={value}' for field, value in zip(fields, values)]
  what = f'run of {runs[0].name}'
  runs = sweeps.select(runs, only, 'pretrained.load', what)
  if len(runs) > 1:
    raise errors.UserError(
        f'{len(runs)} runs of {name} match; add one of {_differences(runs)}.'
    )
  return _load(runs[0], kind)


def available(
    results_root: str | os.PathLike[str] = 'results',
    bundled_root: str | os.PathLike[str] | None = None,
) -> pd.DataFrame:
  """Returns one row per loadable run: name, model, run id, seeds, folder."""
  runs = _find(results_root, bundled_root)
  return pd.DataFrame({
      'name': [run.name for run in runs],
      'model': [run.config['model']['name'] for run in runs],
      'run_id': [run.run_id for run in runs],
      'seeds': [tuple(run.config['training']['seeds']) for run in runs],
      'folder': [str(run.source) for run in runs],
  })


def _load(trained: _Trained, kind: str) -> Pretrained:
  experiment = memory.build_experiment(trained.config, num_devices=1)
  if trained.kind is None:
    run = run_folder.RunFolder(trained.source)
    meta_params = weights.restore(run, experiment, kind)
  elif trained.kind == kind:
    like = weights.state_shapes(experiment).meta_params
    meta_params = weights.read(trained.source, trained.run_id, like)
  else:
    raise errors.UserError(
        f"kind is '{kind}'; of {trained.run_id} only '{trained.kind}' is"
        f' bundled. {_train(trained.name)} trains the other.'
    )
  return Pretrained(
      trained.run_id,
      trained.config,
      kind,
      trained.source,
      experiment,
      meta_params,
      trained.drawn,
  )


def _find(
    results_root: str | os.PathLike[str],
    bundled_root: str | os.PathLike[str] | None,
) -> list[_Trained]:
  """Returns all runs without duplicates; results precede bundles."""
  root = files.locate(results_root, 'results_root')
  roots = plugins.bundled_roots()
  if bundled_root is not None:
    roots = (files.locate(bundled_root, 'bundled_root'),)
  paths = [
      path.parent
      for path in sorted(root.glob('*/*/*/summary.json'))
      if any(run_folder.RunFolder(path.parent).checkpoints.glob('*'))
  ]
  paths += [p for r in roots for p in sorted(r.glob(f'*/*/{FOLDER}'))]
  runs: dict[tuple[str, str], _Trained] = {}
  for path in paths:
    try:
      read = _read_bundle if path.name == FOLDER else _read_run
      for trained in read(path):
        runs.setdefault((trained.name, trained.run_id), trained)
    except errors.UserError as error:
      print(errors.line(f'warning: {error} It is ignored.'), file=sys.stderr)
  return list(runs.values())


def _read_run(path: pathlib.Path) -> list[_Trained]:
  path = path.resolve()
  run = run_folder.RunFolder(path)
  config = run.read('config.json', records.Config)
  if config is None:
    raise errors.UserError(f'{path} has no config.json; it is not a run.')
  records.check_run(path.name, config, str(path))
  provenance: Any = run.read('provenance.json', records.Provenance) or {}
  drawn = provenance.get('drawn', {})
  return [_Trained(path.parent, path.name, config, None, drawn)]


def _read_bundle(folder: pathlib.Path) -> list[_Trained]:
  """Returns the runs of a bundle's folder of parameters."""
  stored: Any = run_folder.RunFolder(folder.parent).read(
      'provenance.json', records.Bundle
  )
  runs = []
  for run_id, entry in weights.read_index(folder).items():
    if stored is None or run_id not in stored['runs']:
      raise errors.UserError(
          f'{folder.parent}: provenance.json lacks {run_id}, whose parameters'
          ' are in the bundle.'
      )
    config = stored['runs'][run_id]['config']
    records.check_run(run_id, config, str(folder.parent))
    config |= {'training': config['training'] | {'seeds': entry['seeds']}}
    drawn = entry.get('drawn', {})
    runs.append(_Trained(folder.parent, run_id, config, entry['kind'], drawn))
  return runs


def _named(
    name: str, run_id: str | None, runs: list[_Trained]
) -> list[_Trained]:
  """Returns the runs of '<experiment>/<preset>', or the one with an id."""
  experiment, _, preset = name.partition('/')
  is_described = False
  with contextlib.suppress(ValueError):  # Not a preset.
    is_described = bool(sweeps.described_runs(experiment, preset))
  chosen = [trained for trained in runs if trained.run_id == run_id]
  for candidates in (chosen, runs):
    named = store.find(candidates, experiment, preset, borrow=is_described)
    if named:
      return list(dict.fromkeys(named.values()))
  names = ', '.join(dict.fromkeys(t.name for t in runs))
  known = f', only of {names}' if names else ''
  train = f' {_train(name)} trains it.' if is_described else ''
  raise errors.UserError(
      f"there are no trained parameters of '{name.rstrip('/')}'{known}.{train}"
  )


def _differences(runs: Sequence[_Trained]) -> str:
  """Returns the fields of model, task and training in which runs differ."""
  values = {}
  models = {trained.config['model']['name'] for trained in runs}
  # Fields of different models say no more than their names.
  more = ('model',) if len(models) == 1 else ()
  for trained in runs:
    fields = {'model': trained.config['model']['name']}
    for block in ('task', 'training', *more):
      fields |= dict(sweeps.flatten(trained.config[block]))
    for field, value in fields.items():
      values.setdefault(field, {})[repr(value)] = None
  return '; '.join(
      f'{field}: {", ".join(present)}'
      for field, present in values.items()
      if len(present) > 1
  )


def _train(name: str) -> str:
  experiment, _, preset = name.partition('/')
  return _TRAIN + sweeps.config_flag(experiment, preset)
