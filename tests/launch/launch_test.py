"""Launchers: plans, progress, failures, on this machine."""

import contextlib
import errno
import io
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

from absl.testing import flagsaver
import jax
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.cli import command_line
from modular_hyperteacher.devices import compilation_cache
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.launch import attempts
from modular_hyperteacher.launch import cost
from modular_hyperteacher.launch import local
from modular_hyperteacher.launch import plan as plans
from modular_hyperteacher.launch import worker
from modular_hyperteacher.runs import locks
from modular_hyperteacher.runs import run_folder
from modular_hyperteacher.runs import runner
from tests.helpers import commands
from tests.helpers import launch_flags
from tests.helpers import small_sweep

_CONFIG = '--config=tests/helpers/small_sweep.py'
_NUM_RUNS = 4


@pytest.fixture(autouse=True, scope='module')
def fixture_flags() -> None:
  launch_flags.parse()


def test_only_help_needs_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setitem(sys.modules, 'submitit', None)
  monkeypatch.setattr(sys, 'argv', ['launch.slurm', '--help'])
  assert plans.need('submitit', 'slurm') is None
  monkeypatch.setattr(sys, 'argv', ['launch.slurm'])
  with pytest.raises(SystemExit, match='2'):
    plans.need('submitit', 'slurm')


def _sweep(root: pathlib.Path, preset: str = 'smoke') -> command_line.Sweep:
  runs = sweeps.expand(small_sweep.get_config(preset))
  return command_line.Sweep(runs, runs, root)


def _finish(run: runner.PlannedRun) -> None:
  """Writes what a finished run leaves."""
  seeds = run.spec.config['training']['seeds']
  headline = {'accuracy': [0.5 for _ in seeds]}
  train = {'num_skipped': [0 for _ in seeds]}
  splits = {'test': headline, 'ood': headline, 'train': train}
  run.folder.path.mkdir(parents=True)
  files = {
      'config.json': run.spec.config,
      'summary.json': {
          'run_id': run.spec.run_id,
          'seeds': seeds,
          'last': splits,
          'best_validation': splits,
      },
  }
  for name, content in files.items():
    (run.folder.path / name).write_text(json.dumps(content))


@pytest.mark.slow
def test_plans_list_what_is_left_which_has_a_cost(
    tmp_path: pathlib.Path,
) -> None:
  sweep = _sweep(tmp_path)
  plan = plans.make_plan(sweep, 1)
  _finish(plan.runs[0])
  plan.runs[1].folder.checkpoints.mkdir(parents=True)
  (plan.runs[1].folder.checkpoints / '10.npz').touch()
  plan = plans.make_plan(sweep, 2)
  assert [len(bundle) for bundle in plan.bundles] == [2, 1]
  text = plans.describe_plan(plan, 'somewhere')
  assert '4 runs, 1 of them finished' in text
  assert '2 tasks for somewhere' in text
  assert f'{plan.runs[1].spec.run_id}: step 10 of 40' in text
  left = [run for bundle in plan.bundles for run in bundle]
  text = cost.estimate(left, plan.runs)
  assert '3 runs of models that were never timed here' in text
  plan.runs[0].folder.write(
      'provenance.json',
      {'sessions': [{'first_step': 0, 'last_step': 40, 'wall_s': 144.0}]},
  )
  # (30 + 40 + 40) steps at 3.6 seconds
  expected = '3 runs take 0.11 hours of one worker'
  assert expected in cost.estimate(left, plan.runs)


@pytest.mark.parametrize('dry_run', [True, False])
def test_training_does_not_wait_for_an_estimate(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, dry_run: bool
) -> None:
  steps = []
  monkeypatch.setattr(command_line, 'read_sweep', lambda: _sweep(tmp_path))
  monkeypatch.setattr(cost, 'estimate', lambda *_: steps.append('priced'))

  def launch(plan: plans.Plan) -> plans.Outcome:
    steps.append('launched')
    return plans.Outcome({}, left='stopped')

  with flagsaver.flagsaver(dry_run=dry_run):
    assert plans._run(launch, lambda: 'somewhere') == 0
  assert steps == ['priced' if dry_run else 'launched']


