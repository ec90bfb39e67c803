"""Many command lines of one process: importing takes seconds, a fork none."""

from collections.abc import Sequence
import json
import pathlib
import subprocess
import sys
from typing import NamedTuple

from tests.helpers import commands

_MAX_S = 60  # After these, a command counts as stuck.
_CODE = """
import importlib, json, os, runpy, signal, sys
cases = json.load(sys.stdin)
name = sys.argv[1]
module = importlib.import_module(name)
for case in cases:
  child = os.fork()
  if not child:
    signal.alarm(int(sys.argv[2]))
    for number, path in ((1, case["stdout"]), (2, case["stderr"])):
      with open(path, "w") as file:
        os.dup2(file.fileno(), number)
    sys.argv = [name] + case["argv"]
    try:
      if hasattr(module, "define_flags"):
        module.define_flags()
      if hasattr(module, "run"):
        module.run()
      else:
        command = getattr(module, "script", None) or module.command_line
        command.run(module.main)
    except SystemExit as error:
      # The first exits as a command does; taking down the interpreter takes
      # most of the time of a refusal.
      if case is cases[0] or isinstance(error.code, str):
        raise
      sys.stdout.flush()
      sys.stderr.flush()
      os._exit(error.code or 0)
  print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Done(NamedTuple):
  """How a command ended."""

  code: int
  stderr: str


def run(
    folder: pathlib.Path,
    commands_: Sequence[Sequence[str]],
    module: str = 'modular_hyperteacher.main',
) -> list[Done]:
  """Runs command lines one after the other; returns how they ended."""
  cases = [
      {
          'stdout': str(folder / f'stdout{i}'),
          'stderr': str(folder / f'stderr{i}'),
          'argv': list(argv),
      }
      for i, argv in enumerate(commands_)
  ]
  done = subprocess.run(
      [sys.executable, '-c', _CODE, module, str(_MAX_S)],
      input=json.dumps(cases),
      cwd=commands.ROOT,
      env=commands.environment(),
      capture_output=True,
      text=True,
      check=True,
      timeout=600 + len(cases),
  )
  return [
      Done(int(code), pathlib.Path(case['stderr']).read_text(encoding='utf-8'))
      for code, case in zip(done.stdout.split(), cases, strict=True)
  ]


def assert_refused(
    folder: pathlib.Path,
    commands_: Sequence[Sequence[str]],
    messages: Sequence[str],
    module: str,
) -> None:
  """Asserts that all commands say just `error: message...`, with code 2."""
  ended = run(folder, commands_, module)
  for done, message in zip(ended, messages, strict=True):
    assert done.code == 2, (message, done)
    assert done.stderr.startswith(f'error: {message}'), done.stderr
    assert done.stderr.count('\n') == 1, done.stderr
