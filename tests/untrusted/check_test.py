"""What is read has exactly the declared types, optional fields included."""

from typing import Any, NotRequired, TypedDict

import pytest

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted


class _Record(TypedDict):
  number: int
  extra: NotRequired[dict[str, int]]


@pytest.mark.parametrize('value', [{'number': 1}, {'number': 1, 'extra': {}}])
def test_optional_fields_may_be_missing(value: Any) -> None:
  untrusted.check(value, _Record, 'file')


@pytest.mark.parametrize(
    'extra', [None, [], 'text', 1, {'a': 'b'}, {'a': 1.5}, {'a': None}]
)
def test_optional_fields_have_their_type(extra: Any) -> None:
  with pytest.raises(errors.UserError, match='file: extra'):
    untrusted.check({'number': 1, 'extra': extra}, _Record, 'file')
