"""Runs of the training command to their end; shared by tests."""

import pathlib
import re
import subprocess
import sys
from typing import Any

from tests.helpers import commands

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
  return [
      sys.executable,
      '-m',
      'modular_hyperteacher.main',
      f'--config={config}',
      *arguments,
  ]


def run(
    *arguments: str, config: str = 'configs/fig3b.py:smoke', **options: Any
) -> subprocess.CompletedProcess[str]:
  return subprocess.run(
      command(*arguments, config=config),
      cwd=commands.ROOT,
      env=commands.environment(),
      capture_output=True,
      text=True,
      check=False,
      timeout=300,
      **options,
  )


def assert_refused(code: int, stderr: str, message: str) -> None:
  lines = stderr.strip().splitlines()
  assert code == 2, stderr
  assert lines[-1].startswith('error: '), stderr
  assert re.search(message, lines[-1]), lines[-1]
  assert 'Traceback' not in stderr


def files(folder: pathlib.Path) -> list[str]:
  return sorted(str(p) for p in folder.rglob('*')) if folder.exists() else []
