"""Runs that go on elsewhere: packed into small files, and unpacked."""

import functools
import io
import pathlib
from typing import Any
import zipfile

from absl.testing import flagsaver
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.launch import campaign_list
from modular_hyperteacher.launch import parts
from modular_hyperteacher.learning import programs
from modular_hyperteacher.runs import preemption
from modular_hyperteacher.runs import runner
from tests.helpers import commands
from tests.helpers import launch_flags
from tests.helpers import small_sweep

_STOPPED_AT = 20


def _plan(root: pathlib.Path) -> runner.PlannedRun:
  return runner.plan(sweeps.expand(small_sweep.get_config())[:1], root)[0]


@functools.cache
def _programs() -> programs.Programs:
  """Returns the run's programs, which take longer to compile than to run."""
  return _plan(pathlib.Path('nowhere')).make_programs()


def _train(root: pathlib.Path, until: int | None = None) -> runner.PlannedRun:
  """Trains a run; stops it at a step, as a signal does."""
  run = _plan(root)

  def watch(progress: Any) -> None:
    if until is not None and progress.step >= until:
      raise preemption.Interrupted(15)

  with preemption.Guard() as guard:
    runner.execute(run, guard, watch, lambda: None, _programs)
  return run


@pytest.fixture(scope='module', name='whole')
def fixture_whole(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
  """Returns the folder of an uninterrupted run."""
  return _train(tmp_path_factory.mktemp('whole')).folder.path


@pytest.fixture(scope='module', name='stopped')
def fixture_stopped(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
  """Returns results with the same run, but stopped."""
  root = tmp_path_factory.mktemp('stopped')
  with pytest.raises(preemption.Interrupted):
    _train(root, _STOPPED_AT)
  return root


@pytest.fixture(autouse=True)
def fixture_small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(parts, '_PART_BYTES', 10_000)


def test_a_run_goes_on_elsewhere_bit_for_bit(
    whole: pathlib.Path, stopped: pathlib.Path, tmp_path: pathlib.Path
) -> None:
  (config,) = stopped.glob('*/*/*/config.json')
  config.with_name('.lock-0.json').write_text('{}')  # Of a killed process.
  packed = parts.pack(stopped, tmp_path / 'parts')
  assert len(packed) > 1
  assert all(0 < path.stat().st_size <= 10_000 for path in packed)
  name = whole.relative_to(whole.parents[2]).as_posix()
  done = parts.unpack(tmp_path / 'parts', tmp_path / 'new')
  assert done == {name: f'at step {_STOPPED_AT}'}

  gone_on = _train(tmp_path / 'new').folder
  sessions = gone_on.read('provenance.json', dict[str, Any])['sessions']
  assert [s['first_step'] for s in sessions] == [0, _STOPPED_AT]
  for file in ('metrics.csv', 'summary.json', 'checkpoints/40.npz'):
    assert (gone_on.path / file).read_bytes() == (whole / file).read_bytes()

  # What is further stays: here, and when it comes back.
  done = parts.unpack(tmp_path / 'parts', tmp_path / 'new')
  assert done == {name: 'kept, as it is further here'} and gone_on.finished
  parts.pack(tmp_path / 'new', tmp_path / 'back')
  copy = tmp_path / 'copy'
  parts.unpack(tmp_path / 'parts', copy)
  assert parts.unpack(tmp_path / 'back', copy) == {name: 'finished'}
  summary = (copy / name / 'summary.json').read_bytes()
  assert summary == (whole / 'summary.json').read_bytes()


def test_lost_or_damaged_parts_write_nothing(
    stopped: pathlib.Path, tmp_path: pathlib.Path
) -> None:
  first, second, *_ = parts.pack(stopped, tmp_path / 'parts')
  content = bytearray(second.read_bytes())
  second.unlink()
  with pytest.raises(
      errors.UserError, match='must hold 001-of-.* and no other'
  ):
    parts.unpack(tmp_path / 'parts', tmp_path / 'new')
  content[500] ^= 1
  second.write_bytes(content)
  with pytest.raises(
      errors.UserError, match='parts in .* are damaged: Bad CRC'
  ):
    parts.unpack(tmp_path / 'parts', tmp_path / 'new')
  with pytest.raises(errors.UserError, match='must not have parts already'):
    parts.pack(stopped, first.parent)
  assert not (tmp_path / 'new').exists()


@pytest.mark.parametrize(
    'name',
    [
        '../a/b/config.json',
        'a/../b/config.json',
        '/a/b/config.json',
        'a/b/c/run.sh',
        'a/b/c/checkpoints/../../../config.json',
        'a/b/.c/config.json',
    ],
)
def test_parts_hold_files_of_runs_only(
    tmp_path: pathlib.Path, name: str
) -> None:
  buffer = io.BytesIO()
  with zipfile.ZipFile(buffer, 'w') as archive:
    archive.writestr(name, '{}')
  (tmp_path / '001-of-001.part').write_bytes(buffer.getvalue())
  with pytest.raises(errors.UserError, match='--unpack: .* holds '):
    parts.unpack(tmp_path, tmp_path / 'new')
  assert not (tmp_path / 'new').exists()


@pytest.mark.parametrize(
    'values, message',
    [
        ({}, 'Give one of --pack=FOLDER and --unpack=FOLDER.'),
        ({'pack': 'a', 'unpack': 'b'}, 'Give one of --pack=FOLDER and'),
        (
            {'pack': 'a', 'results': 'none'},
            "--results is 'none'; it has no runs",
        ),
    ],
)
def test_what_cannot_be_packed_is_told(
    values: dict[str, str], message: str
) -> None:
  launch_flags.parse()
  with flagsaver.flagsaver(**values):
    with pytest.raises(errors.UserError, match=message):
      parts.main()


def test_a_mistake_is_one_line_and_exit_code_2(tmp_path: pathlib.Path) -> None:
  module = 'modular_hyperteacher.launch.parts'
  done = commands.python('-m', module, '--unpack=nowhere', cwd=tmp_path)
  assert (done.returncode, done.stderr) == (
      2,
      (
          "error: --unpack is 'nowhere'; it must hold 001-of-001.part and no"
          ' other part.\n'
      ),
  )


def test_the_list_for_a_lent_gpu_has_the_published_scale() -> None:
  lines = campaign_list.read(campaign_list.find('gpu'))
  order = [run.experiment for line in lines for run in line.runs]
  assert order == ['fig4e'] * 2 + ['fig2c_shared_inputs'] * 4 + ['fig3b'] * 2
  assert all(run.preset == 'paper' for line in lines for run in line.runs)
