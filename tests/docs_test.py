"""The study and the commands in docs/extending.md, run as a user would."""

import importlib.util
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import venv

import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.experiments import components
from tests.helpers import commands

_PAGE = (commands.ROOT / 'docs' / 'extending.md').read_text('utf-8')
_STUDY = commands.ROOT / 'examples' / 'sines_study'
# A file's name, and the excerpts from it that follow.
_EXCERPTS = re.findall(
    r'\*\*([\w/\\]+\.\w+)\*\*\n((?:\n```(?:python|toml)\n.*?```\n)+)',
    _PAGE,
    re.S,
)
_COMMANDS = [
    line
    for block in re.findall(r'```sh\n(.*?)```', _PAGE, re.S)
    for line in block.splitlines()
]
# The lines that install, train and draw the study.
(_STUDY_COMMANDS,) = re.findall(r'```bash\n(.*?)```', _PAGE, re.S)
_NEEDED = {
    'modular_hyperteacher.launch.slurm': 'submitit',
    'modular_hyperteacher.launch.ray_cluster': 'ray',
}


@pytest.fixture(scope='module', name='folder')
def fixture_folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
  """A copy of the study, as the page asks for."""
  folder = tmp_path_factory.mktemp('extending') / 'copy'
  shutil.copytree(
      _STUDY, folder, ignore=shutil.ignore_patterns('__pycache__', 'build')
  )
  return folder


def test_the_code_on_the_page_is_that_of_the_files() -> None:
  names = [name.replace('\\', '') for name, _ in _EXCERPTS]
  for name, text in zip(names, (text for _, text in _EXCERPTS)):
    for code in re.findall(r'```\w+\n(.*?)```', text, re.S):
      assert code in (_STUDY / name).read_text('utf-8'), name
  blocks = re.findall(r'^```(?:python|toml)$', _PAGE, re.M)
  assert len(blocks) == sum(text.count('```') for _, text in _EXCERPTS) / 2
  modules = {
      path.relative_to(_STUDY).as_posix() for path in _STUDY.rglob('*.py')
  }
  assert modules - set(names) == {'sines_study/configs/__init__.py'}


def _run(folder: pathlib.Path, *arguments: str) -> str:
  result = commands.python(*arguments, cwd=folder)
  assert result.returncode == 0, result.stderr
  return result.stdout


@pytest.mark.slow
def test_components_of_ones_own_are_trained_and_resumed(
    folder: pathlib.Path,
) -> None:
  outputs = []
  for command in _COMMANDS:
    program, _, module, *arguments = shlex.split(command)
    assert program == 'python'
    needed = _NEEDED.get(module)
    if needed is None or importlib.util.find_spec(needed):
      outputs.append(_run(folder, '-m', module, *arguments))
  described = json.loads(outputs[0])
  assert [run['num_fast_params'] for run in described] == [4, 32]
  assert 'readout' in outputs[2] and '2 of them finished' in outputs[3]
  assert 'cost: 2 runs' in outputs[5]
  pattern = 'sine_readouts/laptop/*/summary.json'
  assert len(list(folder.glob(f'relu_results/{pattern}'))) == 2
  summaries = list(folder.glob(f'my_results/{pattern}'))
  assert len(summaries) == 2
  last = json.loads(summaries[0].read_text())['last']
  assert {'loss', 'r2'} <= set(last['ood'])  # decoded


@pytest.mark.slow
def test_a_model_of_ones_own_learns_from_grid_worlds(
    folder: pathlib.Path,
) -> None:
  path = folder / 'sines_study' / 'configs' / 'sine_readouts.py'
  text = path.read_text()
  task = "{'name': 'sines_study.task:make', 'num_examples': 16}"
  for old, new in (
      (task, "goals.blocks('paper')['task']"),
      ('import experiment', 'import experiment, goals'),
      ('num_outer_steps=60', 'num_outer_steps=2'),
      ('width=[4, 32]', 'width=[32]'),
  ):
    assert old in text
    text = text.replace(old, new)
  (folder / 'goals_config.py').write_text(text)
  _run(
      folder,
      *('-m', 'modular_hyperteacher.main', '--config=goals_config.py'),
      *('--results=goals_results', '--config.training.evaluate_every=2'),
  )
  assert list(folder.glob('goals_results/*/*/*/summary.json'))


@pytest.mark.slow
def test_a_study_of_another_package_is_trained_drawn_and_judged(
    folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
  # An environment that has this package, and into which the study is installed.
  venv.create(tmp_path / 'env', with_pip=True)
  (packages,) = (tmp_path / 'env').glob('lib/*/site-packages')
  known = [
      str(commands.ROOT),
      *filter(lambda p: 'site-packages' in p, sys.path),
  ]
  (packages / 'known.pth').write_text('\n'.join(known))
  study = tmp_path / 'study'
  shutil.copytree(folder, study)
  done = subprocess.run(
      ['bash', '-euc', _STUDY_COMMANDS],
      cwd=study,
      env=commands.environment(
          PATH=f'{tmp_path}/env/bin:{os.environ["PATH"]}', PYTHONPATH=''
      ),
      capture_output=True,
      text=True,
      check=False,
  )
  assert done.returncode == 0, done.stderr
  assert '"model": "sine_readout"' in done.stdout
  output = study / 'figures' / 'output'
  report = (output / 'report.html').read_text()
  assert '>Sums of sines</h2>' in report
  assert (output / 'sine_readouts.html').exists()
  table = (output / 'sine_readouts.md').read_text().splitlines()
  assert [row.split(' | ')[0] for row in table[2:]] == ['| 4', '| 32']
  assert all(row.count('±') == 2 for row in table[2:])  # Last and best loss.
  entries = json.loads((output / 'claims.json').read_text())
  (entry,) = [entry for entry in entries if entry['id'] == 'SINES-1']
  assert entry['verdict'] != 'NOT RUN' and entry['num_seeds'] == 3


@pytest.mark.parametrize('block', ['task', 'model'])
def test_configs_of_strangers_import_nothing(block: str) -> None:
  with pytest.raises(errors.UserError, match='not run code of another package'):
    components.choose({}, block, {'name': 'os:system'})
