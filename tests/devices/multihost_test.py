"""One run on one device, on eight, and on two processes with four each."""

import os
import pathlib
import re
import signal
import subprocess

import numpy as np
import pandas as pd
import pytest

from modular_hyperteacher.devices import multihost
from modular_hyperteacher.runs import locks
from modular_hyperteacher.runs import run_folder
from tests.helpers import commands

_RUN = (
    '--config=configs/fig3b.py:smoke',
    '--only=model=maml',
    '--only=task_support=random',
    '--config.training.num_outer_steps=40',
    '--config.training.evaluate_every=20',
    '--config.execution.log_every=10',
    '--config.execution.checkpoint_every_s=0.0',
)


@pytest.fixture(scope='module', name='cache')
def fixture_cache(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
  """Compiled programs, so that starting again takes no minutes."""
  return {
      'JAX_COMPILATION_CACHE_DIR': str(tmp_path_factory.mktemp('cache')),
      'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0.1',
  }


def _start_two(
    results: pathlib.Path, cache: dict[str, str]
) -> list[subprocess.Popen[str]]:
  """Starts two processes, with four devices and results of their own each."""
  port = commands.free_port()
  return [
      commands.start(
          *_RUN,
          f'--results={results / str(i)}',
          '--host_devices=4',
          f'--coordinator=localhost:{port}',
          '--num_processes=2',
          f'--process_id={i}',
          variables=cache,
      )
      for i in range(2)
  ]


@pytest.fixture(scope='module', name='unbroken')
def fixture_unbroken(
    tmp_path_factory: pytest.TempPathFactory, cache: dict[str, str]
) -> pathlib.Path:
  """The results folder of two processes that nobody disturbed."""
  folder = tmp_path_factory.mktemp('two')
  for process in _start_two(folder, cache):
    commands.finish(process)
  return folder


@pytest.mark.slow
def test_curves_do_not_depend_on_devices_and_processes(
    unbroken: pathlib.Path,
    tmp_path: pathlib.Path,
    cache: dict[str, str],
) -> None:
  commands.run(
      *_RUN,
      f'--results={tmp_path}',
      '--host_devices=1',
      variables=cache,
  )
  expected = pd.read_csv(commands.run_folder(tmp_path) / 'metrics.csv')
  actual = pd.read_csv(commands.run_folder(unbroken / '0') / 'metrics.csv')
  keys = ['step', 'seed', 'split', 'metric']
  pd.testing.assert_frame_equal(actual[keys], expected[keys])
  early = actual['step'] <= 10
  np.testing.assert_allclose(
      actual['value'][early], expected['value'][early], rtol=1e-4, atol=1e-6
  )
  # Rounding differs from the first step on, and learning enlarges it.
  loss = actual['metric'] == 'loss'
  np.testing.assert_allclose(
      actual['value'][loss], expected['value'][loss], rtol=1e-2
  )


@pytest.mark.slow
def test_the_first_process_alone_writes(unbroken: pathlib.Path) -> None:
  assert not (unbroken / '1').exists()


@pytest.mark.launch
@pytest.mark.parametrize('stop', [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_loses_a_process_is_restarted(
    unbroken: pathlib.Path,
    tmp_path: pathlib.Path,
    cache: dict[str, str],
    stop: signal.Signals,
) -> None:
  """The second process is hit; the first has the checkpoints."""
  both = _start_two(tmp_path, cache)
  commands.wait_until(
      lambda: list(tmp_path.glob('0/*/*/*/checkpoints/[1-9]*')), *both
  )
  os.kill(both[1].pid, stop)
  outputs = [process.communicate(timeout=120)[0] for process in both]
  assert not list(tmp_path.glob('0/*/*/*/summary.json'))
  if stop == signal.SIGTERM:
    assert [process.returncode for process in both] == [0, 0], outputs
    assert 'SIGTERM: saved' in outputs[0] and 'SIGTERM: saved' in outputs[1]
  else:
    assert both[0].returncode != 0, outputs
  for process in _start_two(tmp_path, cache):
    commands.finish(process)
  left = commands.run_folder(tmp_path / '0')
  whole = commands.run_folder(unbroken / '0')
  for name in ('metrics.csv', 'summary.json'):
    assert (left / name).read_text() == (whole / name).read_text(), name


def _handles(process: subprocess.Popen[str], number: int) -> int:
  """Whether a process has a handler for a signal by now."""
  status = pathlib.Path(f'/proc/{process.pid}/status').read_text(
      encoding='utf-8'
  )
  caught = re.search('SigCgt:\t([0-9a-f]+)', status)
  assert caught is not None
  return int(caught.group(1), 16) >> (number - 1) & 1


@pytest.mark.launch
def test_processes_that_wait_for_a_run_leave_together(
    unbroken: pathlib.Path, tmp_path: pathlib.Path, cache: dict[str, str]
) -> None:
  name = commands.run_folder(unbroken / '0').relative_to(unbroken / '0')
  lock = locks.Locks().acquire(run_folder.RunFolder(tmp_path / '0' / name))
  assert lock is not None
  both = _start_two(tmp_path, cache)
  commands.wait_until(
      lambda: all(_handles(process, signal.SIGTERM) for process in both), *both
  )
  os.kill(both[1].pid, signal.SIGTERM)
  outputs = [process.communicate(timeout=60)[0] for process in both]
  assert [process.returncode for process in both] == [0, 0], outputs
  assert 'is training it; waiting.' in outputs[0]
  assert 'SIGTERM: ' in outputs[0] and 'SIGTERM: ' in outputs[1]
  lock.release()


@pytest.mark.slow
@pytest.mark.parametrize(
    'arguments, message',
    [
        (['--num_processes=2'], '--coordinator and --process_id must be given'),
        (
            ['--coordinator=localhost:1', '--num_processes=2']
            + ['--process_id=2'],
            '--process_id is 2; it must be at least 0 and less than',
        ),
        (['--distributed'], 'the processes could not be joined'),
    ],
    ids=['incomplete', 'too large', 'nothing to find'],
)
def test_wrong_processes_are_refused(
    arguments: list[str], message: str, tmp_path: pathlib.Path
) -> None:
  process = commands.start(*_RUN, f'--results={tmp_path}', *arguments)
  output, _ = process.communicate(timeout=60)
  assert process.returncode == 2, output
  assert message in output and 'Traceback' not in output


def test_alone_everything_is_at_hand() -> None:
  assert multihost.number() == 1 and multihost.is_primary()
  tree = {'a': np.array([-0.0, np.nan], np.float32)}
  assert multihost.broadcast_from_primary(tree) is tree
  assert multihost.gather([3, 4]).tolist() == [[3, 4]]
