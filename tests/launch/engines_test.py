"""Sweeps over real engines that lose something in the middle.

`pytest -m launch`; each test skips where its engine is missing.
"""

from collections.abc import Iterator, Sequence
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
from typing import Any

import pytest

from tests.helpers import commands
from tests.launch.engines import slurm

pytestmark = pytest.mark.launch
_STEPS = 600
_RUNS = (
    '--config=tests/helpers/small_sweep.py',
    # Long enough to be hit while it runs.
    f'--config.training.num_outer_steps={_STEPS}',
)
_NUM_RUNS = 4
# SLURM lets requeued jobs wait for two minutes. Sooner is fine once nothing is
# left of the first start, but not within the same second: the node's daemon
# compares whole seconds, and takes the second start's credential for the first
# one's, which was revoked.
_STARTABLE_AFTER_S = 2.5


def _finished(folder: pathlib.Path) -> list[pathlib.Path]:
  return list(folder.glob('small/smoke/*/summary.json'))


def _saved(folder: pathlib.Path) -> list[pathlib.Path]:
  return list(folder.glob('small/smoke/*/checkpoints/[1-9]*'))


def _sessions_of(run_folder: pathlib.Path) -> list[tuple[int, int]]:
  """Returns (first step, last step) of each session of a run."""
  text = (run_folder / 'provenance.json').read_text()
  return [
      (session['first_step'], session['last_step'])
      for session in json.loads(text)['sessions']
  ]


def test_a_ray_cluster_that_loses_a_node_finishes_every_run(
    tmp_path: pathlib.Path,
) -> None:
  pytest.importorskip('ray', reason="needs Ray: pip install -e '.[ray]'")
  results = tmp_path / 'results'
  process = commands.start(
      f'--results={results}',
      *_RUNS,
      f'--compilation_cache={tmp_path}/cache',
      module='tests.launch.engines.ray_nodes',
      variables={'RAY_ENABLE_UV_RUN_RUNTIME_ENV': '0'},
      start_new_session=True,
  )
  output = commands.finish(process, timeout=540)
  assert 'lost a node' in output
  assert len(_finished(results)) == _NUM_RUNS
  assert output.count('maml  random') == _NUM_RUNS
  # The run that was on the lost node went on from a checkpoint.
  first_steps = [
      first
      for path in results.glob('small/smoke/*/provenance.json')
      for first, _ in _sessions_of(path.parent)
  ]
  assert max(first_steps) > 0


@pytest.fixture(scope='module', name='slurm_variables')
def fixture_slurm_variables() -> Iterator[dict[str, str]]:
  pytest.importorskip('submitit', reason="pip install -e '.[slurm]'")
  reason = slurm.missing()
  if reason:
    pytest.skip(reason)
  with slurm.running(num_cpus=2) as variables:
    yield variables


def _slurm(variables: dict[str, str], command: str, check: bool = True) -> str:
  return subprocess.run(
      command.split(),
      env=os.environ | variables,
      capture_output=True,
      text=True,
      check=check,
  ).stdout


def _start_on_slurm(
    tmp_path: pathlib.Path, variables: dict[str, str], *flags: str
) -> subprocess.Popen[str]:
  return commands.start(
      *_RUNS,
      f'--results={tmp_path}/results',
      f'--compilation_cache={tmp_path}/cache',
      f'--jobs={tmp_path}/jobs',
      '--cpus=1',
      *flags,
      module='launch.slurm',
      variables=variables,
  )


def _array_task(run_folder: pathlib.Path) -> str:
  """Returns the SLURM job that trains this run, as ARRAY_TASK."""
  (lock,) = run_folder.glob('.lock-*.json')
  pid = json.loads(lock.read_text())['pid']
  environment = pathlib.Path(f'/proc/{pid}/environ').read_text(encoding='utf-8')
  # The number of one task can be the number of the whole array.
  return '_'.join(
      re.findall(f'SLURM_ARRAY_{name}_ID=([0-9]+)', environment)[0]
      for name in ('JOB', 'TASK')
  )


