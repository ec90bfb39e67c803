"""The command line as users meet it: runs, resuming, and clear refusals."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

from tests import commands
from tests import disks

_ONE_RUN = (
    '--only=model=maml',
    '--only=task_support=random',
    '--config.training.num_outer_steps=60',
    '--config.training.evaluate_every=20',
    '--config.execution.log_every=20',
)


def _command(*arguments, config='configs/fig3b.py:smoke'):
  return [
      sys.executable,
      '-m',
      'modular_hyperteacher.main',
      f'--config={config}',
      *arguments,
  ]


def _run(*arguments, config='configs/fig3b.py:smoke', **options):
  return subprocess.run(
      _command(*arguments, config=config),
      cwd=commands.ROOT,
      env=commands.environment(),
      capture_output=True,
      text=True,
      check=False,
      timeout=300,
      **options,
  )


def _files(folder):
  return sorted(str(p) for p in folder.rglob('*')) if folder.exists() else []


@pytest.fixture(scope='module', name='finished')
def fixture_finished(tmp_path_factory):
  """A finished run of 60 steps, and what the command printed."""
  folder = tmp_path_factory.mktemp('finished')
  done = _run(
      f'--results={folder}', *_ONE_RUN
  )
  assert done.returncode == 0, done.stderr
  return folder, done


def _run_folder(folder):
  (path,) = folder.glob('fig3b/smoke/*')
  return path


def test_a_run_leaves_its_results(finished):
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


def test_a_finished_run_is_skipped(finished):
  folder, _ = finished
  before = (_run_folder(folder) / 'metrics.csv').stat().st_mtime_ns
  again = _run(
      f'--results={folder}', *_ONE_RUN
  )
  assert again.returncode == 0
  assert '1 of them finished' in again.stdout
  assert (_run_folder(folder) / 'metrics.csv').stat().st_mtime_ns == before


@pytest.mark.parametrize('stop', [signal.SIGKILL, signal.SIGTERM])
def test_stopped_and_started_again_equals_unbroken(finished, tmp_path, stop):
  arguments = (
      f'--results={tmp_path}',
      *_ONE_RUN,
      '--config.execution.checkpoint_every_s=0.0',
  )
  process = subprocess.Popen(
      _command(*arguments),
      cwd=commands.ROOT,
      env=commands.environment(),
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
  )
  deadline = time.monotonic() + 120
  # Stop once there is something to lose.
  while not list(tmp_path.glob('fig3b/smoke/*/checkpoints/[1-9]*')):
    assert time.monotonic() < deadline and process.poll() is None
    time.sleep(0.01)
  process.send_signal(stop)
  stopped = time.monotonic()
  output = process.communicate(timeout=60)[0].decode()
  if stop == signal.SIGTERM and not _finished(tmp_path):
    assert process.returncode == 0, output
    assert time.monotonic() - stopped < 10
    assert 'goes on from here' in output
  resumed = _run(*arguments)
  assert resumed.returncode == 0, resumed.stderr
  expected, actual = _run_folder(finished[0]), _run_folder(tmp_path)
  for name in ('metrics.csv', 'summary.json'):
    assert (actual / name).read_text() == (expected / name).read_text(), name


def _finished(folder):
  return bool(list(folder.glob('fig3b/smoke/*/summary.json')))


def test_sigterm_while_compiling_saves_and_leaves(tmp_path):
  process = subprocess.Popen(
      _command(f'--results={tmp_path}', config='configs/fig3b.py'),
      cwd=commands.ROOT,
      env=commands.environment(),
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
  )
  output = b''
  while b' 0/3000' not in output:
    assert process.poll() is None, output
    output += os.read(process.stdout.fileno(), 1000)
  time.sleep(1)
  process.send_signal(signal.SIGTERM)
  started = time.monotonic()
  output += process.communicate(timeout=60)[0]
  assert process.returncode == 0, output
  assert set(re.findall(rb' ([0-9]+)/3000', output)) == {b'0'}
  assert time.monotonic() - started < 10


def test_describe():
  done = _run('--describe', config='configs/fig3b.py')
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


def test_describe_at_the_published_scale():
  runs = json.loads(_run('--describe', config='configs/fig3b.py:paper').stdout)
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


_DEFAULT = 'configs/fig3b.py:smoke'
_BAD_INPUT = [
    (['--config.training.num_outer_step=5'], 'training.num_outer_steps'),
    (
        ['--config.training.num_outer_steps=abc'],
        "config.training.num_outer_steps is 'abc'; it must be of type int",
    ),
    (['--config.training=3'], 'config.training is a block'),
    (['--config.task.max_active=9'], 'task.max_active is 9.*between 1 and'),
    (
        ['--config.task.task_support=conected'],
        "task.task_support is 'conected'; choose one of 'random'",
    ),
    (
        ['--config.task.task_support=connected'],
        'task.max_active is 3; connected support is defined for 2',
    ),
    (
        ['--config.task.fraction_ood=0.001'],
        'task.fraction_ood is 0.001.*leave an OOD task',
    ),
    (
        [
            '--config.training.meta_batch_size=9',
            '--host_devices=2',
        ],
        'meta_batch_size is 9; it must be a multiple of the 2 devices',
    ),
    (['--config.training.seeds=(1, 1)'], r'training.seeds is \(1, 1\)'),
    (
        ['--config.models.maml.inner.eps_root=0.0'],
        r"model.inner.eps_root is 0.0; .*\('model' is config.models.maml.\)",
    ),
    (
        ['--config.models.maml.hidden_dim=0'],
        'model.hidden_dim is 0; it must be positive',
    ),
    (
        ['--config.models.maml.inner.learning_rate=nan'],
        'model.inner.learning_rate is nan; it must be positive',
    ),
    (
        ['--config.models.maml.outer.weight_decay=-3.0'],
        'model.outer.weight_decay is -3.0; it must be at least 0',
    ),
    (
        ['--config.models.maml.outer.max_consecutive_skips=-3'],
        'model.outer.max_consecutive_skips is -3; it must be at least 0',
    ),
    (
        ['--config.task.temperature=nan'],
        'task.temperature is nan; it must be positive',
    ),
    (
        ['--config.execution.checkpoint_every_s=-1.0'],
        'execution.checkpoint_every_s is -1.0; it must be at least 0',
    ),
    (['--config.training.prng_impl=rbg'], "prng_impl is 'rbg'; allowed is"),
    (
        ['--config.training.matmul_precision=half'],
        "matmul_precision is 'half'; choose one of float32, tensorfloat32",
    ),
    (['--config.sweep=5'], 'sweep is .*must be a tuple of grids'),
    (['--config.sweep=()'], r'sweep is \(\); .* may be empty'),
    (['--config.sweep=((("model",()),),)'], 'sweep is .* may be empty'),
    (['--config.training.seeds=(99999999999,)'], 'all less than 2\\^32'),
    (['--config.training.seeds=(True,)'], r'training.seeds is \(True,\)'),
    (['--config.preset=paper'], 'config.preset says .* cannot be set; choose'),
    (['--config.experiment=../x'], 'config.experiment says .* cannot be set'),
    (['--results='], "--results is ''; name a folder"),
    (
        ['--config.models.maml.inner.weight_decay=nan'],
        'model.inner.weight_decay is nan; it must be at least 0',
    ),
    (
        [
            '--config.models.linear_hypernetwork.modules_per_teacher_module=0',
        ],
        'model.modules_per_teacher_module is 0; it must be positive',
    ),
    (
        ['--config.models.anil.inner.batch_size=None'],
        "batch_size is 'None'; it must be of type int. None can be said in",
    ),
    (['--only=model=mlp'], "no run has model 'mlp'; choose one of linear"),
    (
        ['--only=task_support=random', '--only=model=mlp'],
        "no run has model 'mlp' and task_support=random; choose one of linear",
    ),
    (['--only=nothing=1'], "'nothing' is not a field"),
    (
        ['--only=num_modules=8'],
        "'num_modules' may be task.num_modules or model.num_modules; write",
    ),
    (['--only=model'], "--only is 'model'; write field=value"),
    (['--unknown=1'], "no flag '--unknown'"),
    (['stray'], "unknown argument 'stray'"),
    (['--host_devices=0'], 'host_devices=0'),
]
_BAD_CONFIGS = [
    ('configs/fig3b.py:huge', "preset is 'huge'; choose one of smoke, lap"),
    ('configs/none.py', 'there is no file configs/none.py'),
    ('README.md', r'is not a config; .* SyntaxError .*README.md, line \d+\)'),
    ('setup.py', 'setup.py is not a config; .* SystemExit'),
    ('', 'there is no file'),
]
_REFUSED = [(_DEFAULT, *case) for case in _BAD_INPUT] + [
    (config, [], message) for config, message in _BAD_CONFIGS
]
# Importing takes seconds and refusing none, so one process imports and a fork
# of it per case runs the command.
_FORKS = '''
import json, os, sys
from modular_hyperteacher import main
for case in json.load(sys.stdin):
  child = os.fork()
  if not child:
    with open(case["stderr"], "w") as file:
      os.dup2(file.fileno(), 2)
    sys.argv = ["main"] + case["argv"]
    main.run()
  print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
'''


@pytest.fixture(scope='module', name='refusals')
def fixture_refusals(tmp_path_factory):
  """Exit code, stderr and results folder of every case of bad input."""
  folder = tmp_path_factory.mktemp('refused')
  cases = [
      {
          'stderr': str(folder / f'stderr{i}'),
          'argv': [f'--config={config}', f'--results={folder}/{i}', *arguments],
      }
      for i, (config, arguments, _) in enumerate(_REFUSED)
  ]
  done = subprocess.run(
      [sys.executable, '-c', _FORKS],
      input=json.dumps(cases),
      cwd=commands.ROOT,
      env=commands.environment(),
      capture_output=True,
      text=True,
      check=True,
      timeout=300,
  )
  return [
      (int(code), pathlib.Path(case['stderr']).read_text(), folder / str(i))
      for i, (code, case) in enumerate(zip(done.stdout.split(), cases))
  ]


@pytest.mark.parametrize(
    'index', range(len(_REFUSED)), ids=lambda i: _REFUSED[i][2][:40]
)
def test_bad_input(index, refusals):
  code, stderr, results = refusals[index]
  _assert_refused(code, stderr, _REFUSED[index][2])
  assert len(stderr.strip().splitlines()) == 1
  assert not _files(results)


def test_unwritable_results(tmp_path):
  blocker = tmp_path / 'file'
  blocker.write_text('kept')
  done = _run(f'--results={blocker}/results', *_ONE_RUN)
  message = '--results: cannot write to .*choose a folder'
  _assert_refused(done.returncode, done.stderr, message)
  assert blocker.read_text() == 'kept'


def _on_disk(files):
  """Returns the bytes that files take, in pages of a tmpfs."""
  return sum(-(-path.stat().st_size // 4096) * 4096 for path in files)


def test_after_a_full_disk_the_same_command_goes_on(finished, tmp_path):
  folder = _run_folder(finished[0])
  files = [path for path in folder.rglob('*') if path.is_file()]
  checkpoint = [path for path in files if 'checkpoints' in path.parts]
  # Two checkpoints are kept; the third is too much.
  size = _on_disk(files) + 3 * _on_disk(checkpoint) // 2
  with disks.mounted(tmp_path / 'disk', f'size={size}') as disk:
    arguments = (
        f'--results={disk}/results',
        *_ONE_RUN,
        '--config.execution.checkpoint_every_s=0.0',
    )
    full = _run(*arguments)
    message = 'error: cannot write .*: No space left on device.*making room'
    assert full.returncode == 1, full.stderr
    assert re.search(message, full.stderr) and 'Traceback' not in full.stderr
    disks.enlarge(disk, '20m')
    done = _run(*arguments)
    assert done.returncode == 0, done.stderr
    left = _run_folder(disk / 'results')
    for name in ('metrics.csv', 'summary.json'):
      assert (left / name).read_text() == (folder / name).read_text(), name
    provenance = json.loads((left / 'provenance.json').read_text())
    assert provenance['sessions'][-1]['first_step'] > 0


def test_same_id_but_another_config(finished, tmp_path):
  source = _run_folder(finished[0])
  target = tmp_path / 'fig3b' / 'smoke' / source.name
  target.mkdir(parents=True)
  config = json.loads((source / 'config.json').read_text())
  config['training']['num_outer_steps'] = 61
  (target / 'config.json').write_text(json.dumps(config))
  before = _files(tmp_path)
  done = _run(
      f'--results={tmp_path}', *_ONE_RUN
  )
  message = "holds a run whose 'training' differs"
  _assert_refused(done.returncode, done.stderr, message)
  assert _files(tmp_path) == before


def test_truncated_checkpoint(finished, tmp_path):
  source = _run_folder(finished[0])
  target = tmp_path / 'fig3b' / 'smoke' / source.name
  subprocess.run(['cp', '-r', source, tmp_path / 'copy'], check=True)
  target.parent.mkdir(parents=True)
  (tmp_path / 'copy').rename(target)
  (target / 'summary.json').unlink()
  for file in target.glob('checkpoints/60/**/d/*'):
    file.write_bytes(file.read_bytes()[:100])
  before = _files(tmp_path)
  done = _run(
      f'--results={tmp_path}', *_ONE_RUN
  )
  message = 'checkpoint .*/60 cannot be read.*Delete .*checkpoints to go'
  _assert_refused(done.returncode, done.stderr, message)
  assert _files(tmp_path) == before
  metrics = pd.read_csv(target / 'metrics.csv')
  assert metrics['step'].max() == 60


@pytest.mark.parametrize(
    'name, content, message',
    [
        ('config.json', '[]', 'config.json is not that of a run'),
        ('summary.json', '{"run', 'summary.json is not valid JSON'),
        ('metrics.csv', None, 'step 60, but its metrics.csv is missing'),
    ],
)
def test_damaged_files_of_a_run(finished, tmp_path, name, content, message):
  source = _run_folder(finished[0])
  target = tmp_path / 'fig3b' / 'smoke' / source.name
  target.parent.mkdir(parents=True)
  subprocess.run(['cp', '-r', source, target], check=True)
  if content is None:
    (target / 'summary.json').unlink()
    (target / name).unlink()
  else:
    (target / name).write_text(content)
  done = _run(f'--results={tmp_path}', *_ONE_RUN)
  _assert_refused(done.returncode, done.stderr, message)
  assert (target / 'checkpoints').exists()


def _assert_refused(code, stderr, message):
  lines = stderr.strip().splitlines()
  assert code == 2, stderr
  assert lines[-1].startswith('error: '), stderr
  assert re.search(message, lines[-1]), lines[-1]
  assert 'Traceback' not in stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    'name, run',
    [
        ('scan_me', '--only=model=meta_seq2seq'),
        ('scan_add_jump', '--only=meanings=aligned'),
        ('scan_around_right', '--only=task.num_extra=2'),
        ('scan_length', '--only=model=meta_seq2seq'),
        ('scan_length', '--only=model=seq2seq'),
    ],
)
def test_scan_is_trained_from_end_to_end(tmp_path, name, run):
  done = _run(f'--results={tmp_path}', run, config=f'configs/{name}.py:smoke')
  assert done.returncode == 0, done.stderr
  assert len(list(tmp_path.glob(f'{name}/smoke/*/summary.json'))) == 1
