"""One run on one device, on eight, and on two processes with four each."""

import os
import pathlib
import re
import signal

import numpy as np
import pandas as pd
import pytest

from modular_hyperteacher import locks
from modular_hyperteacher import processes
from modular_hyperteacher import results
from tests import commands

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
def fixture_cache(tmp_path_factory):
  """Compiled programs, so that starting again takes no minutes."""
  return {
      'JAX_COMPILATION_CACHE_DIR': str(tmp_path_factory.mktemp('cache')),
      'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0.1',
  }


def _start_two(results, cache):
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
def fixture_unbroken(tmp_path_factory, cache):
  """The results folder of two processes that nobody disturbed."""
  results = tmp_path_factory.mktemp('two')
  for process in _start_two(results, cache):
    commands.finish(process)
  return results


@pytest.mark.parametrize('num_devices', [1, 8])
def test_curves_do_not_depend_on_devices_and_processes(
    unbroken, tmp_path, num_devices, cache
):
  commands.run(
      *_RUN,
      f'--results={tmp_path}',
      f'--host_devices={num_devices}',
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


def test_the_first_process_alone_writes(unbroken):
  assert not (unbroken / '1').exists()


@pytest.mark.launch
@pytest.mark.parametrize('stop', [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_loses_a_process_is_restarted(
    unbroken, tmp_path, cache, stop
):
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


def _handles(process, number):
  """Whether a process has a handler for a signal by now."""
  status = pathlib.Path(f'/proc/{process.pid}/status').read_text()
  caught = re.search('SigCgt:\t([0-9a-f]+)', status).group(1)
  return int(caught, 16) >> (number - 1) & 1


@pytest.mark.launch
def test_processes_that_wait_for_a_run_leave_together(
    unbroken, tmp_path, cache
):
  name = commands.run_folder(unbroken / '0').relative_to(unbroken / '0')
  lock = locks.Locks().acquire(results.RunFolder(tmp_path / '0' / name))
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
def test_wrong_processes_are_refused(arguments, message, tmp_path):
  process = commands.start(*_RUN, f'--results={tmp_path}', *arguments)
  output, _ = process.communicate(timeout=60)
  assert process.returncode == 2, output
  assert message in output and 'Traceback' not in output


def test_alone_everything_is_at_hand():
  assert processes.number() == 1 and processes.is_first()
  tree = {'a': np.array([-0.0, np.nan], np.float32)}
  assert processes.from_first(tree) is tree
  assert processes.gather([3, 4]).tolist() == [[3, 4]]
