"""Builds the experiment of a run from its config.

Every component checks its own fields when it is built, before anything is
compiled.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
import importlib
import inspect
import types
from typing import Any

import jax

from modular_hyperteacher import errors
from modular_hyperteacher import randomness
from modular_hyperteacher.devices import jax_settings
from modular_hyperteacher.devices import precision
from modular_hyperteacher.experiments import bilevel
from modular_hyperteacher.experiments import checked
from modular_hyperteacher.experiments import draws
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import settings
from modular_hyperteacher.learning import programs

_SET_ELSEWHERE = ('num_outer_steps', 'task_chunk_size')


def _builder(config: Mapping[str, Any]) -> types.ModuleType:
  """Returns the module that builds a config's experiment."""
  task, model = config['task'].get('name'), config['model'].get('name')
  for study in plugins.studies():
    for system in study.systems:
      if model in system.models or task in system.tasks:
        return importlib.import_module(system.module)
  return bilevel


def system_package(config: Mapping[str, Any]) -> str:
  """Returns the package with the functions of a config's system."""
  return _builder(config).__name__.rpartition('.')[0]


def infer_maker(config: Mapping[str, Any]) -> Callable[..., Any] | None:
  """Returns `make_infer` of a config's system, if it has one."""
  return getattr(_builder(config), 'make_infer', None)


@jax_settings.fixed()
def build(config: Mapping[str, Any], num_devices: int) -> settings.Experiment:
  """Returns the experiment that a run's config describes.

  So many devices share every meta-batch.

  Raises:
    ValueError: names a missing, unknown or invalid field, its value, and what
      is allowed.
  """
  training = checked.call(
      settings.TrainingConfig, 'training', config['training']
  )
  execution = checked.call(
      settings.ExecutionConfig, 'execution', config['execution']
  )
  settings.check_sizes(training, execution, num_devices)
  built = _builder(config).build(config, training, execution, num_devices)
  splits = built.system.evaluation_splits
  if 'valid' not in splits:
    raise errors.UserError(
        f"task '{config['task']['name']}' has evaluation_splits {splits}; one"
        " of them must be 'valid'."
    )
  system = _with_precision(built.system, training.matmul_precision)
  return dataclasses.replace(built, system=system)


@jax_settings.fixed()
def optional_fields(
    task: Mapping[str, Any], model: Mapping[str, Any]
) -> dict[str, Any]:
  """Returns what a run with these blocks need not set, with the defaults.

  For example, 'model.outer.final_fraction' -> 0.0.
  """
  made_of: dict[str, Callable[..., Any]] = {
      'training': settings.TrainingConfig,
      'execution': settings.ExecutionConfig,
      **_builder({'task': task, 'model': model}).blocks(task, model),
  }
  return {
      f'{block}.{field}': parameter.default
      for block, function in made_of.items()
      for field, parameter in inspect.signature(function).parameters.items()
      if parameter.default is not parameter.empty
      # The outer loop gets these from `training` and `execution`.
      and (block != 'model.outer' or field not in _SET_ELSEWHERE)
  }


@jax_settings.fixed()
def root_keys(training: settings.TrainingConfig) -> list[jax.Array]:
  """Returns one root key per seed."""
  return [randomness.root_key(seed) for seed in training.seeds]


@jax_settings.fixed()
def draw_tasks(experiment: settings.Experiment) -> list[programs.SeedTasks]:
  """Returns every seed's tasks; ValueError if the support cannot be drawn."""
  draw = experiment.system.draw_tasks
  return [draw(root) for root in root_keys(experiment.training)]


def digest_tasks(
    experiment: settings.Experiment, tasks: Sequence[programs.SeedTasks]
) -> dict[str, draws.Digest]:
  """Returns seed -> the digest of its tasks."""
  seeds = map(str, experiment.training.seeds)
  return dict(zip(seeds, map(draws.digest, tasks), strict=True))


def _with_precision(system: programs.System, level: str) -> programs.System:
  """Runs steps at a level of precision, sampling and analyses in float32."""
  exactly = functools.partial(precision.at, precision.FLOAT32)
  return system._replace(
      draw_tasks=exactly(system.draw_tasks),
      init=exactly(system.init),
      step=precision.at(level, system.step),
      evaluate=precision.at(level, system.evaluate),
      analyse=system.analyse and exactly(system.analyse),
  )
