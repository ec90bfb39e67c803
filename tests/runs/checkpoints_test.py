"""Damaged checkpoints, full disks: what was saved is found again, or told."""

from collections.abc import Callable, Mapping, Sequence
import contextlib
import errno
import io
import os
import pathlib
import shutil
from typing import Any, NoReturn
import zipfile

import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher import untrusted
from modular_hyperteacher.runs import checkpoints
from modular_hyperteacher.runs import run_folder
from tests.helpers import disks


def _tree(step: int, size: int = 500) -> dict[str, Any]:
  generator = np.random.default_rng(step)
  return {
      'a': generator.standard_normal(size).astype(np.float32),
      'step': np.int32(step),
  }


def _saved(
    folder: pathlib.Path, steps: Sequence[int] = (1, 2, 3)
) -> checkpoints.Checkpoints:
  store = checkpoints.Checkpoints(folder)
  for step in steps:
    store.save(step, _tree(step), b'rows of %d' % step)
  return store


def _assert_equal(
    actual: Mapping[str, Any] | None, expected: Mapping[str, Any]
) -> None:
  assert actual is not None
  assert actual.keys() == expected.keys()
  for name, value in expected.items():
    np.testing.assert_array_equal(actual[name], value)


def _files(folder: pathlib.Path) -> list[pathlib.Path]:
  return sorted(p for p in folder.rglob('*') if p.is_file())


def test_the_newest_two_are_kept(tmp_path: pathlib.Path) -> None:
  store = _saved(tmp_path)
  assert sorted(p.name for p in tmp_path.iterdir()) == ['2.npz', '3.npz']
  _assert_equal(store.restore(_tree(0)), _tree(3))
  assert checkpoints.Checkpoints(tmp_path / 'new').restore(_tree(0)) is None


def test_folders_that_are_no_steps_are_ignored(tmp_path: pathlib.Path) -> None:
  for name in ('²', '007', 'notes', '3.np', '.npz', '03.npz'):
    (tmp_path / name).mkdir()
  assert not checkpoints.Checkpoints(tmp_path).steps()


def test_another_save_of_a_step_replaces_it(tmp_path: pathlib.Path) -> None:
  store = _saved(tmp_path)
  before = (tmp_path / '3.npz').stat().st_ino
  store.save(3, _tree(3), b'rows of 3')
  assert (tmp_path / '3.npz').stat().st_ino == before  # Nothing was written.
  changed = _tree(3) | {'a': np.zeros(500, np.float32)}
  store.save(3, changed)
  assert sorted(p.name for p in tmp_path.iterdir()) == ['2.npz', '3.npz']
  _assert_equal(checkpoints.Checkpoints(tmp_path).restore(_tree(0)), changed)