@pytest.mark.slow
def test_1500_finished_runs_are_planned_listed_and_tabulated_at_once(
    tmp_path: pathlib.Path,
) -> None:
  for run in runner.plan(_sweep(tmp_path, 'paper').runs, tmp_path):
    _finish(run)
  started = time.process_time()
  plan = plans.make_plan(_sweep(tmp_path, 'paper'), 1)
  text = plans.describe_plan(plan, 'somewhere')
  with contextlib.redirect_stdout(io.StringIO()) as table:
    assert plans._end(plan, plans.Outcome({})) == 0
  assert time.process_time() - started < 10
  assert '1500 runs, 1500 of them finished' in text and not plan.bundles
  assert table.getvalue().count('maml') == 1500


@pytest.mark.slow
def test_1500_new_runs_are_planned_and_listed_at_once(
    tmp_path: pathlib.Path,
) -> None:
  started = time.process_time()
  plan = plans.make_plan(_sweep(tmp_path, 'paper'), 10)
  text = plans.describe_plan(plan, 'somewhere')
  assert cost.estimate(plan.runs, plan.runs).startswith('cost: 1500 runs of')
  assert time.process_time() - started < 10
  assert len(plan.bundles) == 150 and text.count('step 0 of 40') == 1500
  assert not list(tmp_path.iterdir())


def _bundle(tmp_path: pathlib.Path) -> tuple[Any, list[str]]:
  (bundle,) = plans.make_plan(_sweep(tmp_path), _NUM_RUNS).bundles
  return bundle, [run.spec.run_id for run in bundle]


def test_what_is_worth_another_attempt(tmp_path: pathlib.Path) -> None:
  bundle, ids = _bundle(tmp_path)
  outcomes = dict(
      zip(ids, [worker.FINISHED, worker.HELD, 'refused: x', 'failed: y'])
  )
  unfinished = {}
  held, failed = attempts.take_back(
      attempts.attempt(bundle), outcomes, unfinished
  )
  assert held == attempts.Attempt(bundle[1:2], failures=0, held=True)
  assert failed == attempts.Attempt(bundle[3:], failures=1)
  assert unfinished == {ids[2]: 'refused: x'}
  # Whoever holds another run of the bundle, a failure counts.
  (held,) = attempts.take_back(
      attempts.attempt(bundle, failures=2), outcomes, unfinished
  )
  assert held.bundle == bundle[1:2] and unfinished[ids[3]] == 'failed: y'


def test_a_worker_that_cannot_be_started_holds_up_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  """No memory for a process: the runs are tried again, then given up."""

  def fail(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOMEM, 'Cannot allocate memory')

  monkeypatch.setattr(local.subprocess, 'Popen', fail)
  plan = plans.make_plan(_sweep(tmp_path), _NUM_RUNS)
  pool = local._Pool(plan, [([0], {})] * 2)
  deadline = time.monotonic() + 60
  while pool.busy and time.monotonic() < deadline:
    time.sleep(0.1)
  assert not pool.busy
  assert set(pool.unfinished) == {run.spec.run_id for run in plan.runs}
  for reason in pool.unfinished.values():
    assert 'cannot be started (Cannot allocate memory)' in reason


