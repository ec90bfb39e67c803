"""Tasks in files, and scores of files of predictions."""

import json
import os
import pathlib
import subprocess
import sys
import typing
from typing import Any

import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher import pretrained
from modular_hyperteacher import worlds
from modular_hyperteacher.worlds import __main__ as command
from modular_hyperteacher.worlds import files

_COPY = 'copy it from the file of tasks'
_NO_CONFIG = 'no config describes the world'


def _export(tmp_path: pathlib.Path, *arguments: str) -> pathlib.Path:
  path = tmp_path / 'tasks.npz'
  code = command.main(
      ['export', '--world=mutual_exclusivity', f'--out={path}', *arguments]
  )
  assert code == 0
  return path


def _spec(path: pathlib.Path) -> dict[str, Any]:
  with np.load(path) as file:
    return json.loads(file['spec'].tobytes())


def _write(path: pathlib.Path, predictions: Any, spec: Any) -> pathlib.Path:
  content = np.frombuffer(json.dumps(spec).encode(), np.uint8)
  np.savez(path, predictions=predictions, spec=content)
  return path


def test_a_learner_elsewhere(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
  """Reads the file of tasks with NumPy alone, and is scored."""
  path = _export(tmp_path, '--split=test', '--num_tasks=5', '--tasks_seed=3')
  assert 'To predict: integer [5, 20, 7]' in capsys.readouterr().out
  world = worlds.make('mutual_exclusivity')
  tasks = world.sample('test', 5, seed=3)
  with np.load(path) as file:
    assert set(file.files) == {*files.VISIBLE, 'spec'}  # No targets to copy.
    for name in files.VISIBLE:
      np.testing.assert_array_equal(file[name], getattr(tasks, name))
    predictions = tasks.query_targets.copy()
    predictions[0, :10, 0] += 1
    np.savez(
        tmp_path / 'mine.test.npz', predictions=predictions, spec=file['spec']
    )
  code = command.main(['score', f'--predictions={tmp_path}/mine.test.npz'])
  head, _, row = capsys.readouterr().out.splitlines()
  assert code == 0
  assert head == (
      '| model | world | task_support | split | accuracy | num_tasks |'
      ' num_seeds | preset |'
  )
  assert (
      row == '| mine | mutual_exclusivity |  | test | 0.900 | 5 | 1 | laptop |'
  )


def test_predictions_are_scored_on_the_tasks_drawn_again(
    tmp_path: pathlib.Path,
) -> None:
  world = worlds.make('hyperteacher', preset='smoke')
  tasks = world.sample('ood', 4, seed=2)
  rng = np.random.default_rng(0)
  logits = rng.normal(size=tasks.query_targets.shape)
  path = tmp_path / 'guess.1.npz'
  worlds.write_predictions(path, logits, world, 'ood', tasks_seed=2)
  scored = worlds.score_file(path)
  assert scored.learner == 'guess'
  assert scored.metrics == pytest.approx(world.score(logits, tasks))
  assert scored.row()['task_support'] == 'random'


def test_predictions_that_cannot_be_scored_are_not_written(
    tmp_path: pathlib.Path,
) -> None:
  world = worlds.make('hyperteacher', preset='smoke')
  logits = world.sample('ood', 9).query_targets[..., :1]
  with pytest.raises(errors.UserError, match='they must be floats of shape'):
    worlds.write_predictions(tmp_path / 'a.npz', logits, world, 'ood')
  assert not list(tmp_path.iterdir())


def test_predictions_of_tasks_drawn_otherwise_are_not_scored(
    tmp_path: pathlib.Path,
) -> None:
  """As of an earlier version, under JAX_ENABLE_X64."""
  path = _export(tmp_path, '--split=test', '--num_tasks=5')
  spec = _spec(path)
  tokens = np.zeros((5, 20, 7), np.int32)
  files.score(_write(tmp_path / 'a.npz', tokens, spec))
  worlds.write_predictions(
      tmp_path / 'b.npz', tokens, worlds.make('mutual_exclusivity'), 'test'
  )
  assert _spec(tmp_path / 'b.npz') == spec
  for change, message in (
      (
          {'exact': '0' * 16},
          'a.npz cannot be scored, as the same seed .* JAX_ENABLE_X64',
      ),
      ({'exact': '0' * 16, 'jax': '0.9'}, 'JAX was 0.9 and is'),
      ({'exact': 3}, "array 'spec': drawn: exact is 3; it must be text"),
  ):
    other = spec | {'drawn': spec['drawn'] | change}
    path = _write(tmp_path / 'a.npz', tokens, other)
    with pytest.raises(errors.UserError, match=message):
      files.score(path)


def test_names_of_files_may_be_text(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  monkeypatch.setenv('HOME', str(tmp_path))
  world = worlds.make('mutual_exclusivity')
  two: Any = np.int64(2)
  tasks = worlds.export('~/tasks.npz', world, 'test', two)
  worlds.write_predictions('~/a.npz', tasks.query_targets, world, 'test')
  assert worlds.score_file('~/a.npz').metrics == {'accuracy': 1.0}
  assert sorted(p.name for p in tmp_path.iterdir()) == ['a.npz', 'tasks.npz']


@pytest.mark.parametrize(
    'function',
    [
        *(worlds.export, worlds.write_predictions, worlds.score_file),
        *(pretrained.load, pretrained.available),
    ],
)
def test_public_functions_take_paths_and_their_names(function: Any) -> None:
  hints = typing.get_type_hints(function)
  paths = {
      n: set(typing.get_args(h)) for n, h in hints.items() if n != 'return'
  }
  named = {n: k for n, k in paths.items() if n == 'path' or n.endswith('root')}
  assert named and all(
      {str, os.PathLike[str]} <= kinds for kinds in named.values()
  )


def test_only_selects_what_configs_describe(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
  out = f'--out={tmp_path / "tasks.npz"}'
  export = ['export', '--world=scan', '--preset=smoke', out]
  code = command.main([*export, '--split=ood', '--only=split=length'])
  assert code == 0
  assert _spec(tmp_path / 'tasks.npz')['fields']['split'] == 'length'
  assert 'I_JUMP' in _spec(tmp_path / 'tasks.npz')['output_symbols']
  capsys.readouterr()
  assert command.main([*export, '--split=ood', '--only=split=width']) == 2
  assert capsys.readouterr().err == (
      "error: --only: no world has split 'width'; choose one of add_jump,"
      ' around_right, length.\n'
  )


def test_a_file_is_written_where_a_link_points(tmp_path: pathlib.Path) -> None:
  link = tmp_path / 'link.npz'
  link.symlink_to(tmp_path / 'tasks.npz')
  files._write(link, {'a': np.arange(3)}, {})
  assert link.is_symlink()
  with np.load(tmp_path / 'tasks.npz') as file:
    assert file['a'].tolist() == [0, 1, 2]


def test_a_pipe_stays_a_pipe(tmp_path: pathlib.Path) -> None:
  pipe = tmp_path / 'pipe'
  os.mkfifo(pipe)
  with subprocess.Popen(['cat', pipe], stdout=subprocess.PIPE) as reader:
    files._write(pipe, {'a': np.arange(3)}, {})
    assert reader.stdout is not None
    assert reader.stdout.read().startswith(b'PK')  # As a zip file does.
  assert pipe.is_fifo()


@pytest.mark.parametrize(
    'change, message',
    [
        ({'world': 'os:system'}, _NO_CONFIG),
        ({'world': 'mazes'}, _NO_CONFIG),
        ({'fields': {'num_query': 19}}, _NO_CONFIG),
        ({'fields': {}}, _NO_CONFIG),
        ({'fields': None}, _COPY),
        ({'preset': 'huge'}, "preset is 'huge'; choose one of smoke"),
        ({'seed': -1}, 'seed is -1; it must be an integer, at least 0'),
        ({'tasks_seed': 2**40}, 'seed is 1099511627776; it must be'),
        ({'split': 'odd'}, "split is 'odd'; mutual_exclusivity has train"),
        ({'num_tasks': True}, _COPY),
        ({'num_tasks': 0}, 'num_tasks is 0; it must be a whole'),
        ({'num_tasks': 10**15}, 'num_tasks is 1000000000000000; it must be'),
        ({'num_tasks': 6}, r'shape \[5, 20, 7\]; it must be integers'),
    ],
)
def test_what_a_file_must_not_ask_for(
    tmp_path: pathlib.Path, change: dict[str, Any], message: str
) -> None:
  spec = {
      'world': 'mutual_exclusivity',
      'preset': 'laptop',
      'fields': {'num_query': 20},
      'seed': 2020,
      'split': 'test',
      'num_tasks': 5,
      'tasks_seed': 0,
  }
  tokens = np.zeros((5, 20, 7), np.int32)
  path = _write(tmp_path / 'a.npz', tokens, spec)
  assert 0 <= files.score(path).metrics['accuracy'] < 0.2
  path = _write(tmp_path / 'a.npz', tokens, spec | change)
  loaded = set(sys.modules)
  with pytest.raises(errors.UserError, match=message) as info:
    files.score(path)
  assert str(path) in str(info.value) and '\n' not in str(info.value)
  assert set(sys.modules) == loaded


@pytest.mark.parametrize('spec', [[1], 'text', None, {}])
def test_a_spec_of_another_form_is_refused(
    tmp_path: pathlib.Path, spec: Any
) -> None:
  path = _write(tmp_path / 'a.npz', np.zeros(3), spec)
  with pytest.raises(errors.UserError, match=_COPY):
    files.score(path)


def test_a_spec_that_is_not_json_is_refused(tmp_path: pathlib.Path) -> None:
  for content in (b'{', b'[' * 60000, b'\xff'):
    np.savez(tmp_path / 'a.npz', spec=np.frombuffer(content, np.uint8))
    with pytest.raises(errors.UserError, match='is not JSON'):
      files.score(tmp_path / 'a.npz')
  np.savez(tmp_path / 'a.npz', spec=np.zeros(2**16 + 1, np.uint8))
  with pytest.raises(errors.UserError, match='the maximum is 65536'):
    files.score(tmp_path / 'a.npz')


_MODEL = ['--preset=smoke', '--only=model=maml']


@pytest.mark.parametrize(
    'arguments, message',
    [
        (['export', '--world=goals'], 'required: --split, --out; see --help.'),
        (['export', '--world=mazes', '--split=ood', '--out=x'], "is 'mazes'"),
        (['score', '--predictions=<x>.npz'], 'name, up to the first dot, must'),
        (['score', '--predictions=none.npz'], 'none.npz is not a file'),
        (['draw'], "invalid choice: 'draw'"),
        (
            ['export', '--world=goals', '--split=ood', '--out=x', *_MODEL],
            "--only: 'model' is not a field of a world",
        ),
    ],
)
def test_wrong_commands_are_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
  assert command.main(arguments) == 2
  error = capsys.readouterr().err
  assert error.startswith('error: ') and error.count('\n') == 1
  assert message in error


def test_ctrl_c_is_told_in_one_line(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
  def interrupt(*_: Any) -> None:
    raise KeyboardInterrupt

  monkeypatch.setattr(files, 'score', interrupt)
  arguments = ['score', f'--predictions={tmp_path}/mine.npz']
  assert command.main(arguments) == 130
  assert capsys.readouterr().err == 'SIGINT: stopped.\n'
