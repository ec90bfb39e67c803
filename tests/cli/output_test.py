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


@pytest.mark.parametrize(
    'is_read, unbuffered, body, code, message',
    [
        (False, '', 'print("x")', 0, ''),
        (False, '', 'print("x" * 2**20)', 0, ''),
        (False, '1', 'print("x")', 0, ''),
        (False, '', 'print("x"); raise RuntimeError("boom")', 1, 'boom'),
        (False, '', 'print("x"); sys.exit(2)', 2, ''),
        (False, '', 'print("x"); sys.exit(0)', 0, ''),
        (True, '', 'print("x")', 0, ''),
        (True, '', 'raise BrokenPipeError("another")', 1, 'another'),
        (True, '1', 'raise BrokenPipeError("another")', 1, 'another'),
    ],
)
def test_only_a_reader_that_leaves_ends_a_command_quietly(
    is_read: bool, unbuffered: str, body: str, code: int, message: str
) -> None:
  program = (
      'import sys; from modular_hyperteacher.cli import output\n'
      f'with output.until_closed(): {body}'
  )
  with subprocess.Popen(
      [sys.executable, '-c', program],
      cwd=commands.ROOT,
      env=commands.environment(PYTHONUNBUFFERED=unbuffered),
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
  ) as process:
    assert process.stdout is not None and process.stderr is not None
    if not is_read:
      process.stdout.close()
    error = process.stderr.read()
  assert process.returncode == code
  assert message in error if message else not error
