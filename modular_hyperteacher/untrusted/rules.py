"""Rules of fields, written as their types: `Annotated[int, rules.at_least(1)]`.

A rule is a function of a value and of its field's name that raises UserError.
Tasks and models declare the rules of their arguments, and settings those of
their fields. Rules that relate several fields are in the code that reads them.
"""

from collections.abc import Callable, Iterable, Mapping
import dataclasses
import functools
import math
import typing
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted

Rule: TypeAlias = Callable[[Any, str], None]
_Function = TypeVar('_Function', bound=Callable[..., Any])
_MAX_LAYERS = 1000


def that(allows: Callable[[Any], Any], text: str) -> Rule:
  """Returns the rule of a value that 'must be {text}'."""

  def rule(value: Any, field: str) -> None:
    try:
      allowed = allows(value)
    except TypeError:  # Text where a number belongs, for instance.
      allowed = False
    shown = repr(value) if isinstance(value, str) else value
    errors.require(allowed, field, shown, f'it must be {text}')

  return rule


def at_least(least: float, note: str = '') -> Rule:
  """Returns the rule of a finite number from `least` on."""
  return that(lambda x: least <= x < math.inf, f'at least {least}{note}')


def at_most(most: float) -> Rule:
  """Returns the rule of a number up to `most`."""
  return that(lambda x: x <= most, f'at most {most}')


def between(low: float, high: float) -> Rule:
  """Returns the rule of a number from `low` to `high`, both included."""
  return that(lambda x: low <= x <= high, f'from {low} to {high}')


def positive(note: str = '') -> Rule:
  """Returns the rule of a finite number above zero."""
  return that(lambda x: 0 < x < math.inf, f'positive{note}')


def one_of(choices: Iterable[str]) -> Rule:
  """Returns the rule of a name in a table."""
  return lambda value, field: errors.require_choice(field, value, choices)


Count = Annotated[int, positive()]
# Compiling takes time for each of them.
Layers = Annotated[int, positive(), at_most(_MAX_LAYERS)]
Positive = Annotated[float, positive()]
NotNegative = Annotated[float, at_least(0)]
Share = Annotated[float, between(0, 1)]
BelowOne = Annotated[
    float, that(lambda x: 0 <= x < 1, 'at least 0 and less than 1')
]


def types_of(function: Callable[..., Any]) -> dict[str, Any]:
  """Returns the types of a function's or class's arguments; {} if unknown."""
  made_by = function.__init__ if isinstance(function, type) else function
  try:
    return typing.get_type_hints(made_by, include_extras=True)
  except (AttributeError, NameError, TypeError):  # In another package.
    return {}


def check(
    kinds: Mapping[str, Any], block: str, fields: Mapping[str, Any]
) -> None:
  """Raises UserError for the first field of another type or against a rule."""
  for field, value in fields.items():
    untrusted.check(value, kinds.get(field, Any), f'{block}.{field}')


def enforce(block: str) -> Callable[[_Function], _Function]:
  """Returns a decorator: the function's keyword arguments obey their rules.

  Example:
    @rules.enforce('task')  # The arguments' block in a config.
    def make(*, num_modules: rules.Count) -> base.TaskDistribution:
      ...
  """

  def decorate(function: _Function) -> _Function:
    kinds = types_of(function)

    @functools.wraps(function)
    def call(*args: Any, **fields: Any) -> Any:
      check(kinds, block, fields)
      return function(*args, **fields)

    return typing.cast(_Function, call)

  return decorate


@dataclasses.dataclass(frozen=True)
class Record:
  """A dataclass whose fields obey the rules of their types."""

  BLOCK: ClassVar[str]  # name of the fields' block in a config

  def __post_init__(self) -> None:
    check(types_of(type(self)), self.BLOCK, vars(self))

  def require(self, allowed: Any, field: str, rule: str) -> None:
    """Raises UserError unless allowed; see `errors.require`."""
    value = getattr(self, field)
    errors.require(allowed, f'{self.BLOCK}.{field}', value, rule)