def test_a_fault_of_the_launcher_ends_it_and_its_workers(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  """Such as a results folder that cannot be read any more."""
  stopped = []

  def fail(*_: Any) -> None:
    raise errors.UserError('damaged')

  monkeypatch.setattr(local._Worker, 'train', lambda *_: {})
  monkeypatch.setattr(local._Worker, 'stop', lambda *_, **__: stopped.append(1))
  monkeypatch.setattr(local, '_slots', lambda: [([0], {})] * 2)
  plan = plans.make_plan(_sweep(tmp_path), 1)
  for module, function in (
      (local.attempts, 'take_back'),
      (local.progresses.Progress, 'update'),
  ):
    with monkeypatch.context() as patch:
      patch.setattr(module, function, fail)
      with pytest.raises(errors.UserError, match='damaged'):
        local.launch(plan)
    assert stopped
    stopped.clear()
    monkeypatch.setattr(local._Worker, 'train', _refuse_all)


def _refuse_all(_: Any, bundle: list[dict[str, Any]]) -> dict[str, str]:
  time.sleep(1)
  return {run['run_id']: 'refused' for run in bundle}


def test_after_a_workers_death_its_runs_are_tried_one_by_one(
    tmp_path: pathlib.Path,
) -> None:
  bundle, ids = _bundle(tmp_path)
  _finish(bundle[0])
  unfinished = {}
  again = attempts.take_back(attempts.attempt(bundle), 'it died', unfinished)
  assert again == [attempts.Attempt([run]) for run in bundle[1:]]
  for failures in (1, 2):
    again = attempts.take_back(again[0], 'it died', unfinished)
    assert again == [attempts.Attempt(bundle[1:2], failures)]
  bundle[1].folder.checkpoints.mkdir(parents=True)
  (bundle[1].folder.checkpoints / '10.npz').touch()
  # It came further: its worker may die as often as it likes.
  (again,) = attempts.take_back(again[0], 'it died', unfinished)
  assert again == attempts.Attempt(bundle[1:2], 2, saved_steps=10)
  assert not unfinished
  assert not attempts.take_back(again, 'it died', unfinished)
  assert unfinished == {ids[1]: 'failed: it died'}


@pytest.mark.parametrize(
    'number, cores, gpus, expected',
    [
        (None, [0, 1], [], [([0, 1], {})]),
        (2, [0, 1, 2, 3], [], [([0, 1], {}), ([2, 3], {})]),
        (3, [5], [], [([5], {})] * 3),
        (
            2,
            [0, 1],
            ['4'],
            [
                (
                    [core],
                    {
                        'CUDA_VISIBLE_DEVICES': '4',
                        'XLA_PYTHON_CLIENT_MEM_FRACTION': '0.450',
                    },
                )
                for core in (0, 1)
            ],
        ),
        (
            None,
            [0, 1, 2],
            ['4', '6'],
            [
                ([0, 1], {'CUDA_VISIBLE_DEVICES': '4'}),
                ([2], {'CUDA_VISIBLE_DEVICES': '6'}),
            ],
        ),
    ],
)
def test_workers_divide_cores_and_gpus(
    number: int | None,
    cores: list[int],
    gpus: list[str],
    expected: list[tuple[list[int], dict[str, str]]],
) -> None:
  assert local.make_slots(number, cores, gpus) == expected


def _launch(*arguments: str, **variables: str) -> subprocess.Popen[str]:
  return commands.start(
      _CONFIG, *arguments, module='launch.local', variables=variables
  )


def test_a_dry_run_does_nothing(tmp_path: pathlib.Path) -> None:
  # Not even on the device that workers use.
  output = commands.finish(
      _launch('--dry_run', f'--results={tmp_path}/new', JAX_PLATFORMS='none')
  )
  assert '4 runs, 0 of them finished' in output and 'cost: ' in output
  assert not list(tmp_path.iterdir())


def test_wrong_input_is_refused(tmp_path: pathlib.Path) -> None:
  process = _launch('--only=seeds=9', f'--results={tmp_path}')
  output, _ = process.communicate(timeout=60)
  assert process.returncode == 2 and 'error: --only: no run has' in output


def test_workers_take_settings_of_any_length(tmp_path: pathlib.Path) -> None:
  lead_s = {f'linear_hypernetwork-random-{i:08}': 60.0 for i in range(10_000)}
  settings = worker.Settings(str(tmp_path), 1, '', lead_s=lead_s)
  one = local._Worker((sorted(os.sched_getaffinity(0)), {}), settings)
  assert one.train([]) == {}
  one.stop(save=False)


def test_workers_start_where_cores_cannot_be_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  """As on macOS."""
  monkeypatch.delattr(os, 'sched_getaffinity')
  assert local.num_cores() >= 1
  code = 'import os; del os.sched_setaffinity; from launch import worker;'
  done = subprocess.run(
      [sys.executable, '-c', f'{code} worker.main()', '--cores=[0]'],
      input=json.dumps(worker.Settings('nowhere', 1, '')) + '\n[]\n',
      capture_output=True,
      cwd=commands.ROOT,
      text=True,
  )
  assert (done.returncode, done.stdout) == (0, '{}\n'), done.stderr


def _children(process: subprocess.Popen[str]) -> list[int]:
  command = ['ps', '-o', 'pid=', '--ppid', str(process.pid)]
  return [int(pid) for pid in subprocess.check_output(command).split()]


def _finished(folder: pathlib.Path) -> int:
  return len(list(folder.glob('*/*/*/summary.json')))


@pytest.fixture(scope='module', name='cache')
def fixture_cache(tmp_path_factory: pytest.TempPathFactory) -> str:
  return f'--compilation_cache={tmp_path_factory.mktemp("cache")}'


@pytest.mark.launch
def test_a_sweep_survives_a_killed_worker_and_a_second_launcher(
    tmp_path: pathlib.Path, cache: str
) -> None:
  arguments = (f'--results={os.path.relpath(tmp_path, commands.ROOT)}', cache)
  first = _launch(*arguments, '--workers=2')
  commands.wait_until(lambda: list(tmp_path.glob('*/*/*/checkpoints/*')), first)
  second = _launch(*arguments)
  before = set(_children(first))
  os.kill(min(before), signal.SIGKILL)
  commands.wait_until(lambda: set(_children(first)) - before, first)
  for output in (commands.finish(first), commands.finish(second)):
    assert output.count('maml  random') == _NUM_RUNS
  assert _finished(tmp_path) == _NUM_RUNS
  num_sessions = 0
  for provenance in tmp_path.glob('*/*/*/provenance.json'):
    # Nobody trained what another had trained: sessions do not overlap.
    sessions = json.loads(provenance.read_text())['sessions']
    steps = [(s['first_step'], s['last_step']) for s in sessions]
    assert steps[-1][1] == 40, steps
    assert all(b[0] >= a[1] for a, b in itertools.pairwise(steps)), steps
    num_sessions += len(sessions)
  # Only the run of the killed worker may have been resumed.
  assert num_sessions <= _NUM_RUNS + 1
  assert not list(tmp_path.glob('**/.lock-*'))


@pytest.mark.launch
def test_runs_that_differ_in_seeds_are_compiled_once(
    tmp_path: pathlib.Path,
) -> None:
  cache = tmp_path / 'cache'
  arguments = (f'--results={tmp_path}', f'--compilation_cache={cache}')
  compiled = []
  for seeds in ('[0]', '[1]'):
    commands.finish(_launch(*arguments, f'--only=seeds={seeds}'))
    compiled.append(sum(p.stat().st_size for p in cache.glob('*/*-cache')))
  assert _finished(tmp_path) == 2
  # Small programs, which take long only on a busy machine, may come later.
  assert 0 < compiled[1] < 1.5 * compiled[0]


@pytest.mark.launch
def test_sigterm_saves_and_the_same_command_goes_on(
    tmp_path: pathlib.Path, cache: str
) -> None:
  long = '--config.training.num_outer_steps=4000'
  arguments = (f'--results={tmp_path}', cache, '--only=seeds=[0]', long)
  process = _launch(*arguments)
  commands.wait_until(
      lambda: list(tmp_path.glob('*/*/*/checkpoints/[1-9]*')), process
  )
  process.send_signal(signal.SIGTERM)
  output = commands.finish(process, timeout=60)
  assert 'SIGTERM: saved' in output and not _finished(tmp_path)
  output = commands.finish(_launch(*arguments, '--dry_run'))
  assert 'step 0 of' not in output


def test_a_run_that_another_process_has_is_left_to_it(
    tmp_path: pathlib.Path,
) -> None:
  run = _sweep(tmp_path).runs[0]
  folder = run_folder.RunFolder(tmp_path / 'small' / 'smoke' / run.run_id)
  lock = locks.Locks().acquire(folder)
  assert lock is not None
  settings = worker.Settings(str(tmp_path), 1, '')
  (fields,) = plans.as_json(runner.plan([run], tmp_path))
  assert worker.train([fields], settings) == {run.run_id: worker.HELD}
  lock.release()


def test_a_refused_run_leaves_the_others_alone(tmp_path: pathlib.Path) -> None:
  first, second = _sweep(tmp_path).runs[:2]
  fields = plans.as_json(runner.plan([first, second], tmp_path))
  fields[0]['config']['task']['max_active'] = 9
  _finish(runner.plan([second], tmp_path)[0])
  outcomes = worker.train(fields, worker.Settings(str(tmp_path), 1, ''))
  assert outcomes[first.run_id].startswith('refused: task.max_active is 9')
  assert outcomes[second.run_id] == worker.FINISHED


def test_the_cache_of_compiled_programs(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  """JAX's own setting comes first; a folder that cannot be used is refused."""
  bundle, ids = _bundle(tmp_path)
  told = []
  monkeypatch.setattr(jax.config, 'update', lambda *update: told.append(update))
  settings = worker.Settings(str(tmp_path), 1, compilation_cache.DEFAULT)
  worker.set_up(settings)
  assert 'jax_compilation_cache_dir' not in dict(told)
  settings = settings._replace(compilation_cache='/proc/nowhere/cache')
  outcomes = worker.train(plans.as_json(bundle[:1]), settings)
  assert "is '/proc/nowhere/cache', which cannot be used" in outcomes[ids[0]]
  assert outcomes[ids[0]].startswith(worker.REFUSED)


def test_a_budget_of_a_million_years(tmp_path: pathlib.Path) -> None:
  settings = worker.Settings(str(tmp_path), 1, '', ends_at=1e14)
  try:
    assert worker._set_alarm(settings, 'run')
  finally:
    signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.mark.parametrize(
    'error, has_traceback',
    [
        (errors.StorageError(pathlib.Path('there'), 'the disk is full'), False),
        (RuntimeError('a bug'), True),
    ],
)
def test_only_bugs_have_a_traceback(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    has_traceback: bool,
) -> None:
  def fail(*_: Any) -> None:
    raise error

  monkeypatch.setattr(worker, '_train_one', fail)
  bundle, ids = _bundle(tmp_path)
  settings = worker.Settings(str(tmp_path), 1, '')
  outcomes = worker.train(plans.as_json(bundle[:1]), settings)
  assert outcomes == {ids[0]: f'failed: {type(error).__name__}: {error}'}
  assert ('Traceback' in capsys.readouterr().err) == has_traceback


_YAML = pathlib.Path(__file__).parents[2] / 'launch' / 'clusters'


@pytest.mark.launch  # The only tests that run where Ray is installed.
@pytest.mark.parametrize('name', ['ray_gpu.yaml', 'ray_tpu.yaml'])
def test_cluster_files_are_valid_by_rays_schema(name: str) -> None:
  util = pytest.importorskip(
      'ray.autoscaler._private.util', reason="pip install -e '.[ray]'"
  )
  yaml = pytest.importorskip('yaml')
  config = yaml.safe_load((_YAML / name).read_text())
  util.validate_config(util.prepare_config(config))
  with pytest.raises(Exception, match='nonsense'):
    util.validate_config(util.prepare_config(config | {'nonsense': 1}))
  assert all(
      'dashboard-host=127.0.0.1' in command
      for command in config['head_start_ray_commands']
      if '--head' in command
  )
