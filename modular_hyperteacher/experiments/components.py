"""Tasks and models by name: the paper's, those of studies, and users' own.

A component of another package is named 'package.module:function'. Importing it
runs its code, so this happens only for configs that the user asked to run
(`allow`), never for a config that was read from results.
"""

from collections.abc import Callable, Mapping
import importlib
import inspect
import types
from typing import Any, NamedTuple

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted
from modular_hyperteacher.analysis import acting
from modular_hyperteacher.analysis import alignment
from modular_hyperteacher.analysis import base as analyses
from modular_hyperteacher.analysis import decoding
from modular_hyperteacher.analysis import refitting
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.models import anil
from modular_hyperteacher.models import base as models
from modular_hyperteacher.models import linear_hypernetwork
from modular_hyperteacher.models import maml
from modular_hyperteacher.models import modular_student
from modular_hyperteacher.models import nonlinear_hypernetwork
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks import hyperteacher
from modular_hyperteacher.tasks import teacher_student
from modular_hyperteacher.tasks.gridworlds import goals
from modular_hyperteacher.tasks.gridworlds import preferences

_allowed: dict[str, Any] = {}


def _decode(
    task: tasks.TaskDistribution, model: models.MetaModel
) -> analyses.Analysis:
  """Decodes latents from fast parameters, or as the model itself says."""
  if model.make_decoding is not None:
    return model.make_decoding(task)
  _, num_fast = models.count_params(model)
  if num_fast == 0:
    return analyses.Analysis((), lambda adapted: {})
  return decoding.make_analysis(task, model)


class TaskEntry(NamedTuple):
  """A task distribution, its analyses, and its chunk sizes on a CPU."""

  # `make(**fields of the config's task block)`.
  make: Callable[..., tasks.TaskDistribution]
  # `make(task, model)` returns an analysis of adapted parameters.
  make_analyses: tuple[
      Callable[[tasks.TaskDistribution, models.MetaModel], analyses.Analysis],
      ...,
  ] = (_decode,)
  # The fastest number of tasks to compute together: they share caches.
  cpu_chunk_size: int = 2
  # Exceptions, by model.
  cpu_chunk_sizes: Mapping[str, int] = types.MappingProxyType({})


TASKS: Mapping[str, TaskEntry] = {
    'hyperteacher': TaskEntry(hyperteacher.make),
    'teacher_student': TaskEntry(
        teacher_student.make,
        (alignment.make_analysis, refitting.make_analysis),
        cpu_chunk_size=8,
    ),
    'preferences': TaskEntry(
        preferences.make,
        (_decode, acting.make_preferences_analysis),
        cpu_chunk_size=16,
        cpu_chunk_sizes={'anil': 4},
    ),
    'goals': TaskEntry(
        goals.make,
        (_decode, acting.make_goals_analysis),
        cpu_chunk_size=8,
        cpu_chunk_sizes={'anil': 4},
    ),
}
MODELS: Mapping[str, Callable[..., models.MetaModel]] = {
    'maml': maml.make,
    'anil': anil.make,
    'linear_hypernetwork': linear_hypernetwork.make,
    'nonlinear_hypernetwork': nonlinear_hypernetwork.make,
    'modular_student': modular_student.make,
}


def known_tasks() -> dict[str, Any]:
  """Returns name -> task of the paper and of all studies."""
  studies = plugins.studies()
  return {**TASKS, **{k: x for s in studies for k, x in s.tasks.items()}}


def known_models() -> dict[str, Any]:
  """Returns name -> model of the paper and of all studies."""
  studies = plugins.studies()
  return {**MODELS, **{k: x for s in studies for k, x in s.models.items()}}


def task_entry(task_block: dict[str, Any]) -> TaskEntry:
  """Returns the entry of a task block, whose field `name` it removes."""
  entry = choose(known_tasks(), 'task', task_block)
  return entry if isinstance(entry, TaskEntry) else TaskEntry(entry)


def allow(config: Mapping[str, Any]) -> None:
  """Imports a config's task and model if they are of other packages.

  Raises:
    UserError: if a module or function does not exist.
  """
  for block in ('task', 'model'):
    name = config[block].get('name')
    if isinstance(name, str) and ':' in name and name not in _allowed:
      module, _, attribute = name.partition(':')
      try:
        _allowed[name] = getattr(importlib.import_module(module), attribute)
      except (Exception, SystemExit) as error:  # A module can raise anything.
        raise errors.UserError(
            f"{block}.name is '{name}', which cannot be imported:"
            f" {errors.describe(error)}. It must be 'package.module:function'"
            ' of an installed package or of one in the working folder.'
        ) from error
      if not callable(_allowed[name]):
        del _allowed[name]
        raise errors.UserError(
            f"{block}.name is '{name}', which is not a function."
        )


def files() -> set[str]:
  """Returns the source files of the components that were allowed."""
  paths = set()
  for component in _allowed.values():
    function = inspect.unwrap(getattr(component, 'func', component))
    try:
      paths.add(inspect.getsourcefile(function) or '')
    except TypeError:  # An object that can be called, or a function in C.
      pass
  return paths


def choose(table: Mapping[str, Any], block: str, fields: dict[str, Any]) -> Any:
  """Returns the component that a block names; removes the field `name`.

  Raises:
    UserError: if the name is missing or unknown, or names a component of
      another package that was not allowed.
  """
  if 'name' not in fields:
    raise errors.UserError(f'{block}.name is missing.')
  name = fields.pop('name')
  untrusted.check(name, str, f'{block}.name')
  if ':' in name:
    if name not in _allowed:
      raise errors.UserError(
          f"{block}.name is '{name}'; a config that was read from results does"
          ' not run code of another package. To trust it, call'
          ' modular_hyperteacher.experiments.components.allow(config) first.'
      )
    return _allowed[name]
  if name not in table:
    raise errors.UserError(
        f"{block}.name is '{name}'; choose one of"
        f" {', '.join(map(repr, table))}, or 'package.module:function'."
    )
  entry = table[name]
  return plugins.resolve(entry) if isinstance(entry, str) else entry