def _slow_scontrol(folder: pathlib.Path) -> dict[str, str]:
  """Returns variables with an scontrol that takes a second too long."""
  folder.mkdir()
  script = folder / 'scontrol'
  script.write_text(
      f'#!/bin/bash\n{shutil.which("scontrol")} "$@"; code=$?; sleep 1;'
      ' exit $code\n'
  )
  script.chmod(0o755)
  return {'PATH': f'{folder}:{os.environ["PATH"]}'}


def _has_processes(job_id: str) -> bool:
  """Whether SLURM still has a process for a step of this job on this node."""
  pattern = rf'^slurmstepd: \[{job_id}\.'
  search = ['pgrep', '-f', pattern]
  return not subprocess.run(search, check=False, capture_output=True).returncode


@pytest.mark.parametrize(
    'command',
    [
        pytest.param('scontrol requeue', id='preempted'),
        pytest.param('scancel --signal=USR2', id='near its time limit'),
    ],
)
def test_a_job_that_is_queued_again_goes_on_and_every_run_is_finished(
    tmp_path: pathlib.Path, slurm_variables: dict[str, str], command: str
) -> None:
  results = tmp_path / 'results'
  variables = slurm_variables | _slow_scontrol(tmp_path / 'slow')
  process = _start_on_slurm(tmp_path, variables, '--runs_per_task=2')
  commands.wait_until(lambda: _saved(results), process, timeout=300)
  path, *_ = _saved(results)
  run_folder = path.parents[1]
  job = _array_task(run_folder)
  raw_id = _slurm(slurm_variables, f'squeue -h -j {job} -o %A').strip()
  _slurm(slurm_variables, f'{command} {job}')

  def state() -> str:
    return _slurm(slurm_variables, f'squeue -h -j {job} -o %t').strip()

  waits_since = None

  def runs_again() -> bool:
    nonlocal waits_since
    now = state()
    assert now, f'{job} left the queue'
    if now != 'PD' or _has_processes(raw_id):
      waits_since = None
    elif waits_since is None:
      waits_since = time.monotonic()
    elif time.monotonic() - waits_since > _STARTABLE_AFTER_S:
      # Refused if it has started meanwhile.
      command = f'scontrol update JobId={job} StartTime=now'
      _slurm(slurm_variables, command, check=False)
    return now not in ('PD', 'CG')

  commands.wait_until(lambda: state() in ('PD', 'CG'), process)
  commands.wait_until(runs_again, process, timeout=300, poll=0.5)
  output = commands.finish(process, timeout=500)
  assert len(_finished(results)) == _NUM_RUNS
  assert output.count('maml  random') == _NUM_RUNS
  # The signal saved at some step, where the queued job went on.
  (_, saved), (first, _) = _sessions_of(run_folder)
  assert saved == first > 0


