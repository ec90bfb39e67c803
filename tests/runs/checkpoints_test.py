"""Damaged checkpoints, full disks: what was saved is found again, or told."""

from collections.abc import Callable, Mapping, Sequence
import contextlib
import itertools
import pathlib
import shutil
from typing import Any

import numpy as np
import pytest

from modular_hyperteacher import errors
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
    store.save(step, _tree(step))
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
  assert sorted(p.name for p in tmp_path.iterdir()) == ['2', '3']
  _assert_equal(store.restore(_tree(0)), _tree(3))
  assert checkpoints.Checkpoints(tmp_path / 'new').restore(_tree(0)) is None


def test_folders_that_are_no_steps_are_ignored(tmp_path: pathlib.Path) -> None:
  for name in ('²', '007', 'notes'):
    (tmp_path / name).mkdir()
  assert not checkpoints.Checkpoints(tmp_path).steps()


def test_another_save_of_a_step_replaces_it(tmp_path: pathlib.Path) -> None:
  store = _saved(tmp_path)
  before = (tmp_path / '3').stat().st_ino
  store.save(3, _tree(3))
  assert (tmp_path / '3').stat().st_ino == before  # Nothing was written.
  changed = _tree(3) | {'a': np.zeros(500, np.float32)}
  store.save(3, changed)
  assert sorted(p.name for p in tmp_path.iterdir()) == ['2', '3']
  _assert_equal(checkpoints.Checkpoints(tmp_path).restore(_tree(0)), changed)


