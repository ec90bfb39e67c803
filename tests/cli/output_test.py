"""Commands whose output cannot be written: unread, closed, full."""

import pathlib
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


@pytest.mark.slow
@pytest.mark.parametrize(
    'place, reason', [('/dev/full', 'No space'), ('&-', 'it')]
)
def test_commands_tell_that_output_is_lost(place: str, reason: str) -> None:
  for command in (
      '-m modular_hyperteacher.worlds list',
      '-m modular_hyperteacher.main --config=configs/fig3b.py:smoke --describe',
      '-m launch.local --help',
      'figures/make_all.py --help',
  ):
    done = subprocess.run(
        ['bash', '-c', f'{sys.executable} {command} >{place}'],
        cwd=commands.ROOT,
        env=commands.environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    assert f'output cannot be written: {reason}' in done.stderr
    assert 'Traceback' not in done.stderr


_LOST = 'error: standard output cannot be written: {}. What was printed is lost'
_FULL = _LOST.format('No space left on device')
_CLOSED = _LOST.format('it is closed')


@pytest.mark.parametrize(
    'shell, body, code, message',
    [
        # A reader that leaves: the work is finished all the same.
        ('{} | true', 'print("x"); end()', 0, ''),
        ('{} | true', 'print("x" * 2**20); end()', 0, ''),
        ('export PYTHONUNBUFFERED=1; {} | true', 'print("x"); end()', 0, ''),
        ('{} 2>&1 | true', 'sys.stderr.write("x" * 2**20); end()', 0, ''),
        ('{} | true', 'print("x"); raise RuntimeError("boom")', 1, 'boom'),
        ('{} | true', 'print("x"); sys.exit(2)', 2, ''),
        ('{} | cat', 'print("x"); end()', 0, ''),
        ('{} | cat', 'raise BrokenPipeError("another")', 1, 'another'),
        # Nobody asked for less.
        ('{} > /dev/full', 'print("x"); end()', 1, _FULL),
        ('{} > /dev/full', 'print("x" * 2**20); end()', 1, _FULL),
        ('{} > /dev/full', 'print("x"); sys.exit(2)', 2, _FULL),
        ('{} >&-', 'print("x"); sys.stdout.flush(); end()', 1, _CLOSED),
        ('{} >&-', 'end()', 1, _CLOSED),
        ('{} 2>&-', 'print("x", file=sys.stderr); end()', 0, ''),
        ('{} 2> /dev/full', 'sys.stderr.write("x" * 2**20); end()', 0, ''),
        # What the terminal cannot show.
        (
            'export PYTHONIOENCODING=ascii; {} | grep -q ?x',
            'print("±x"); end()',
            0,
            '',
        ),
    ],
)
def test_work_goes_on_without_output(
    tmp_path: pathlib.Path, shell: str, body: str, code: int, message: str
) -> None:
  program = (
      'import pathlib, sys; from modular_hyperteacher.cli import output\n'
      'end = pathlib.Path("ended").touch\n'
      f'with output.guarded(): {body}'
  )
  command = f"{sys.executable} -c '{program}'"
  shell = shell.format(f'({command}; echo $? > code; exit $(cat code))')
  done = subprocess.run(
      ['bash', '-c', shell],
      cwd=tmp_path,
      env=commands.environment(PYTHONPATH=str(commands.ROOT)),
      stderr=subprocess.PIPE,
      text=True,
  )
  assert int((tmp_path / 'code').read_text('utf-8')) == code
  assert (tmp_path / 'ended').exists() == ('end()' in body)
  assert message in done.stderr if message else not done.stderr
