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


def _sessions(folder):
  """Returns (first step, last step) of all sessions, run by run."""
  return [
      [
          (session['first_step'], session['last_step'])
          for session in json.loads(path.read_text())['sessions']
      ]
      for path in folder.glob('small/smoke/*/provenance.json')
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
  resumed = [
      first
      for sessions in _sessions(results)
      for first, _ in sessions
      if first > 0
  ]
  assert resumed, _sessions(results)


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


def test_a_slurm_array_with_a_requeued_job_finishes_every_run(
    tmp_path, slurm_variables
):
  results = tmp_path / 'results'
  process = commands.start(
      *_RUNS,
      f'--results={results}',
      f'--compilation_cache={tmp_path}/cache',
      f'--jobs={tmp_path}/jobs',
      '--runs_per_task=2',
      '--cpus=1',
      module='launch.slurm',
      variables=slurm_variables,
  )
  commands.wait_until(lambda: _saved(results), process, timeout=300)
  (path, *_) = _saved(results)
  run_id = path.parents[1].name
  (lock,) = path.parents[1].glob('.lock-*')
  pid = json.loads(lock.read_text())['pid']
  environment = pathlib.Path(f'/proc/{pid}/environ').read_text()
  job = re.search('SLURM_JOB_ID=([0-9]+)', environment).group(1)
  _slurm(slurm_variables, f'scontrol requeue {job}')
  # SLURM lets requeued jobs wait for two minutes.
  state = f'squeue -h -j {job} -o %t'
  commands.wait_until(lambda: 'PD' in _slurm(slurm_variables, state))
  _slurm(slurm_variables, f'scontrol update JobId={job} StartTime=now')
  output = commands.finish(process, timeout=500)
  assert len(_finished(results)) == _NUM_RUNS
  assert output.count('maml  random') == _NUM_RUNS
  text = (results / 'small' / 'smoke' / run_id / 'provenance.json').read_text()
  sessions = json.loads(text)['sessions']
  # SIGTERM saved at some step, where the queued job went on.
  assert len(sessions) == 2 and sessions[1]['first_step'] > 0
  assert sessions[0]['last_step'] == sessions[1]['first_step']