@pytest.mark.parametrize('num_moves', [0, 1, 2])
def test_killed_while_replacing_either_is_found(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, num_moves: int
) -> None:
  store = _saved(tmp_path, steps=(3,))
  changed = _tree(3) | {'a': np.zeros(500, np.float32)}
  moves = iter(range(num_moves))
  rename = pathlib.Path.rename

  def die(self: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    if self.parent == tmp_path and next(moves, None) is None:
      raise KeyboardInterrupt
    return rename(self, target)

  with monkeypatch.context() as patch:
    patch.setattr(pathlib.Path, 'rename', die)
    patch.setattr(checkpoints.shutil, 'rmtree', lambda *args, **kwargs: None)
    with contextlib.suppress(KeyboardInterrupt):
      store.save(3, changed)
  restored = checkpoints.Checkpoints(tmp_path).restore(_tree(0))
  _assert_equal(restored, changed if num_moves == 2 else _tree(3))
  store.save(3, changed)
  _assert_equal(checkpoints.Checkpoints(tmp_path).restore(_tree(0)), changed)
  assert sorted(p.name for p in tmp_path.iterdir()) == ['3']


def _truncate(path: pathlib.Path) -> None:
  path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flip(path: pathlib.Path) -> None:
  content = bytearray(path.read_bytes()) or bytearray(1)
  content[len(content) // 2] ^= 4
  path.write_bytes(content)


@pytest.mark.parametrize('damage', [_truncate, _flip, pathlib.Path.unlink])
def test_after_any_damage_what_is_restored_was_saved(
    tmp_path: pathlib.Path,
    damage: Callable[[pathlib.Path], object],
    capsys: pytest.CaptureFixture[str],
) -> None:
  """Every file is damaged in turn; some hold nothing that is needed."""
  num_fallbacks = 0
  _saved(tmp_path / 'sound')
  for index in itertools.count():
    folder = tmp_path / str(index) / 'checkpoints'
    shutil.copytree(tmp_path / 'sound', folder)
    files = _files(folder / '3')  # Orbax does not always write as many.
    if index >= len(files):
      break
    damage(files[index])
    store = checkpoints.Checkpoints(folder)
    restored = store.restore(_tree(0))
    assert restored is not None
    step = int(restored['step'])
    _assert_equal(restored, _tree(step))
    said = capsys.readouterr().err
    if step == 2:
      num_fallbacks += 1
      assert '/3 is damaged' in said and 'resuming from step 2' in said
      assert (folder.parent / 'damaged-checkpoint-3').is_dir()
      store.save(3, _tree(3))
      _assert_equal(store.restore(_tree(0)), _tree(3))
    else:
      assert step == 3 and not said
  assert num_fallbacks >= 2


def test_every_flipped_bit_of_the_arrays_is_noticed(
    tmp_path: pathlib.Path,
) -> None:
  """The largest file holds the arrays: compressed, without checksums."""
  generator = np.random.default_rng(0)
  for number in range(20):
    folder = tmp_path / str(number) / 'checkpoints'
    _saved(folder, steps=(1, 2))
    path = max(_files(folder / '2'), key=lambda p: p.stat().st_size)
    content = bytearray(path.read_bytes())
    index = generator.integers(len(content))
    content[index] ^= 1 << generator.integers(8)
    path.write_bytes(content)
    restored = checkpoints.Checkpoints(folder).restore(_tree(0))
    assert restored is not None
    _assert_equal(restored, _tree(int(restored['step'])))


def test_if_none_is_sound_it_says_so_and_touches_nothing(
    tmp_path: pathlib.Path,
) -> None:
  _saved(tmp_path / 'checkpoints', steps=(1, 2))
  for path in _files(tmp_path):
    _truncate(path)
  before = _files(tmp_path)
  with pytest.raises(errors.UserError, match='/2 cannot be read.*Delete'):
    checkpoints.Checkpoints(tmp_path / 'checkpoints').restore(_tree(0))
  assert _files(tmp_path) == before


def test_a_file_that_cannot_be_read_now_is_no_damaged_one(
    tmp_path: pathlib.Path,
) -> None:
  store = checkpoints.Checkpoints(tmp_path)
  store.save(1, _tree(1))
  store.save(2, _tree(2))
  arrays = max(
      (path for path in (tmp_path / '2').rglob('*') if path.is_file()),
      key=lambda path: path.stat().st_size,
  )
  arrays.rename(tmp_path / 'away')
  arrays.symlink_to(arrays)  # Nobody may read this, not even root.
  with pytest.raises(errors.MachineError, match='/2: Too many .*symbolic'):
    store.restore(_tree(0))
  (tmp_path / 'away').rename(arrays)
  _assert_equal(store.restore(_tree(0)), _tree(2))


def test_parameters_that_are_asked_for_are_not_older_ones(
    tmp_path: pathlib.Path,
) -> None:
  store = checkpoints.Checkpoints(tmp_path / 'checkpoints')
  store.save(1, _tree(1))
  store.save(2, _tree(2))
  for path in (tmp_path / 'checkpoints' / '2').rglob('*'):
    if path.is_file():
      _truncate(path)
  with pytest.raises(errors.UserError, match='/2 cannot be read') as refusal:
    store.restore(_tree(0), newest_only=True)
  assert 'Delete' not in str(refusal.value)
  assert [path.name for path in tmp_path.iterdir()] == ['checkpoints']
  _assert_equal(store.restore(_tree(0)), _tree(1))


def test_a_checkpoint_without_its_checksum_is_not_trusted(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
  store = _saved(tmp_path / 'checkpoints')
  (tmp_path / 'checkpoints' / '3' / 'sha256').unlink()
  _assert_equal(store.restore(_tree(0)), _tree(2))
  said = capsys.readouterr().err
  assert (
      '/3 is damaged (its checksum is missing); moved to damaged-check' in said
  )
  # Again: it says where it really is.
  store.save(3, _tree(3))
  (tmp_path / 'checkpoints' / '3' / 'sha256').unlink()
  _assert_equal(store.restore(_tree(0)), _tree(2))
  said = capsys.readouterr().err
  assert 'moved to damaged-checkpoint-3-again,' in said
  assert (tmp_path / 'damaged-checkpoint-3-again').is_dir()


@pytest.mark.parametrize('damage', [_truncate, _flip, pathlib.Path.unlink])
def test_rows_are_as_safe_as_arrays(
    tmp_path: pathlib.Path, damage: Callable[[pathlib.Path], object]
) -> None:
  store = checkpoints.Checkpoints(tmp_path / 'checkpoints')
  for step in (1, 2):
    store.save(step, _tree(step), b'rows of %d' % step)
  damage(tmp_path / 'checkpoints' / '2' / 'metrics.csv')
  _assert_equal(store.restore(_tree(0)), _tree(1))
  assert store.rows == b'rows of 1'


def test_on_a_full_disk_the_last_checkpoint_survives(
    tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
  large = 120_000  # 480 kB do not compress; two fit, three do not
  with disks.mounted(tmp_path / 'disk', 'size=1200k') as disk:
    store = checkpoints.Checkpoints(disk / 'checkpoints')
    store.save(1, _tree(1, large))
    store.save(2, _tree(2, large))
    message = 'cannot write .*/3: No space left on device.*freeing disk'
    with pytest.raises(errors.StorageError, match=message):
      store.save(3, _tree(3, large))
    assert 'Traceback' not in capfd.readouterr().err
    again = checkpoints.Checkpoints(disk / 'checkpoints')
    _assert_equal(again.restore(_tree(0, large)), _tree(2, large))
    names = sorted(p.name for p in (disk / 'checkpoints').iterdir())
    assert names == ['1', '2']

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
