"""Starting the command line in processes of its own; shared by tests."""

from collections.abc import Callable
import os
import pathlib
import socket
import subprocess
import sys
import time
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]


def environment(**variables: str) -> dict[str, str]:
  """Returns the environment without conftest's eight devices."""
  flags = os.environ.get('XLA_FLAGS', '').split()
  kept = ' '.join(flag for flag in flags if 'device_count' not in flag)
  return os.environ | {'XLA_FLAGS': kept} | variables


def start(
    *arguments: object,
    module: str = 'modular_hyperteacher.main',
    **options: Any,
) -> subprocess.Popen:
  """Starts a module's command line; stdout and stderr come as one."""
  variables = options.pop('variables', {})
  return subprocess.Popen(
      [sys.executable, '-m', module, *map(str, arguments)],
      cwd=options.pop('cwd', ROOT),
      env=environment(**variables),
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      text=True,
      **options,
  )


def python(
    *arguments: object, cwd: pathlib.Path = ROOT, **variables: str
) -> subprocess.CompletedProcess[str]:
  """Runs Python to its end; stdout and stderr stay apart."""
  if cwd != ROOT:  # In it, commands run as in a checkout.
    paths = str(ROOT), os.environ.get('PYTHONPATH')
    variables = {'PYTHONPATH': os.pathsep.join(filter(None, paths))} | variables
  return subprocess.run(
      [sys.executable, *map(str, arguments)],
      cwd=cwd,
      env=environment(**variables),
      capture_output=True,
      text=True,
      check=False,
      timeout=300,
  )


def finish(process: subprocess.Popen, timeout: float = 240) -> str:
  """Waits for success; returns the output."""
  output, _ = process.communicate(timeout=timeout)
  assert process.returncode == 0, output
  return output


def run(*arguments: object, **options: Any) -> str:
  """Runs a module's command line to its success; returns the output."""
  return finish(start(*arguments, **options))


def wait_until(
    condition: Callable[[], object],
    *running: subprocess.Popen,
    timeout: float = 120,
    poll: float = 0.02,
) -> None:
  """Waits for a condition, while all of these processes live."""
  deadline = time.monotonic() + timeout
  while not condition():
    for process in running:
      assert process.poll() is None, process.communicate()[0]
    assert time.monotonic() < deadline
    time.sleep(poll)


def free_port() -> int:
  """Returns a port of this machine that nobody listens on."""
  with socket.socket() as listener:
    listener.bind(('localhost', 0))
    return listener.getsockname()[1]


def run_folder(results: pathlib.Path) -> pathlib.Path:
  """Returns the folder of the only run in these results."""
  (config,) = results.glob('*/*/*/config.json')
  return config.parent
