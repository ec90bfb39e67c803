"""Calls components with the fields of a config's blocks, after checks."""

from collections.abc import Callable, Mapping, Sequence
import inspect
from typing import Any, TypeVar

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted
from modular_hyperteacher.experiments import settings
from modular_hyperteacher.untrusted import rules

_T = TypeVar('_T')
_MAX_INT = 2**31  # JAX counts with 32 bits.


def call(
    function: Callable[..., _T],
    block: str,
    fields: Mapping[str, Any],
    kind: type = object,
) -> _T:
  """Calls a function with a block's fields, after checking them.

  Raises:
    UserError: if a field is unknown, missing, not of the declared type or
      breaks its rule, or what is returned is not of this kind.
  """
  parameters = _parameters(function, block)
  variadic = (
      inspect.Parameter.VAR_KEYWORD,
      inspect.Parameter.VAR_POSITIONAL,
  )
  takes_any = _takes_any(parameters)
  for field in fields:
    if field not in parameters and not takes_any:
      raise errors.UserError(
          f'{block}.{field} does not exist; {block} has'
          f' {", ".join(parameters)}.'
      )
  for field, parameter in parameters.items():
    needed = parameter.default is parameter.empty
    if needed and parameter.kind not in variadic and field not in fields:
      raise errors.UserError(f'{block}.{field} is missing.')
  rules.check(rules.types_of(function), block, fields)
  for field, value in fields.items():
    if isinstance(value, int) and not -_MAX_INT < value < _MAX_INT:
      raise untrusted.wrong(f'{block}.{field}', value, 'below 2**31')
  made = function(**fields)
  if not isinstance(made, kind):
    raise errors.UserError(
        f'{block}.name is a function that returns {untrusted.shorten(made)};'
        f' it must return a {kind.__name__}.'
    )
  return made


def require_parameters(
    function: Callable[..., Any], block: str, names: Sequence[str]
) -> None:
  """Raises UserError unless a block's function takes these arguments."""
  parameters = _parameters(function, block)
  for name in names:
    if name not in parameters and not _takes_any(parameters):
      raise errors.UserError(
          f"{block}.name is a function without the argument '{name}'; it must"
          f' take {" and ".join(names)}.'
      )


def _parameters(
    function: Callable[..., Any], block: str
) -> Mapping[str, inspect.Parameter]:
  try:
    return inspect.signature(function).parameters
  except ValueError as error:  # A function in C may have none.
    raise errors.UserError(f'{block}.name: {error}.') from error


def _takes_any(parameters: Mapping[str, inspect.Parameter]) -> bool:
  return any(p.kind == p.VAR_KEYWORD for p in parameters.values())


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
  outer = block(model, 'outer')
  for name in sorted({*sizes, 'task_chunk_size'}.intersection(outer)):
    rule = 'it must be absent, as training or execution sets it'
    errors.require(False, f'model.outer.{name}', outer[name], rule)
  return call(function, 'model.outer', outer | sizes)
