"""The command line as users meet it: runs, and resuming them."""

from collections.abc import Iterable
import json
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

from tests.helpers import commands
from tests.helpers import disks
from tests.helpers import training


@pytest.fixture(scope='module', name='finished')
def fixture_finished(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[pathlib.Path, subprocess.CompletedProcess[str]]:
  """A finished run of 60 steps, and what the command printed."""
  folder = tmp_path_factory.mktemp('finished')
  done = training.run(f'--results={folder}', *training.ONE_RUN)
  assert done.returncode == 0, done.stderr
  return folder, done


def _run_folder(folder: pathlib.Path) -> pathlib.Path:
  (path,) = folder.glob('fig3b/smoke/*')
  return path


def test_a_run_leaves_its_results(
    finished: tuple[pathlib.Path, subprocess.CompletedProcess[str]],
) -> None:
  folder, done = finished
  path = _run_folder(folder)
  assert {p.name for p in path.iterdir()} == {
      'config.json',
      'metrics.csv',
      'summary.json',
      'provenance.json',
      'checkpoints',
  }
  summary = json.loads((path / 'summary.json').read_text())
  assert summary['run_id'] == path.name
  assert 0 <= summary['last']['ood']['accuracy'][0] <= 1
  assert set(summary['best_validation']) == set(summary['last']) - {'train'}
  provenance = json.loads((path / 'provenance.json').read_text())
  assert provenance['sessions'][0]['last_step'] == 60
  assert 'NOT the published scale' in done.stdout
  assert 'published OOD' in done.stdout and 'smoke' in done.stdout
  assert 'step/s' in done.stderr


def test_a_finished_run_is_skipped(
    finished: tuple[pathlib.Path, subprocess.CompletedProcess[str]],
) -> None:
  folder, _ = finished
  before = (_run_folder(folder) / 'metrics.csv').stat().st_mtime_ns
  again = training.run(f'--results={folder}', *training.ONE_RUN)
  assert again.returncode == 0
  assert '1 of them finished' in again.stdout
  assert (_run_folder(folder) / 'metrics.csv').stat().st_mtime_ns == before


@pytest.mark.slow
@pytest.mark.parametrize('stop', [signal.SIGKILL, signal.SIGTERM])
def test_stopped_and_started_again_equals_unbroken(
    finished: tuple[pathlib.Path, subprocess.CompletedProcess[str]],
    tmp_path: pathlib.Path,
    stop: signal.Signals,
) -> None:
  arguments = (
      f'--results={tmp_path}',
      *training.ONE_RUN,
      '--config.execution.checkpoint_every_s=0.0',
  )
  process = subprocess.Popen(
      training.command(*arguments),
      cwd=commands.ROOT,
      env=commands.environment(),
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
  )
  deadline = time.monotonic() + 120
  # Stop once there is something to lose, and a record of it.
  while not list(tmp_path.glob('fig3b/smoke/*/provenance.json')):
    assert time.monotonic() < deadline and process.poll() is None
    time.sleep(0.01)
  process.send_signal(stop)
  stopped = time.monotonic()
  output = process.communicate(timeout=60)[0].decode()
  finished_before = _finished(tmp_path)
  if stop == signal.SIGTERM and not finished_before:
    assert process.returncode == 0, output
    assert time.monotonic() - stopped < 10
    assert 'same command to resume' in output
  resumed = training.run(*arguments)
  assert resumed.returncode == 0, resumed.stderr
  expected, actual = _run_folder(finished[0]), _run_folder(tmp_path)
  for name in ('metrics.csv', 'summary.json'):
    assert (actual / name).read_text() == (expected / name).read_text(), name
  sessions = json.loads((actual / 'provenance.json').read_text())['sessions']
  assert sessions[0]['first_step'] == 0, sessions
  assert len(sessions) == 1 + (not finished_before), sessions


def _finished(folder: pathlib.Path) -> bool:
  return bool(list(folder.glob('fig3b/smoke/*/summary.json')))


def test_describe() -> None:
  done = training.run('--describe', config='configs/fig3b.py')
  assert done.returncode == 0, done.stderr
  runs = json.loads(done.stdout)
  assert len(runs) == 8
  assert len({run['run_id'] for run in runs}) == 8
  for run in runs:
    assert set(run) == {
        'run_id',
        'model',
        'task',
        'task_support',
        'seeds',
        'num_meta_params',
        'num_fast_params',
        'num_outer_steps',
        'num_combinations',
        'deviations',
    }
    assert len(run['seeds']) >= 3
    assert run['deviations']['training.num_outer_steps']['published'] == 200000


@pytest.mark.slow
def test_describe_at_the_published_scale() -> None:
  runs = json.loads(
      training.run('--describe', config='configs/fig3b.py:paper').stdout
  )
  assert all(run['deviations'] == {} for run in runs)
  assert all(run['seeds'] == [2020, 2021, 2022] for run in runs)
  sizes = {run['model']: run['num_meta_params'] for run in runs}
  assert sizes == {  # Section 8.4 of the specification, M = 8.
      'linear_hypernetwork': 631168,
      'nonlinear_hypernetwork': 644800,
      'anil': 538120,
      'maml': 305288,
  }
  for run in runs:
    counts = run['num_combinations']
    expected = {'random': (972, 324), 'non_compositional': (1008, 288)}
    assert (counts['train'], counts['ood']) == expected[run['task_support']]


def _on_disk(files: Iterable[pathlib.Path]) -> int:
  """Returns the bytes that files take, in pages of a tmpfs."""
  return sum(-(-path.stat().st_size // 4096) * 4096 for path in files)


@pytest.mark.slow
def test_after_a_full_disk_the_same_command_goes_on(
    finished: tuple[pathlib.Path, subprocess.CompletedProcess[str]],
    tmp_path: pathlib.Path,
) -> None:
  folder = _run_folder(finished[0])
  files = [path for path in folder.rglob('*') if path.is_file()]
  checkpoint = [path for path in files if 'checkpoints' in path.parts]
  # Two checkpoints are kept; the third is too much.
  size = _on_disk(files) + 3 * _on_disk(checkpoint) // 2
  with disks.mounted(tmp_path / 'disk', f'size={size}') as disk:
    arguments = (
        f'--results={disk}/results',
        *training.ONE_RUN,
        '--config.execution.checkpoint_every_s=0.0',
    )
    full = training.run(*arguments)
    message = 'error: cannot write .*: No space left on device.*freeing disk'
    assert full.returncode == 1, full.stderr
    assert re.search(message, full.stderr) and 'Traceback' not in full.stderr
    disks.enlarge(disk, '20m')
    done = training.run(*arguments)
    assert done.returncode == 0, done.stderr
    left = _run_folder(disk / 'results')
    for name in ('metrics.csv', 'summary.json'):
      assert (left / name).read_text() == (folder / name).read_text(), name
    provenance = json.loads((left / 'provenance.json').read_text())
    assert provenance['sessions'][-1]['first_step'] > 0


def test_same_id_but_another_config(
    finished: tuple[pathlib.Path, subprocess.CompletedProcess[str]],
    tmp_path: pathlib.Path,
) -> None:
  source = _run_folder(finished[0])
  target = tmp_path / 'fig3b' / 'smoke' / source.name
  target.mkdir(parents=True)
  config = json.loads((source / 'config.json').read_text())
  config['training']['num_outer_steps'] = 61
  (target / 'config.json').write_text(json.dumps(config))
  before = training.files(tmp_path)
  done = training.run(f'--results={tmp_path}', *training.ONE_RUN)
  message = "holds a run whose 'training' differs"
  training.assert_refused(done.returncode, done.stderr, message)
  assert training.files(tmp_path) == before


@pytest.mark.slow
def test_truncated_checkpoint(
    finished: tuple[pathlib.Path, subprocess.CompletedProcess[str]],
    tmp_path: pathlib.Path,
) -> None:
  source = _run_folder(finished[0])
  target = tmp_path / 'fig3b' / 'smoke' / source.name
  subprocess.run(['cp', '-r', source, tmp_path / 'copy'], check=True)
  target.parent.mkdir(parents=True)
  (tmp_path / 'copy').rename(target)
  (target / 'summary.json').unlink()
  saved = target / 'checkpoints' / '60.npz'
  saved.write_bytes(saved.read_bytes()[:100])
  before = training.files(tmp_path)
  done = training.run(f'--results={tmp_path}', *training.ONE_RUN)
  message = 'checkpoint .*/60.npz is not .*Delete .* to start again'
  training.assert_refused(done.returncode, done.stderr, message)
  assert training.files(tmp_path) == before
  metrics = pd.read_csv(target / 'metrics.csv')
  assert metrics['step'].max() == 60


@pytest.mark.parametrize(
    'name, content, message',
    [
        ('config.json', '[]', 'config.json is .*must be a block of fields'),
        pytest.param(
            *('provenance.json', '{}'),
            'provenance.json: .* sessions is missing',
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *('summary.json', '{"run', 'summary.json is not valid JSON'),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_damaged_files_of_a_run(
    finished: tuple[pathlib.Path, subprocess.CompletedProcess[str]],
    tmp_path: pathlib.Path,
    name: str,
    content: str,
    message: str,
) -> None:
  source = _run_folder(finished[0])
  target = tmp_path / 'fig3b' / 'smoke' / source.name
  target.parent.mkdir(parents=True)
  subprocess.run(['cp', '-r', source, target], check=True)
  (target / name).write_text(content)
  done = training.run(f'--results={tmp_path}', *training.ONE_RUN)
  training.assert_refused(done.returncode, done.stderr, message)
  assert (target / 'checkpoints').exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    'name, run',
    [
        ('scan_add_jump', '--only=meanings=aligned'),
        ('scan_length', '--only=model=meta_seq2seq'),
        ('scan_length', '--only=model=seq2seq'),
    ],
)
def test_scan_is_trained_from_end_to_end(
    tmp_path: pathlib.Path, name: str, run: str
) -> None:
  done = training.run(f'--results={tmp_path}', run, config=f'{name}:smoke')
  assert done.returncode == 0, done.stderr
  assert len(list(tmp_path.glob(f'{name}/smoke/*/summary.json'))) == 1


@pytest.mark.slow
def test_why_results_cannot_be_written_is_told(tmp_path: pathlib.Path) -> None:
  """In a process that may write no file above 10 KB."""
  arguments = shlex.join(
      training.command(*training.ONE_RUN, f'--results={tmp_path}')
  )
  done = subprocess.run(
      ['bash', '-c', f'ulimit -f 10; {arguments}'],
      cwd=commands.ROOT,
      env=commands.environment(JAX_ENABLE_COMPILATION_CACHE='0'),
      capture_output=True,
      text=True,
  )
  assert done.returncode == 1
  assert re.search(
      r'cannot write .*: File too large\. Fix this, and', done.stderr
  )


_IMPORTED = """
import importlib, sys
from absl import flags
for name in sys.argv[1:]:
  importlib.reload(importlib.import_module('modular_hyperteacher.' + name))
defined = flags.FLAGS.flags_by_module_dict()
print([name for name in defined if name.startswith('modular_hyperteacher')])
"""


def test_commands_define_flags_when_they_run() -> None:
  """A notebook may import them twice, and beside flags of the same names."""
  commands_with_flags = [
      *('main', 'benchmark', 'worlds.__main__', 'figures.performance_page'),
      *('figures.make_all', 'figures.bundle', 'figures.render'),
      *('launch.local', 'launch.campaign', 'launch.parts'),
  ]
  done = subprocess.run(
      [sys.executable, '-c', _IMPORTED, *commands_with_flags],
      cwd=commands.ROOT,
      env=commands.environment(),
      capture_output=True,
      text=True,
      check=True,
  )
  assert done.stdout.strip() == '[]'