def test_killed_while_replacing_the_earlier_one_is_found(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  folder = run_folder.RunFolder(tmp_path)
  store = _saved(folder.checkpoints, steps=(3,))
  changed = _tree(3) | {'a': np.zeros(500, np.float32)}

  def die(*args: object) -> NoReturn:
    raise KeyboardInterrupt

  with monkeypatch.context() as patch:
    patch.setattr(files.os, 'replace', die)
    with contextlib.suppress(KeyboardInterrupt):
      store.save(3, changed)
  assert len(_files(folder.checkpoints)) == 2
  folder.open({})  # Removes what is unfinished.
  assert [p.name for p in _files(folder.checkpoints)] == ['3.npz']
  store = checkpoints.Checkpoints(folder.checkpoints)
  _assert_equal(store.restore(_tree(0)), _tree(3))
  store.save(3, changed)
  _assert_equal(store.restore(_tree(0)), changed)


def _truncate(path: pathlib.Path) -> None:
  path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flip(path: pathlib.Path) -> None:
  content = bytearray(path.read_bytes()) or bytearray(1)
  content[len(content) // 2] ^= 4
  path.write_bytes(content)


@pytest.mark.parametrize('damage', [_truncate, _flip])
def test_after_any_damage_what_is_restored_was_saved(
    tmp_path: pathlib.Path,
    damage: Callable[[pathlib.Path], object],
    capsys: pytest.CaptureFixture[str],
) -> None:
  folder = tmp_path / 'checkpoints'
  store = _saved(folder)
  damage(folder / '3.npz')
  _assert_equal(store.restore(_tree(0)), _tree(2))
  said = capsys.readouterr().err
  assert 'warning: checkpoint' in said and '/3.npz' in said
  assert 'to damaged-checkpoint-3.npz, resuming from step 2' in said
  # Again: it says where it really is.
  store.save(3, _tree(3))
  damage(folder / '3.npz')
  _assert_equal(store.restore(_tree(0)), _tree(2))
  assert 'damaged-checkpoint-3.npz-again,' in capsys.readouterr().err
  store.save(3, _tree(3))
  _assert_equal(store.restore(_tree(0)), _tree(3))
  assert sorted(path.name for path in _files(tmp_path)) == [
      '2.npz',
      '3.npz',
      'damaged-checkpoint-3.npz',
      'damaged-checkpoint-3.npz-again',
  ]


def test_every_flipped_bit_is_noticed_or_changes_nothing(
    tmp_path: pathlib.Path,
) -> None:
  _saved(tmp_path / 'sound', steps=(1, 2))
  sound = (tmp_path / 'sound' / '2.npz').read_bytes()
  generator = np.random.default_rng(0)
  num_noticed = 0
  for number in range(200):
    folder = tmp_path / str(number) / 'checkpoints'
    shutil.copytree(tmp_path / 'sound', folder)
    content = bytearray(sound)
    content[generator.integers(len(content))] ^= 1 << generator.integers(8)
    (folder / '2.npz').write_bytes(content)
    store = checkpoints.Checkpoints(folder)
    restored = store.restore(_tree(0))
    assert restored is not None
    step = int(restored['step'])
    _assert_equal(restored, _tree(step))
    assert store.rows == b'rows of %d' % step
    num_noticed += step == 1
  assert num_noticed > 150


@pytest.mark.parametrize('name', ['rows', 'sha256', "['a']"])
def test_what_was_exchanged_is_noticed(
    tmp_path: pathlib.Path, name: str
) -> None:
  """The archive's own checksums fit: only the digest does not."""
  folder = tmp_path / 'checkpoints'
  _saved(folder, steps=(1, 2))
  arrays = dict(np.load(folder / '2.npz'))
  arrays[name] = np.roll(arrays[name], 1)
  np.savez(folder / '2.npz', **arrays)
  store = checkpoints.Checkpoints(folder)
  with pytest.raises(errors.UserError, match='/2.npz does not match its dig'):
    store.restore(_tree(0), newest_only=True)
  _assert_equal(store.restore(_tree(0)), _tree(1))
  assert store.rows == b'rows of 1'


@pytest.mark.parametrize(
    'like, message',
    [
        ({'a': np.zeros(501, np.float32)}, r'shape \[500\]; .* shape \[501\]'),
        ({'b': np.zeros(500, np.float32)}, 'is missing'),
        ({'a': np.zeros(500, np.int32)}, 'it must be integers'),
        ({'a': np.zeros(500, np.float64)}, 'does not match'),
    ],
)
def test_of_another_version_it_is_refused(
    tmp_path: pathlib.Path, like: dict[str, Any], message: str
) -> None:
  store = _saved(tmp_path, steps=(1,))
  message += '.* It is damaged or of another version. All others are'
  with pytest.raises(errors.UserError, match=message):
    store.restore({'step': np.int32(0)} | like)


def test_many_arrays_are_restored(tmp_path: pathlib.Path) -> None:
  """More than an archive from a stranger may hold."""
  tree = {f'a deep model has many {i}': np.full(1, i) for i in range(1500)}
  store = checkpoints.Checkpoints(tmp_path)
  store.save(1, tree)
  _assert_equal(store.restore(tree), tree)


def test_more_than_four_gib_are_restored(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  """NumPy's archives then end otherwise: here from 4 kB on."""
  tree = {name: np.arange(1000) for name in 'abc'}
  store = checkpoints.Checkpoints(tmp_path)
  with monkeypatch.context() as patch:
    patch.setattr(zipfile, 'ZIP64_LIMIT', 4096)
    store.save(1, tree)
  assert b'PK\x06\x07' in (tmp_path / '1.npz').read_bytes()
  _assert_equal(store.restore(tree), tree)


def test_if_none_is_sound_it_says_so_and_touches_nothing(
    tmp_path: pathlib.Path,
) -> None:
  _saved(tmp_path / 'checkpoints', steps=(1, 2))
  for path in _files(tmp_path):
    _truncate(path)
  before = _files(tmp_path)
  with pytest.raises(errors.UserError, match='/2.npz is not .*Delete'):
    checkpoints.Checkpoints(tmp_path / 'checkpoints').restore(_tree(0))
  assert _files(tmp_path) == before


def test_a_file_that_cannot_be_read_now_is_no_damaged_one(
    tmp_path: pathlib.Path,
) -> None:
  store = _saved(tmp_path, steps=(1, 2))
  path = tmp_path / '2.npz'
  path.rename(tmp_path / 'away')
  path.symlink_to(path)  # Nobody may read this, not even root.
  with pytest.raises(errors.MachineError, match='/2.npz: Too many .*symbolic'):
    store.restore(_tree(0))
  (tmp_path / 'away').rename(path)
  _assert_equal(store.restore(_tree(0)), _tree(2))


@pytest.mark.parametrize('number', [errno.EIO, errno.ENOMEM, errno.ESTALE])
def test_a_fault_while_reading_is_no_damage(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
  store = _saved(tmp_path, steps=(1, 2))

  class Failing(io.BytesIO):

    def read(self, *args: Any) -> bytes:
      if self.tell() == 0:  # After the directory, which is at the end.
        raise OSError(number, os.strerror(number))
      return super().read(*args)

  content = (tmp_path / '2.npz').read_bytes()
  with monkeypatch.context() as patch:
    patch.setattr(untrusted, 'open_file', lambda path: Failing(content))
    with pytest.raises(errors.MachineError, match=os.strerror(number)):
      store.restore(_tree(0))
  _assert_equal(store.restore(_tree(0)), _tree(2))


def test_parameters_that_are_asked_for_are_not_older_ones(
    tmp_path: pathlib.Path,
) -> None:
  store = _saved(tmp_path / 'checkpoints', steps=(1, 2))
  _truncate(tmp_path / 'checkpoints' / '2.npz')
  with pytest.raises(errors.UserError, match='/2.npz is not') as refusal:
    store.restore(_tree(0), newest_only=True)
  assert 'Delete' not in str(refusal.value)
  assert [path.name for path in tmp_path.iterdir()] == ['checkpoints']
  _assert_equal(store.restore(_tree(0)), _tree(1))


def test_on_a_full_disk_the_last_checkpoint_survives(
    tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
  large = 120_000  # 480 kB; two fit, three do not
  with disks.mounted(tmp_path / 'disk', 'size=1200k') as disk:
    store = checkpoints.Checkpoints(disk / 'checkpoints')
    store.save(1, _tree(1, large))
    store.save(2, _tree(2, large))
    message = 'cannot write .*/3.npz: No space left on device.*freeing disk'
    with pytest.raises(errors.StorageError, match=message):
      store.save(3, _tree(3, large))
    assert 'Traceback' not in capfd.readouterr().err
    again = checkpoints.Checkpoints(disk / 'checkpoints')
    _assert_equal(again.restore(_tree(0, large)), _tree(2, large))
    names = sorted(p.name for p in (disk / 'checkpoints').iterdir())
    assert names == ['1.npz', '2.npz']

    folder = run_folder.RunFolder(disk)
    rows = [(step, 0, 'train', 'loss', 0.1) for step in range(1000)]
    folder.write_metrics(rows[:10])
    (disk / 'filler').write_bytes(b'')
    with contextlib.suppress(OSError), open(disk / 'filler', 'wb') as file:
      while True:
        file.write(bytes(4096))
    with pytest.raises(errors.StorageError, match='metrics.csv: No space'):
      folder.write_metrics(rows * 100)
    assert len(folder.read_metrics()) == 10
    assert not list(disk.glob('.writing-*'))


def test_a_read_only_folder_is_refused(tmp_path: pathlib.Path) -> None:
  with disks.mounted(tmp_path / 'disk', 'ro') as disk:
    message = '--results: cannot write to .*Read-only.*choose a writable'
    with pytest.raises(errors.UserError, match=message):
      run_folder.RunFolder(disk / 'run').create()
