"""Fields that a file may lack are checked where it has them."""

from typing import Any

import pytest

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted
from modular_hyperteacher.runs import records

_SUMMARY = {
    'run_id': 'a-1',
    'seeds': [1],
    'last': {'ood': {'loss': [0.5]}},
    'best_validation': {'ood': {'loss': [0.5]}},
}
_OPTIONAL = {
    'num_outer_steps': 4,
    'best_step': [4],
    'diverged': [],
    'metrics_sha256': '0' * 64,
}


def test_optional_fields_may_be_missing_or_sound() -> None:
  untrusted.check(_SUMMARY, records.Summary, 'file')
  untrusted.check(_SUMMARY | _OPTIONAL, records.Summary, 'file')
  untrusted.check({'runs': {}}, records.Bundle, 'file')
  sound = {'runs': {}, 'sha256': {'results.csv.gz': '0' * 64}}
  untrusted.check(sound, records.Bundle, 'file')


def test_text_that_cannot_be_written_is_refused() -> None:
  session = {'sessions': [{'commit': '\ud800'}]}
  with pytest.raises(errors.UserError, match='commit is .*it must be'):
    untrusted.check(session, records.Provenance, 'file')


def test_messages_are_one_line_without_codes() -> None:
  said = errors.line('error: a\nb \x1b[31m \u2028 \U0001f600 ö')
  assert said == 'error: a\\nb \\x1b[31m \\u2028 \U0001f600 ö'


@pytest.mark.parametrize('wrong', [None, 4.5, {'a': None}, [None], [[]]])
@pytest.mark.parametrize('field', _OPTIONAL)
def test_optional_fields_of_a_summary(field: str, wrong: Any) -> None:
  with pytest.raises(errors.UserError, match=f'file: {field}'):
    untrusted.check(_SUMMARY | {field: wrong}, records.Summary, 'file')


@pytest.mark.parametrize('wrong', [None, [], 'x', {'results.csv.gz': None}])
def test_digests_of_a_bundle(wrong: Any) -> None:
  with pytest.raises(errors.UserError, match='file: sha256'):
    untrusted.check({'runs': {}, 'sha256': wrong}, records.Bundle, 'file')
