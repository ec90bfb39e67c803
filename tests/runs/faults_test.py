"""Faults of any write while training: what was saved is found, bit for bit."""

from collections.abc import Callable
import errno
import itertools
import os
import pathlib
import random
import shutil
from typing import Any

import jax
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.learning import programs
from modular_hyperteacher.runs import checkpoints
from modular_hyperteacher.runs import run_folder
from tests.helpers import tiny
from tests.runs import trainer_test

# What is patched: each is one step of a write. Names of os and pathlib.
_STEPS = ('fsync', 'replace', 'rename', 'write_text', 'write_bytes')


# Writes of six undisturbed steps; test_a_fault_of_every_write counts them.
_NUM_STEPS, _NUM_WRITES = 6, 18


class _Killed(BaseException):
  """Ends the process, as far as the code below can tell."""


class _Faults:
  """Lets one write fail: in the middle, or so that nothing is written."""

  def __init__(self, at: int, error: BaseException) -> None:
    self._left = at
    self._error = error
    self.happened = False

  def wrap(self, name: str, function: Callable[..., Any]) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
      self._left -= 1
      if self._left != 0:
        # Waiting for the disk takes most of the time, and tests nothing here.
        return None if name == 'fsync' else function(*args, **kwargs)
      self.happened = True
      if name == 'fsync':  # Half of the file is on the disk.
        os.ftruncate(args[0], os.fstat(args[0]).st_size // 2)
      elif name.startswith('write'):
        function(args[0], args[1][: len(args[1]) // 2])
      raise self._error

    return call


@pytest.fixture(scope='module', name='compiled')
def fixture_compiled() -> programs.Programs:
  world = tiny.task()
  return tiny.make_programs(world, tiny.learner(world), trainer_test._SEEDS)


@pytest.fixture(scope='module', name='expected')
def fixture_expected(
    compiled: programs.Programs, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Any]:
  path = tmp_path_factory.mktemp('whole')
  _train(compiled, path)
  return trainer_test._final(compiled, path)


def _train(compiled: programs.Programs, path: pathlib.Path) -> None:
  trainer_test._trainer(compiled, path, num_outer_steps=_NUM_STEPS).run()


def _check(
    compiled: programs.Programs,
    path: pathlib.Path,
    expected: tuple[str, Any],
    *planned: tuple[int, BaseException],
) -> list[bool]:
  """Trains once per fault, then without; returns which faults happened.

  Args:
    compiled: what trains.
    path: the path of the run.
    expected: metrics and checkpoint of an undisturbed run.
    *planned: which write of a process fails, from 1, and how.
  """
  happened = []
  for at, error in planned:
    faults = _Faults(at, error)
    with pytest.MonkeyPatch.context() as patch:
      for name in _STEPS:
        owner: Any = os if name in ('fsync', 'replace') else pathlib.Path
        patch.setattr(owner, name, faults.wrap(name, getattr(owner, name)))
      try:
        _train(compiled, path)
      except (errors.StorageError, _Killed):
        pass
    happened.append(faults.happened)
  _train(compiled, path)
  rows, saved = trainer_test._final(compiled, path)
  assert rows == expected[0]
  jax.tree.map(np.testing.assert_array_equal, saved, expected[1])
  return happened


_ERRORS = [
    OSError(28, 'No space left on device'),
    OSError(5, 'Input/output error'),
    _Killed(),
]


@pytest.mark.parametrize('error', _ERRORS, ids=['ENOSPC', 'EIO', 'kill'])
def test_a_fault_of_a_write(
    compiled: programs.Programs,
    expected: tuple[str, Any],
    tmp_path: pathlib.Path,
    error: BaseException,
) -> None:
  assert _check(compiled, tmp_path, expected, (3, error)) == [True]


# Which error it is matters for reads only.
@pytest.mark.slow
@pytest.mark.parametrize('error', _ERRORS[::2], ids=['ENOSPC', 'kill'])
def test_a_fault_of_every_write(
    compiled: programs.Programs,
    expected: tuple[str, Any],
    tmp_path: pathlib.Path,
    error: BaseException,
) -> None:
  at = 1
  while all(_check(compiled, tmp_path / str(at), expected, (at, error))):
    at += 1
  assert at == _NUM_WRITES + 1


@pytest.mark.slow
def test_faults_of_two_writes(
    compiled: programs.Programs,
    expected: tuple[str, Any],
    tmp_path: pathlib.Path,
) -> None:
  """The second fault is in the process that resumes after the first."""
  writes = range(1, _NUM_WRITES + 1)
  cases = list(itertools.product(writes, _ERRORS, writes, _ERRORS))
  # All of them take hours: FUZZ_CASES says how many, and tries other ones.
  given = os.environ.get('FUZZ_CASES')
  shuffled = random.Random(None if given else 0)
  num_both = 0
  for case in shuffled.sample(cases, min(int(given or 30), len(cases))):
    planned = [case[:2], case[2:]]
    happened = _check(compiled, tmp_path / 'run', expected, *planned)
    shutil.rmtree(tmp_path / 'run')
    num_both += all(happened)
  assert num_both > 10


@pytest.mark.parametrize('change', ['cut', 'edited', 'missing', 'garbled'])
def test_metrics_are_mended_from_the_checkpoint(
    compiled: programs.Programs,
    expected: tuple[str, Any],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    change: str,
) -> None:
  trainer_test._trainer(compiled, tmp_path, num_outer_steps=9).run()
  path = tmp_path / 'metrics.csv'
  content = path.read_bytes()
  lines = content.splitlines(keepends=True)
  if change == 'missing':
    path.unlink()
  else:
    path.write_bytes(
        {
            'cut': b''.join(lines[:-20]),
            'edited': b''.join([*lines[:5], b'10,202,,,\n', *lines[6:]]),
            'garbled': b'\xff\x00' * 50,
        }[change]
    )
  trainer_test._trainer(compiled, tmp_path, num_outer_steps=9)
  assert 'metrics.csv' in capsys.readouterr().err
  assert path.read_bytes() == content
  stored = checkpoints.Checkpoints(tmp_path / 'checkpoints')
  assert stored.steps()[0] == 9
  run_folder.RunFolder(tmp_path).read_metrics()


@pytest.mark.parametrize(
    ('number', 'kind', 'told'),
    [
        (errno.EACCES, errors.UserError, 'Permission denied'),
        (errno.ESTALE, errors.MachineError, 'Stale file handle'),
    ],
)
def test_a_folder_that_may_not_be_read_is_named(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    kind: type[Exception],
    told: str,
) -> None:
  def refuse(path: pathlib.Path) -> None:
    raise OSError(number, told, str(path))

  monkeypatch.setattr(pathlib.Path, 'stat', refuse)
  with pytest.raises(kind, match=f'summary.json cannot be read .{told}'):
    _ = run_folder.RunFolder(tmp_path).finished


@pytest.mark.parametrize(
    ('number', 'kind'),
    [
        (errno.EROFS, errors.UserError),
        (errno.ENOSPC, errors.StorageError),
        (errno.EDQUOT, errors.StorageError),
    ],
)
def test_a_full_disk_is_no_mistake_of_the_user(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    kind: type[Exception],
) -> None:
  def refuse(path: pathlib.Path, **_: bool) -> None:
    raise OSError(number, os.strerror(number), str(path))

  monkeypatch.setattr(pathlib.Path, 'mkdir', refuse)
  with pytest.raises(kind, match=os.strerror(number)):
    run_folder.RunFolder(tmp_path / 'run').create()


def test_results_without_their_config_are_not_finished(
    tmp_path: pathlib.Path,
) -> None:
  folder = run_folder.RunFolder(tmp_path)
  results = {'seeds': [1], 'last': {}, 'best_validation': {}}
  folder.write('summary.json', {'run_id': 'a-1'} | results)
  with pytest.raises(errors.UserError, match='config.json is missing'):
    folder.check({})
  config = {
      'task': {'name': 'a'},
      'model': {'name': 'b'},
      'training': {'seeds': [1], 'num_outer_steps': 2},
      'execution': {},
  }
  folder.write('config.json', config)
  folder.check({})
  folder.write(
      'config.json',
      config | {'training': {**config['training'], 'seeds': [1, 2]}},
  )
  with pytest.raises(errors.UserError, match=r'seeds \[1\], but config.json'):
    folder.check({})


def test_what_cannot_be_cleaned_up_is_named(tmp_path: pathlib.Path) -> None:
  (tmp_path / '.writing-x').mkdir()
  with pytest.raises(errors.UserError, match='.writing-x cannot be removed'):
    run_folder.RunFolder(tmp_path).open({})
