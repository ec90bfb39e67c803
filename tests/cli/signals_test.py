"""Ctrl-C and SIGTERM are answered at once, whatever a run is doing."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.helpers import commands

# Idle cores need less than 2 s; those that run tests may need more.
_MAX_S = 10


def _start(
    *arguments: str, config: str, module: str = 'modular_hyperteacher.main'
) -> subprocess.Popen:
  return subprocess.Popen(
      [sys.executable, '-m', module, f'--config={config}', *arguments],
      cwd=commands.ROOT,
      env=commands.environment(),
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      # Under nohup, tests run in a process that ignores it.
      preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
  )


def _read_until(process: subprocess.Popen, text: bytes) -> bytes:
  assert process.stdout is not None
  output = b''
  while text not in output:
    assert process.poll() is None, output
    output += os.read(process.stdout.fileno(), 1000)
  return output


def _stop(
    process: subprocess.Popen, number: signal.Signals, tmp_path: pathlib.Path
) -> str:
  """Returns what is said after a signal; asserts that it takes no time."""
  started = time.monotonic()
  process.send_signal(number)
  try:
    output = process.communicate(timeout=120)[0].decode()
  finally:
    process.kill()  # Has no effect on a process that has ended.
  took = time.monotonic() - started
  (tmp_path / 'took').write_text(f'{took:.2f}')
  assert took < _MAX_S, output
  assert 'Traceback' not in output
  return output


def _imports_jax(pid: int | str) -> bool:
  return 'jaxlib' in pathlib.Path(f'/proc/{pid}/maps').read_text(
      encoding='utf-8'
  )


@pytest.mark.parametrize(
    'module', ['modular_hyperteacher.main', 'launch.local', 'launch.campaign']
)
def test_ctrl_c_before_anything_began(
    tmp_path: pathlib.Path, module: str
) -> None:
  process = _start(
      f'--results={tmp_path}/results', config='configs/fig3b.py', module=module
  )
  commands.wait_until(lambda: _imports_jax(process.pid), process)
  output = _stop(process, signal.SIGINT, tmp_path)
  assert process.returncode == 130
  assert output == 'SIGINT: stopped before anything was started.\n'
  assert not (tmp_path / 'results').exists()


def test_ctrl_c_before_a_worker_began(tmp_path: pathlib.Path) -> None:
  process = _start(
      f'--results={tmp_path}/results',
      '--compilation_cache=',
      config='tests/helpers/small_sweep.py',
      module='launch.local',
  )
  tasks = pathlib.Path(f'/proc/{process.pid}/task')
  commands.wait_until(
      lambda: any(
          _imports_jax(child)
          for path in tasks.glob('*/children')
          for child in path.read_text().split()
      ),
      process,
  )
  output = _stop(process, signal.SIGINT, tmp_path)
  assert process.returncode == 130
  assert output.endswith('SIGINT: saved; run the same command to resume.\n')


@pytest.mark.slow
@pytest.mark.parametrize(
    'number, code',
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 0),
        (signal.SIGHUP, 0),  # A terminal that is closed sends it.
    ],
)
def test_while_compiling(
    tmp_path: pathlib.Path, number: signal.Signals, code: int
) -> None:
  process = _start(
      f'--results={tmp_path}/results',
      '--config.execution.optimise=True',
      config='configs/fig3b.py',
  )
  _read_until(process, b' 0/3000')
  time.sleep(1)
  output = _stop(process, number, tmp_path)
  assert process.returncode == code
  assert output.rstrip().endswith('saved; run the same command to resume.')
  assert set(re.findall(' ([0-9]+)/3000', output)) <= {'0'}


@pytest.mark.slow
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_while_a_step_takes_long(
    tmp_path: pathlib.Path, number: signal.Signals
) -> None:
  """A step of a thousand times the tasks; the next run resumes."""
  arguments = (
      f'--results={tmp_path}/results',
      '--only=model=maml',
      '--only=task_support=random',
      '--config.training.meta_batch_size=32768',
      '--config.execution.task_chunk_size=32',
      '--host_devices=1',
  )
  process = _start(*arguments, config='configs/fig3b.py')
  _read_until(process, b' 0/3000')
  time.sleep(30)  # Compiled, and in its first steps.
  output = _stop(process, number, tmp_path)
  assert process.returncode == (130 if number == signal.SIGINT else 0)
  assert output.rstrip().endswith('saved; run the same command to resume.')
