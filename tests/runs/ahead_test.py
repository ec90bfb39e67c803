"""The next unfinished run is compiled ahead, and no other."""

import types
from typing import Any

import jax
import pytest

from modular_hyperteacher.runs import ahead


class _Programs:
  """Programs that only say whether they were compiled."""

  def __init__(self, error: Exception | None = None) -> None:
    self.compiled = False
    self._error = error

  def init(self) -> str:
    return 'state'

  def compile(self, state: str) -> None:
    assert state == 'state'
    if self._error is not None:
      raise self._error
    self.compiled = True


def _plan(
    *finished: bool, errors: dict[int, Exception] | None = None
) -> tuple[Any, list[_Programs]]:
  made = [_Programs((errors or {}).get(i)) for i in range(len(finished))]
  planned = [
      types.SimpleNamespace(
          folder=types.SimpleNamespace(finished=done),
          make_programs=lambda i=i: made[i],
      )
      for i, done in enumerate(finished)
  ]
  return planned, made


def test_the_next_unfinished_run_is_compiled_with_this_one() -> None:
  planned, made = _plan(False, True, False, False)
  programs = ahead.Ahead(planned)
  assert programs.prepare(0) is made[0]
  programs._pool.shutdown()
  assert [p.compiled for p in made] == [True, False, True, False]


def test_what_was_compiled_ahead_is_used() -> None:
  planned, made = _plan(False, False)
  programs = ahead.Ahead(planned)
  programs.prepare(0)
  begun = programs._begun[1]
  assert programs.prepare(1) is begun.result() is made[1]
  assert made[1].compiled and not programs._begun


def test_runs_that_others_have_taken_are_forgotten() -> None:
  planned, made = _plan(False, False, False)
  programs = ahead.Ahead(planned)
  programs.prepare(0)
  assert set(programs._begun) == {1}
  assert programs.prepare(2) is made[2] and not programs._begun


def test_an_error_comes_with_its_own_run() -> None:
  error = ValueError('too large')
  planned, made = _plan(False, False, errors={1: error})
  programs = ahead.Ahead(planned)
  assert programs.prepare(0) is made[0]
  with pytest.raises(ValueError, match='too large'):
    programs.prepare(1)


def test_accelerators_compile_nothing_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  monkeypatch.setattr(jax, 'default_backend', lambda: 'gpu')
  planned, made = _plan(False, False)
  assert ahead.Ahead(planned).prepare(0) is made[0]
  assert not any(p.compiled for p in made)
