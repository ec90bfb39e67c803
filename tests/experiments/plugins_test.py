"""Studies of other packages: what is refused, and what is said."""

from importlib import metadata
import types
from typing import Any

import pytest

from modular_hyperteacher import errors
from modular_hyperteacher import studies
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.studies import study


def _load(
    monkeypatch: pytest.MonkeyPatch, *loaded: Any
) -> tuple[study.Study, ...]:
  """Loads the studies as if other packages had these, too."""
  entries = [
      types.SimpleNamespace(name=f's{i}', value=f'p{i}:S', load=lambda x=x: x)
      for i, x in enumerate(loaded)
  ]
  monkeypatch.setattr(metadata, 'entry_points', lambda group: entries)
  return studies.load()[len(studies.BUILT_IN) :]


@pytest.mark.parametrize(
    'fields, said',
    [
        (
            {'models': {'maml': 'a:b'}},
            "models has 'maml', a name that is in use",
        ),
        ({'tasks': {'goals': 'a:b'}}, "tasks has 'goals', a name that is in"),
        ({'configs': ('fig3b',)}, "configs has 'fig3b', a name that is in use"),
        ({'configs': ('amortised',)}, "configs has 'amortised', a name that"),
        (
            {'gradients': {'unrolled': 'a:b'}},
            "gradients has 'unrolled', a name",
        ),
        ({'models': {'transformer': 'a:b'}}, "models has 'transformer', a"),
        (
            {'systems': (study.System('x', 'a.b', models=('maml',)),)},
            "models has 'maml', a name that is in use",
        ),
        ({'configs': 'waves'}, "configs is 'waves'; it must be a tuple"),
    ],
)
def test_a_study_that_takes_a_name_is_left_out(
    fields: dict[str, Any],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
  taking = study.Study(package='a', title='A', paper='ours', **fields)
  sound = study.Study('b', 'B', 'ours', configs=('b',), models={'b': 'b:make'})
  assert _load(monkeypatch, taking, sound) == (sound,)
  message = capsys.readouterr().err
  assert message.startswith('warning: study s0 cannot be loaded (')
  assert said in message and message.count('\n') == 1


def test_the_second_of_two_with_the_same_name_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
  one = study.Study('a', 'A', 'ours', models={'net': 'a:make'})
  two = study.Study('b', 'B', 'ours', models={'net': 'b:make'})
  assert _load(monkeypatch, one, two) == (one,)
  assert "study s1 cannot be loaded (ValueError: models has 'net'" in (
      capsys.readouterr().err
  )


@pytest.mark.parametrize(
    'name, said',
    [
        ('json:no_such', "AttributeError: module 'json' has no attribute"),
        ('no_such_package.module', 'ModuleNotFoundError: No module named'),
    ],
)
def test_what_a_study_names_wrongly_is_said(name: str, said: str) -> None:
  with pytest.raises(errors.UserError, match=f"a study names '{name}'.*{said}"):
    plugins.resolve(name)


def test_a_fault_of_this_package_is_none_of_the_user() -> None:
  with pytest.raises(AttributeError):
    plugins.resolve('modular_hyperteacher.errors:no_such')
