"""Campaigns that train: broken by their budget, killed, and on clusters."""

import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from tests.helpers import commands
from tests.launch.engines import slurm

_CONFIG = """
from tests.helpers import small_sweep


def get_config(preset='smoke'):
  config = small_sweep.get_config(preset)
  config.training.num_outer_steps = {steps}
  return config
"""
# More than the budget leaves beyond what starting takes.
_BUDGET_KEPT_S = 60.0


def _write_list(tmp_path: pathlib.Path, steps: int) -> pathlib.Path:
  """Writes a list of a long run and a short one; returns its path."""
  config = tmp_path / 'long.py'
  config.write_text(_CONFIG.format(steps=steps))
  path = tmp_path / 'list.txt'
  path.write_text(
      f'{config} --only=seeds=[0] --values=A6.maml.ood_accuracy\n'
      'tests/helpers/small_sweep.py --only=seeds=[1]\n'
  )
  return path


def _start(
    tmp_path: pathlib.Path, budget_s: float, *arguments: str, **variables: str
) -> subprocess.Popen[str]:
  return commands.start(
      f'--list={tmp_path}/list.txt',
      f'--budget_h={budget_s / 3600}',
      f'--results={tmp_path}/results',
      f'--compilation_cache={tmp_path}/cache',
      *arguments,
      module='launch.campaign',
      variables={
          'PYTHONPATH': str(commands.ROOT),
          'RAY_ENABLE_UV_RUN_RUNTIME_ENV': '0',
      }
      | variables,
  )


def _saved(tmp_path: pathlib.Path) -> int:
  """Returns the last step that is saved of any run; 0 if there is none."""
  paths = tmp_path.glob('results/*/*/*/checkpoints/*')
  return max((int(p.stem) for p in paths if p.stem.isdigit()), default=0)


def _rows(folder: pathlib.Path) -> list[str]:
  """Returns the rows of metrics.csv, except of ten steps to decode latents.

  These stop far from their end, so rounding is seen in the last digits.
  """
  lines = (folder / 'metrics.csv').read_text().splitlines()
  return [x for x in lines if ',r2' not in x or ',r2_exact' in x]


def _finished(tmp_path: pathlib.Path) -> list[pathlib.Path]:
  paths = tmp_path.glob('results/small/smoke/*/summary.json')
  return sorted(path.parent for path in paths)


@pytest.mark.slow
def test_a_broken_campaign_equals_an_unbroken_one(
    tmp_path: pathlib.Path,
) -> None:
  steps = 3000
  _write_list(tmp_path, steps)
  output = commands.finish(_start(tmp_path, 3600, '--dry_run'), timeout=500)
  assert 'with 1 hours: 1 of 222 published values' in output
  assert [path.name for path in (tmp_path / 'results').iterdir()] == ['timings']
  for path in tmp_path.glob('results/timings/*'):
    # To start takes less time now that programs are compiled.
    cached = json.loads(path.read_text())
    cached['timing']['startup_s'] = 0.0
    path.write_text(json.dumps(cached))

  # How long starting takes differs; on a slow machine, once more. A fast one
  # takes ten seconds for all steps.
  budget_s = 4.0
  while not _saved(tmp_path):
    budget_s *= 1.5
    started = time.monotonic()
    output = commands.finish(_start(tmp_path, budget_s), timeout=500)
    assert time.monotonic() - started < budget_s + _BUDGET_KEPT_S
    assert '2 of 2 runs are left' in output, output
  # The first line comes first.
  assert len(list(tmp_path.glob('results/small/smoke/*'))) == 1
  broken = [*tmp_path.glob('results/*/*/*/checkpoints/*')]
  broken_at = _saved(tmp_path)

  process = _start(tmp_path, 3600)
  commands.wait_until(
      lambda: _saved(tmp_path) > broken_at + 20, process, timeout=500
  )
  children = ['ps', '-o', 'pid=', '--ppid', str(process.pid)]
  workers = subprocess.check_output(children, text=True).split()
  assert workers
  for pid in [process.pid, *map(int, workers)]:
    os.kill(pid, signal.SIGKILL)
  process.communicate()
  assert not _finished(tmp_path)

  output = commands.finish(_start(tmp_path, 3600), timeout=580)
  assert '0 of 2 runs are left; 1 of 222 published values have all' in output
  assert 'python -m modular_hyperteacher.figures.bundle' in output
  unbroken = _start(tmp_path, 3600, f'--results={tmp_path}/unbroken')
  commands.finish(unbroken, timeout=580)
  for expected in (tmp_path / 'unbroken').glob('small/smoke/*'):
    found = tmp_path / 'results/small/smoke' / expected.name
    rows = [_rows(folder) for folder in (found, expected)]
    assert rows[0] == rows[1] and len(rows[0]) > 40
    last = max(expected.glob('checkpoints/*'), key=lambda p: int(p.stem))
    again = found / 'checkpoints' / last.name
    assert again.read_bytes() == last.read_bytes()
  (found,) = {path.parents[1] for path in broken}
  sessions = json.loads((found / 'provenance.json').read_text())['sessions']
  assert sessions[-1]['first_step'] > broken_at  # Where it was killed.
  assert sessions[-1]['last_step'] == steps


def _check_finished(tmp_path: pathlib.Path, output: str, where: str) -> None:
  assert f'1 of 222 published values, on {where}' in output
  assert '0 of 2 runs are left' in output
  assert len(_finished(tmp_path)) == 2
  assert (tmp_path / 'bundle/small/smoke/results.csv.gz').exists()


@pytest.mark.launch
def test_a_campaign_on_ray(tmp_path: pathlib.Path) -> None:
  pytest.importorskip('ray', reason="needs Ray: pip install -e '.[ray]'")
  _write_list(tmp_path, 60)
  bundle = f'--bundle={tmp_path}/bundle'
  process = _start(tmp_path, 1800, '--on=ray', bundle)
  output = commands.finish(process, timeout=560)
  _check_finished(tmp_path, output, 'Ray at this machine')


@pytest.mark.launch
def test_a_campaign_on_slurm(tmp_path: pathlib.Path) -> None:
  pytest.importorskip('submitit', reason="pip install -e '.[slurm]'")
  if reason := slurm.missing():
    pytest.skip(reason)
  _write_list(tmp_path, 60)
  with slurm.running(num_cpus=2) as variables:
    process = _start(
        tmp_path,
        1800,
        *('--on=slurm', '--cpus=1', f'--jobs={tmp_path}/jobs'),
        f'--bundle={tmp_path}/bundle',
        **variables,
    )
    output = commands.finish(process, timeout=560)
  _check_finished(tmp_path, output, 'SLURM, 1 cores')
