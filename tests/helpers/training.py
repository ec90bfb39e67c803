"""Runs of the training command to their end; shared by tests."""

import pathlib
import re
import subprocess
import sys

from tests.helpers import commands

_MAIN = ('-m', 'modular_hyperteacher.main')
ONE_RUN = (
    '--only=model=maml',
    '--only=task_support=random',
    '--config.training.num_outer_steps=60',
    '--config.training.evaluate_every=20',
    '--config.execution.log_every=20',
)


def command(
    *arguments: str, config: str = 'configs/fig3b.py:smoke'
) -> list[str]:
  return [*(sys.executable, *_MAIN), f'--config={config}', *arguments]


def run(
    *arguments: str, config: str = 'configs/fig3b.py:smoke'
) -> subprocess.CompletedProcess[str]:
  return commands.python(*_MAIN, f'--config={config}', *arguments)


def assert_refused(code: int, stderr: str, message: str) -> None:
  lines = stderr.strip().splitlines()
  assert code == 2, stderr
  assert lines[-1].startswith('error: '), stderr
  assert re.search(message, lines[-1]), lines[-1]
  assert 'Traceback' not in stderr


def files(folder: pathlib.Path) -> list[str]:
  return sorted(str(p) for p in folder.rglob('*')) if folder.exists() else []
