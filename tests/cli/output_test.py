"""Commands end quietly when the reader of their output leaves."""

import subprocess
import sys

import pytest

from tests.helpers import commands


@pytest.mark.slow
@pytest.mark.parametrize(
    'command',
    [
        ['-m', 'modular_hyperteacher.worlds', 'list'],
        ['-m', 'modular_hyperteacher.main', '--help'],
        ['figures/make_all.py', '--help'],
    ],
    ids=lambda command: command[-2],
)
def test_nobody_reads_the_output(command: list[str]) -> None:
  with subprocess.Popen(
      [sys.executable, *command],
      cwd=commands.ROOT,
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
  ) as process:
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ''
  assert process.returncode == 0
