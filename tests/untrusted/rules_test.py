"""A field's rule is its type: configs and direct calls are refused alike."""

from collections.abc import Callable
import inspect
import math
import typing
from typing import Annotated, Any

import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.experiments import bilevel
from modular_hyperteacher.experiments import checked
from modular_hyperteacher.experiments import settings
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.studies.in_context import build as in_context
from modular_hyperteacher.studies.meta_seq2seq import build as meta_seq2seq
from modular_hyperteacher.studies.meta_seq2seq import vocabulary
from modular_hyperteacher.untrusted import rules

_SYSTEMS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (bilevel, ('fig2c', 'fig3b', 'fig4b', 'fig4e', 'scaling', 'amortised')),
    (bilevel, ('sparse_maml', 'given_or_inferred')),
    (in_context, ('in_context', 'fuzzy_logic', 'sraven')),
    (meta_seq2seq, ('scan_me', 'scan_length')),
)
_WRONG = {
    int: (-1, 0, 1, 2001),
    float: (-0.5, 0.0, 2.0),
    str: ('typo', ''),
    tuple: ((), (1, 1), (-1,), (2**32,)),
}


def _find(config: dict[str, Any], path: str) -> dict[str, Any]:
  for part in path.split('.'):
    config = config[part]
  return config


def _makers() -> dict[tuple[Any, str], dict[str, Any]]:
  """Returns (function, block) -> fields of a smoke run."""
  makers = {}
  for system, experiments in _SYSTEMS:
    for experiment in experiments:
      for run in sweeps.described_runs(experiment, 'smoke'):
        blocks = {
            'training': settings.TrainingConfig,
            'execution': settings.ExecutionConfig,
            **system.blocks(run.config['task'], run.config['model']),
        }
        sizes = {
            field: run.config['training'][field]
            for field in ('meta_batch_size', 'num_outer_steps')
        }
        for block, function in blocks.items():
          fields = _find(run.config, block)
          if block == 'model.outer':
            fields = fields | sizes
          makers.setdefault((function, block), fields)
  return makers


def _refusal(function: Callable[..., Any], *given: Any, **fields: Any) -> str:
  try:
    function(*given, **fields)
  except errors.UserError as error:
    return str(error)
  return ''


def _base(kind: Any) -> type:
  """Returns int of `Annotated[int, ...] | None`, for instance."""
  while inner := typing.get_args(kind):
    kind = inner[0]
    if typing.get_origin(kind) is tuple:
      return tuple
  return kind


def _has_rule(kind: Any) -> bool:
  if typing.get_origin(kind) is Annotated:
    return True
  return any(map(_has_rule, typing.get_args(kind)))


_MAKERS = _makers()
_CASES = [
    (function, block, field)
    for function, block in _MAKERS
    for field, kind in rules.types_of(function).items()
    if _has_rule(kind)
]


def test_most_fields_of_all_components_have_rules() -> None:
  assert len(_CASES) > 100
  assert len({function for function, *_ in _CASES}) > 20


@pytest.mark.parametrize(
    'function, block, field',
    _CASES,
    ids=[f'{f.__module__}.{block}.{field}' for f, block, field in _CASES],
)
def test_wrong_values_are_refused_in_configs_and_in_calls(
    function: Any, block: str, field: str
) -> None:
  kinds = {field: rules.types_of(function)[field]}
  words = vocabulary.Vocabulary(('a', 'b'))
  given = {
      'input_dim': 3,
      'output_dim': 2,
      'num_support': 4,
      'input_vocab': words,
      'output_vocab': words,
  }
  known = given | _MAKERS[function, block]
  if known.get('num_modules', 8) is None:  # A multiple of the teacher's.
    known['num_modules'] = 8
  parameters = inspect.signature(function).parameters
  refused = 0
  for wrong in _WRONG[_base(kinds[field])]:
    told = _refusal(rules.check, kinds, block, {field: wrong})
    if told:
      refused += 1
      shown = f"'{wrong}'" if isinstance(wrong, str) else wrong
      assert told.startswith(f'{block}.{field} is {shown}; ')
      changed = {f: known[f] for f in parameters if f in known}
      changed[field] = wrong
      assert _refusal(function, **changed) == told
      assert _refusal(checked.call, function, block, changed) == told
  assert refused


@pytest.mark.parametrize(
    'rule, allowed, refused, told',
    [
        (rules.at_least(1), (1, 2**40), (0, -1, math.inf, 'a'), 'at least 1'),
        (rules.at_least(1, ', or None'), (1,), (0,), 'at least 1, or None'),
        (rules.at_most(3), (3, -3), (4, math.inf), 'at most 3'),
        (rules.between(1, 6), (1, 6), (0, 7, math.nan, None), 'from 1 to 6'),
        (rules.positive(), (1e-9, 1), (0, -1, math.inf, math.nan), 'positive'),
        (rules.that(str.islower, 'low'), ('a',), ('A', 3), 'low'),
    ],
)
def test_a_rule_says_what_is_allowed(
    rule: rules.Rule, allowed: Any, refused: Any, told: str
) -> None:
  for value in allowed:
    rule(value, 'a.b')
  for value in refused:
    with pytest.raises(errors.UserError) as error:
      rule(value, 'a.b')
    shown = f"'{value}'" if isinstance(value, str) else value
    assert str(error.value) == f'a.b is {shown}; it must be {told}.'


def test_a_choice_lists_what_there_is() -> None:
  rule = rules.one_of({'x': 1, 'y': 2})
  rule('x', 'a.b')
  with pytest.raises(errors.UserError, match="a.b is 'z'; choose one of x, y."):
    rule('z', 'a.b')


def test_none_breaks_no_rule_where_it_is_allowed() -> None:
  @rules.enforce('block')
  def function(*, size: rules.Count, limit: rules.Count | None = None) -> int:
    return size + (limit or 0)

  assert function(size=1) == 1 and function(size=1, limit=None) == 1
  assert function(size=1, limit=2) == 3
  for fields, told in (
      (dict(size=0), 'block.size is 0; it must be positive.'),
      (
          dict(size=None),
          'block.size is None; it must be a whole number of less than 64 bits.',
      ),
      (dict(size=1, limit=-1), 'block.limit is -1; it must be positive.'),
  ):
    assert _refusal(function, **fields) == told
  told = _refusal(checked.call, function, 'block', {'size': 1, 'x': 2})
  assert told == 'block.x does not exist; block has size, limit.'


def test_other_words_in_a_type_are_no_rules() -> None:
  @rules.enforce('block')
  def function(*, size: Annotated[int, 'pixels', rules.positive()]) -> int:
    return size

  assert checked.call(function, 'block', {'size': 2}) == 2
  told = 'block.size is 0; it must be positive.'
  assert _refusal(function, size=0) == told
  assert _refusal(checked.call, function, 'block', {'size': 0}) == told
