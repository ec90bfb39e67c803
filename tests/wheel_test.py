"""The package works as a wheel, away from its checkout."""

import json
import pathlib
import subprocess
import sys
import venv

import pytest

from modular_hyperteacher import pretrained
from tests.helpers import commands


def _run(*arguments: str | pathlib.Path, cwd: pathlib.Path) -> str:
  result = subprocess.run(
      list(map(str, arguments)),
      cwd=cwd,
      env=commands.environment(),
      capture_output=True,
      text=True,
  )
  assert result.returncode == 0, result.stderr
  return result.stdout


@pytest.mark.slow
def test_a_wheel_in_an_empty_environment(tmp_path: pathlib.Path) -> None:
  pip = (sys.executable, '-m', 'pip')
  _run(*pip, 'wheel', '-q', '--no-deps', '-w', tmp_path, '.', cwd=commands.ROOT)
  (wheel,) = tmp_path.glob('*.whl')
  venv.create(tmp_path / 'env', with_pip=True)
  programs = tmp_path / 'env' / 'bin'
  _run(programs / 'pip', 'install', '-q', wheel, cwd=tmp_path)

  script = (
      'from modular_hyperteacher import pretrained;'
      'found = pretrained.available();'
      "print(found.drop(columns='folder').to_csv())"
  )
  printed = _run(programs / 'python', '-c', script, cwd=tmp_path)
  expected = pretrained.available(tmp_path / 'none').drop(columns='folder')
  assert printed.strip() == expected.to_csv().strip()

  command = programs / 'modular-hyperteacher'
  assert 'Trains all runs of a config' in _run(command, '--help', cwd=tmp_path)
  described = json.loads(
      _run(
          command,
          '--config=fig3b:smoke',
          '--describe',
          cwd=tmp_path,
      )
  )
  assert len(described) == 8
  _run(
      programs / 'python',
      *('-m', 'figures.make_all', '--only=fig3b', '--format=html'),
      cwd=tmp_path,
  )
  assert (tmp_path / 'figures/output/report.html').exists()

  worlds = (programs / 'python', '-m', 'modular_hyperteacher.worlds')
  _run(
      *worlds,
      *(
          'export',
          '--world=mutual_exclusivity',
          '--split=ood',
          '--out=tasks.npz',
      ),
      cwd=tmp_path,
  )
  script = (
      'import numpy as np;'
      "tasks = np.load('tasks.npz');"
      'np.savez('
      "'zeros.npz', predictions=np.zeros((20, 20, 7), int), spec=tasks['spec'])"
  )
  _run(programs / 'python', '-c', script, cwd=tmp_path)
  printed = _run(*worlds, 'score', '--predictions=zeros.npz', cwd=tmp_path)
  assert '| zeros | mutual_exclusivity |' in printed
