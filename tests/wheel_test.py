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


# What a user's project may hold: its own `configs`, `figures` and so on.
_OWN = {
    'configs/__init__.py': 'NAME = "own"',
    'configs/fig3b.py': 'raise RuntimeError("the wrong one")',
    'figures/__init__.py': '',
    'figures/make_all.py': 'NAME = "own"',
    'launch/__init__.py': 'NAME = "own"',
    'studies/__init__.py': 'NAME = "own"',
}
_IMPORTS = """
from modular_hyperteacher import worlds
from modular_hyperteacher.configs import fig3b
from modular_hyperteacher.launch import plan
import configs, launch, studies
from figures import make_all
names = {m.NAME for m in (configs, launch, studies, make_all)}
world = worlds.make('hyperteacher', preset='smoke')
print(world.experiment, fig3b.get_config('smoke').preset, names)
"""


def _check_beside_the_users_own(
    python: pathlib.Path, project: pathlib.Path
) -> None:
  """Runs commands in projects with folders and modules of our names."""
  for name, code in _OWN.items():
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code, 'utf-8')
  told = _run(python, '-c', _IMPORTS, cwd=project)
  assert told == "fig3b smoke {'own'}\n"
  module = project.parent / f'{project.name}_of_modules'
  module.mkdir()
  for name in ('configs', 'figures', 'launch', 'studies'):
    (module / f'{name}.py').write_text('NAME = "own"', 'utf-8')
  code = _IMPORTS.replace('from figures import make_all', 'make_all = configs')
  assert _run(python, '-c', code, cwd=module) == "fig3b smoke {'own'}\n"
  for folder in (project, module):
    listed = _run(
        python, '-m', 'modular_hyperteacher.worlds', 'list', cwd=folder
    )
    assert 'hyperteacher' in listed
    described = _run(
        *(python, '-m', 'modular_hyperteacher.main'),
        *('--config=fig3b:smoke', '--only=model=maml', '--describe'),
        cwd=folder,
    )
    assert len(json.loads(described)) == 2


@pytest.mark.slow
def test_an_editable_install_beside_the_users_own(
    tmp_path: pathlib.Path,
) -> None:
  """The tests run in one, as README.md says."""
  python = pathlib.Path(sys.executable)
  _check_beside_the_users_own(python, tmp_path / 'project')


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
      *('-m', 'modular_hyperteacher.figures.make_all', '--only=fig3b'),
      '--format=html',
      cwd=tmp_path,
  )
  assert (tmp_path / 'figures/output/report.html').exists()

  installed = programs.parent.glob('lib/python*/site-packages/*')
  names = {path.name for path in installed}
  assert not names & {'configs', 'figures', 'launch', 'studies', 'tests'}
  _check_beside_the_users_own(programs / 'python', tmp_path / 'project')

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
