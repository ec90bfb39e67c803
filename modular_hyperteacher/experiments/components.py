"""Tasks and models by name: the package's own, and those of other packages.

The package's own components are in tables, such as `bilevel.TASKS`. A component
of another package is named 'package.module:function'. Importing it runs its
code, so this happens only for configs that the user asked to run (`allow`),
never for a config that was read from results.
"""

from collections.abc import Callable, Mapping
import importlib
import inspect
import typing
from typing import Any, TypeVar

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted
from modular_hyperteacher.experiments import settings

_T = TypeVar('_T')
_MAX_INT = 2**31  # JAX counts with 32 bits.
_allowed: dict[str, Any] = {}


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
        what = ' '.join(f'{type(error).__name__}: {error}'.split())
        raise errors.UserError(
            f"{block}.name is '{name}', which cannot be imported: {what}. It"
            " must be 'package.module:function' of an installed package or of"
            ' one in the working folder.'
        ) from error
      if not callable(_allowed[name]):
        del _allowed[name]
        raise errors.UserError(
            f"{block}.name is '{name}', which is not a function."
        )


def files() -> set[str]:
  """Returns the source files of the components that were allowed."""
  found = set()
  for component in _allowed.values():
    function = inspect.unwrap(getattr(component, 'func', component))
    try:
      found.add(inspect.getsourcefile(function) or '')
    except TypeError:  # Of an object that can be called, or of C.
      pass
  return found


def choose(
    table: Mapping[str, _T], block: str, fields: dict[str, Any]
) -> _T | Any:
  """Returns the component that a block names; removes the field `name`.

  Raises:
    UserError: if the name is missing or unknown, or names a component of
      another package that was not allowed.
  """
  if 'name' not in fields:
    raise errors.UserError(f'{block}.name is missing.')
  name = fields.pop('name')
  untrusted.check(name, str, f'{block}.name')
  if isinstance(name, str) and ':' in name:
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
  return table[name]


def call(
    function: Callable[..., _T],
    block: str,
    fields: Mapping[str, Any],
    kind: type = object,
) -> _T:
  """Calls a function with a block's fields, after checking their names.

  Raises:
    UserError: if a field is unknown, missing, or not of the declared type, or
      what is returned is not of this kind.
  """
  try:
    parameters = inspect.signature(function).parameters
  except ValueError as error:  # Of a function in C.
    raise errors.UserError(f'{block}.name: {error}.') from error
  kinds = {parameter.kind for parameter in parameters.values()}
  for field in fields:
    if field not in parameters and inspect.Parameter.VAR_KEYWORD not in kinds:
      raise errors.UserError(
          f'{block}.{field} does not exist; {block} has'
          f' {", ".join(parameters)}.'
      )
  for field, parameter in parameters.items():
    needed = parameter.default is parameter.empty and parameter.kind not in (
        parameter.VAR_KEYWORD,
        parameter.VAR_POSITIONAL,
    )
    if needed and field not in fields:
      raise errors.UserError(f'{block}.{field} is missing.')
  kinds_of = _annotations(function)
  for field, value in fields.items():
    untrusted.check(value, kinds_of.get(field, Any), f'{block}.{field}')
    if isinstance(value, int) and not -_MAX_INT < value < _MAX_INT:
      raise untrusted.wrong(f'{block}.{field}', value, 'below 2**31')
  made = function(**fields)
  if not isinstance(made, kind):
    raise errors.UserError(
        f'{block}.name is a function that returns {untrusted.shorten(made)};'
        f' it must return a {kind.__name__}.'
    )
  return made


def block(model: Mapping[str, Any], name: str) -> Any:
  """Returns a block of a model's; raises UserError if it is none."""
  if name not in model:
    raise errors.UserError(f'model.{name} is missing.')
  untrusted.check(model[name], dict[str, Any], f'model.{name}')
  return model[name]


def call_outer(
    function: Callable[..., _T],
    model: Mapping[str, Any],
    training: settings.TrainingConfig,
) -> _T:
  """Calls a function with a model's block `outer` and the run's sizes."""
  sizes = {
      'meta_batch_size': training.meta_batch_size,
      'num_outer_steps': training.num_outer_steps,
  }
  return call(function, 'model.outer', block(model, 'outer') | sizes)


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
  """Returns the types of a function's parameters; {} if unknown."""
  made_by = function.__init__ if isinstance(function, type) else function
  try:
    return typing.get_type_hints(made_by)
  except (AttributeError, NameError, TypeError):  # Of another package.
    return {}


def defaults(function: Callable[..., Any]) -> dict[str, Any]:
  """Returns the optional parameters of a function, with their defaults."""
  return {
      field: parameter.default
      for field, parameter in inspect.signature(function).parameters.items()
      if parameter.default is not parameter.empty
  }
