"""The next run to train is compiled ahead, and no other."""

import pathlib
import time
import types
from typing import Any

import jax
import pytest

from modular_hyperteacher.runs import ahead
from modular_hyperteacher.runs import locks
from modular_hyperteacher.runs import run_folder
from modular_hyperteacher.runs import runner


class _Programs:
  """Programs that only say whether they were compiled."""

  def __init__(self, seconds: float, error: Exception | None) -> None:
    self.compiled = False
    self._seconds = seconds
    self._error = error

  def compile_init(self) -> str:
    return 'shapes'

  def compile(self, state: str) -> None:
    assert state == 'shapes'
    time.sleep(self._seconds)
    if self._error is not None:
      raise self._error
    self.compiled = True


class _Plan:
  """Runs without a config, and the programs that were made of them."""

  def __init__(
      self, path: pathlib.Path, number: int, finished: tuple[int, ...] = ()
  ) -> None:
    self.made: dict[int, _Programs] = {}
    self.errors: dict[int, Exception] = {}
    self.seconds: dict[int, float] = {}
    self.folders = [
        run_folder.RunFolder(path / str(index)) for index in range(number)
    ]
    for index in finished:
      self.folders[index].create()
      self.folders[index].write('summary.json', {})

  def _make(self, index: int) -> _Programs:
    assert index not in self.made, 'made twice'
    self.made[index] = _Programs(
        self.seconds.get(index, 0.0), self.errors.get(index)
    )
    return self.made[index]

  @property
  def compiled(self) -> list[int]:
    return sorted(i for i, made in self.made.items() if made.compiled)

  @property
  def runs(self) -> list[runner.PlannedRun]:
    runs: Any = [
        types.SimpleNamespace(
            folder=folder, make_programs=lambda index=index: self._make(index)
        )
        for index, folder in enumerate(self.folders)
    ]
    return runs


def test_the_next_unfinished_run_is_compiled_with_this_one(
    tmp_path: pathlib.Path,
) -> None:
  plan = _Plan(tmp_path, 4, finished=(1,))
  programs = ahead.Ahead(plan.runs)
  assert programs.prepare(0) is plan.made[0]
  programs._pool.shutdown()
  assert plan.compiled == [0, 2]


def test_what_was_compiled_ahead_is_used_and_nothing_is_made_twice(
    tmp_path: pathlib.Path,
) -> None:
  plan = _Plan(tmp_path, 2)
  programs = ahead.Ahead(plan.runs)
  programs.prepare(0)
  begun = programs._begun[1]
  assert programs.prepare(1) is begun.result() is plan.made[1]
  assert plan.compiled == [0, 1] and not programs._begun


def test_a_single_run_is_compiled_once(tmp_path: pathlib.Path) -> None:
  plan = _Plan(tmp_path, 1)
  programs = ahead.Ahead(plan.runs)
  assert programs.prepare(0) is plan.made[0]
  programs._pool.shutdown()
  assert plan.compiled == [0]


def test_runs_that_others_hold_are_not_compiled(tmp_path: pathlib.Path) -> None:
  plan = _Plan(tmp_path, 3)
  lock = locks.Locks().acquire(plan.folders[1])
  assert lock is not None
  programs = ahead.Ahead(plan.runs)
  programs.prepare(0)
  lock.release()
  programs._pool.shutdown()
  assert plan.compiled == [0, 2]


def test_runs_that_others_have_taken_are_forgotten(
    tmp_path: pathlib.Path,
) -> None:
  plan = _Plan(tmp_path, 3)
  programs = ahead.Ahead(plan.runs)
  programs.prepare(0)
  assert set(programs._begun) == {1}
  assert programs.prepare(2) is plan.made[2] and not programs._begun


def test_nothing_is_begun_after_the_end(tmp_path: pathlib.Path) -> None:
  plan = _Plan(tmp_path, 3)
  plan.seconds = {1: 1.0}
  with ahead.Ahead(plan.runs) as programs:
    programs._pool._max_workers = 1  # So that the next one has to wait.
    programs.prepare(0)
    waiting = programs._pool.submit(plan.runs[2].make_programs)
  programs._pool.shutdown()
  assert waiting.cancelled() and 2 not in plan.made


def test_an_error_comes_with_its_own_run(tmp_path: pathlib.Path) -> None:
  plan = _Plan(tmp_path, 2)
  plan.errors = {1: ValueError('too large')}
  programs = ahead.Ahead(plan.runs)
  assert programs.prepare(0) is plan.made[0]
  with pytest.raises(ValueError, match='too large'):
    programs.prepare(1)


def test_accelerators_compile_nothing_ahead(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  monkeypatch.setattr(jax, 'default_backend', lambda: 'gpu')
  plan = _Plan(tmp_path, 2)
  assert ahead.Ahead(plan.runs).prepare(0) is plan.made[0]
  assert list(plan.made) == [0] and not plan.compiled