def test_cancelled_jobs_are_named_and_not_waited_for(
    tmp_path: pathlib.Path,
    slurm_variables: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  from modular_hyperteacher.launch import slurm as launcher  # needs submitit

  process = _start_on_slurm(
      tmp_path, slurm_variables, '--config.training.num_outer_steps=100000'
  )
  commands.wait_until(
      lambda: _saved(tmp_path / 'results'), process, timeout=300
  )
  for name, value in slurm_variables.items():
    monkeypatch.setenv(name, value)
  # This SLURM takes arrays of three: the fourth job is no array's.
  assert launcher._max_array_size() == 3
  queued = launcher._queued()
  assert queued is not None
  _slurm(slurm_variables, 'scancel --user=root')
  output, _ = process.communicate(timeout=300)
  assert process.returncode == 1, output
  assert output.count('left the queue without a result') == _NUM_RUNS, output
  first_array, alone = re.findall('queued [31] jobs from ([0-9_]+) on', output)
  assert first_array.endswith('_0') and '_' not in alone
  assert {first_array, first_array[:-1] + '2', alone} <= queued


def test_jobs_are_lost_once_slurm_has_not_had_them_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  pytest.importorskip('submitit', reason="pip install -e '.[slurm]'")
  from modular_hyperteacher.launch import slurm as launcher

  now = [0.0]
  answer: list[set[str] | None] = [{'7', '7_0', '7_1', '9'}]
  monkeypatch.setattr(launcher.time, 'monotonic', lambda: now[0])
  monkeypatch.setattr(launcher, '_queued', lambda: answer[0])
  queue = launcher._Queue()

  def lost_after(seconds: float) -> set[str]:
    now[0] += seconds
    return queue.lost(['7_0', '7_2', '9', '11'])

  assert not lost_after(15) and not lost_after(60)
  answer[0] = None  # SLURM does not answer.
  assert not lost_after(60)
  answer[0] = {'7', '7_0', '7_2', '9'}  # 7_2 was queued again.
  assert lost_after(15) == {'11'}
  answer[0] = set()
  assert lost_after(15) == {'11'}
  assert lost_after(90) == {'7_0', '7_2', '9', '11'}


def test_a_later_refusal_ends_no_sweep(
    capsys: pytest.CaptureFixture[str],
) -> None:
  submitit = pytest.importorskip('submitit', reason="pip install -e '.[slurm]'")
  from modular_hyperteacher.launch import slurm as launcher

  refuse = iter([False, True, True, False])

  class Executor:

    def submit_array(self, work: Sequence[Any]) -> list[Any]:
      if next(refuse):
        raise submitit.core.utils.FailedJobError('too many jobs')
      return [submitit.Job('/nowhere', f'1_{i}') for i in range(len(work))]

  jobs: Any = launcher._Jobs.__new__(launcher._Jobs)
  jobs._settings, jobs._executor = None, Executor()
  jobs._queued, jobs._accepted, jobs._refusal = {}, False, ''
  jobs._size = jobs._largest = 2
  jobs._left = [launcher.attempts.Attempt([]) for _ in range(3)]
  jobs._send()
  assert len(jobs._queued) == 2 and jobs.leave()[1] == 1
  jobs._queued.clear()  # All others are done.
  jobs._send()
  assert capsys.readouterr().err.count('too many jobs') == 1
  jobs._send()
  assert len(jobs._queued) == 1 and jobs.leave()[1] == 0


def test_arrays_that_a_limit_refuses_are_sent_in_parts() -> None:
  submitit = pytest.importorskip('submitit', reason="pip install -e '.[slurm]'")
  from modular_hyperteacher.launch import slurm as launcher

  sent = []

  class Executor:

    def submit_array(self, work: Sequence[Any]) -> list[Any]:
      if len(work) > 3:
        raise submitit.core.utils.FailedJobError('too many jobs')
      sent.append(len(work))
      return [
          submitit.Job('/nowhere', f'{len(sent)}_{i}') for i in range(len(work))
      ]

  jobs: Any = launcher._Jobs.__new__(launcher._Jobs)
  jobs._settings, jobs._executor = None, Executor()
  jobs._queued, jobs._accepted, jobs._refusal = {}, False, ''
  jobs._size = jobs._largest = 1000
  jobs._left = [launcher.attempts.Attempt([]) for _ in range(10)]
  jobs._send()
  assert sum(sent) == len(jobs._queued) == 10 and max(sent) <= 3


@pytest.mark.parametrize(
    'wrong, message',
    [
        ('--time_min=2', 'too short for training'),
        ('--partition=nowhere', 'SLURM accepts no jobs: .*partition'),
    ],
)
def test_what_slurm_cannot_do_is_refused(
    tmp_path: pathlib.Path,
    slurm_variables: dict[str, str],
    wrong: str,
    message: str,
) -> None:
  process = _start_on_slurm(tmp_path, slurm_variables, wrong)
  output, _ = process.communicate(timeout=120)
  assert process.returncode == 2, output
  assert re.search(f'^error: .*{message}', output, re.MULTILINE), output
