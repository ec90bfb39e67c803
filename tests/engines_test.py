"""Sweeps over real engines that lose something in the middle.

`pytest -m launch`; each test skips where its engine is missing.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

from tests import commands
from tests.engines import slurm

pytestmark = pytest.mark.launch
_STEPS = 600
_RUNS = (
    '--config=tests/small_sweep.py',
    # Long enough to be hit while it runs.
    f'--config.training.num_outer_steps={_STEPS}',
)
_NUM_RUNS = 4


def _finished(folder):
  return list(folder.glob('small/smoke/*/summary.json'))


def _saved(folder):
  return list(folder.glob('small/smoke/*/checkpoints/[1-9]*'))


def _sessions_of(run_folder):
  """Returns (first step, last step) of each session of a run."""
  text = (run_folder / 'provenance.json').read_text()
  return [
      (session['first_step'], session['last_step'])
      for session in json.loads(text)['sessions']
  ]


_RAY = """
import sys, threading, time, pathlib
import ray
from ray import cluster_utils

results = pathlib.Path(sys.argv[1].removeprefix('--results='))
cluster = cluster_utils.Cluster(
    initialize_head=True,
    head_node_args={'num_cpus': 1, 'include_dashboard': False},
)
doomed = cluster.add_node(num_cpus=1)
ray.init(cluster.address, log_to_driver=False)
assert len(ray.nodes()) == 2

def lose_a_node():
  # Both nodes train by then.
  saved = []
  while len({path.parents[1] for path in saved}) < 2:
    saved = list(results.glob('small/smoke/*/checkpoints/[1-9]*'))
    time.sleep(0.05)
  cluster.remove_node(doomed, allow_graceful=False)
  print('lost a node', flush=True)

threading.Thread(target=lose_a_node, daemon=True).start()
from launch import common, ray_cluster
common.main(ray_cluster.launch, ray_cluster._describe)
"""


def test_a_ray_cluster_that_loses_a_node_finishes_every_run(tmp_path):
  pytest.importorskip('ray', reason="needs Ray: pip install -e '.[ray]'")
  script = tmp_path / 'cluster.py'
  script.write_text(textwrap.dedent(_RAY))
  results = tmp_path / 'results'
  process = subprocess.Popen(
      [sys.executable, str(script), f'--results={results}', *_RUNS]
      + [f'--compilation_cache={tmp_path}/cache'],
      cwd=commands.ROOT,
      env=commands.environment(
          PYTHONPATH=str(commands.ROOT), RAY_ENABLE_UV_RUN_RUNTIME_ENV='0'
      ),
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      text=True,
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
def fixture_slurm_variables():
  pytest.importorskip('submitit', reason="pip install -e '.[slurm]'")
  reason = slurm.missing()
  if reason:
    pytest.skip(reason)
  with slurm.running(num_cpus=2) as variables:
    yield variables


def _slurm(variables, command):
  return subprocess.run(
      command.split(),
      env=os.environ | variables,
      capture_output=True,
      text=True,
      check=True,
  ).stdout


def _start_on_slurm(tmp_path, variables, *flags):
  return commands.start(
      *_RUNS,
      f'--results={tmp_path}/results',
      f'--compilation_cache={tmp_path}/cache',
      f'--jobs={tmp_path}/jobs',
      '--runs_per_task=2',
      '--cpus=1',
      *flags,
      module='launch.slurm',
      variables=variables,
  )


def _array_task(run_folder):
  """Returns the SLURM job that trains this run, as ARRAY_TASK."""
  (lock,) = run_folder.glob('.lock-*')
  pid = json.loads(lock.read_text())['pid']
  environment = pathlib.Path(f'/proc/{pid}/environ').read_text()
  # The number of one task can be the number of the whole array.
  return '_'.join(
      re.search(f'SLURM_ARRAY_{name}_ID=([0-9]+)', environment).group(1)
      for name in ('JOB', 'TASK')
  )


def test_a_slurm_array_with_a_requeued_job_finishes_every_run(
    tmp_path, slurm_variables
):
  results = tmp_path / 'results'
  process = _start_on_slurm(tmp_path, slurm_variables)
  commands.wait_until(lambda: _saved(results), process, timeout=300)
  (path, *_) = _saved(results)
  run_folder = path.parents[1]
  job = _array_task(run_folder)
  _slurm(slurm_variables, f'scontrol requeue {job}')

  def runs_again():
    state = _slurm(slurm_variables, f'squeue -h -j {job} -o %t').strip()
    # SLURM lets requeued jobs wait for two minutes, from when they ended.
    if state == 'PD':
      _slurm(slurm_variables, f'scontrol update JobId={job} StartTime=now')
    return state not in ('PD', 'CG')

  commands.wait_until(runs_again, process, timeout=300, poll=0.5)
  output = commands.finish(process, timeout=500)
  assert len(_finished(results)) == _NUM_RUNS
  assert output.count('maml  random') == _NUM_RUNS
  # SIGTERM saved at some step, where the queued job went on.
  (_, saved), (first, _) = _sessions_of(run_folder)
  assert saved == first > 0


def test_jobs_that_slurm_lost_are_named_and_not_waited_for(
    tmp_path, slurm_variables
):
  process = _start_on_slurm(
      tmp_path,
      slurm_variables,
      '--config.training.num_outer_steps=100000',
  )
  commands.wait_until(
      lambda: _saved(tmp_path / 'results'), process, timeout=300
  )
  _slurm(slurm_variables, 'scancel --me')
  output, _ = process.communicate(timeout=300)
  assert process.returncode == 1, output
  assert output.count('left the queue without a result') == _NUM_RUNS, output
