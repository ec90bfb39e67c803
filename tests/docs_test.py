"""The code in docs/extending.md and docs/studies.md, run as a user would."""

import importlib.util
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import venv

import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.experiments import components
from tests.helpers import commands

_PAGE = (commands.ROOT / 'docs' / 'extending.md').read_text('utf-8')
_STUDY_PAGE = (commands.ROOT / 'docs' / 'studies.md').read_text('utf-8')
_FILES = dict(
    re.findall(r'\*\*(\w+\.py)\*\*\n\n```python\n(.*?)```', _PAGE, re.S)
)
_COMMANDS = [
    line
    for block in re.findall(r'```sh\n(.*?)```', _PAGE, re.S)
    for line in block.splitlines()
]
_FIGURE = re.findall(r'\n```python\n(.*?)```', _PAGE, re.S)[-1]
# The study: its files, and the lines that install, train and draw it.
_STUDY = re.findall(
    r'\*\*([\w/\\]+\.(?:py|toml))\*\*\n\n```\w+\n(.*?)```',
    _STUDY_PAGE,
    re.S,
)
(_STUDY_COMMANDS,) = re.findall(r'```sh\n(.*?)```', _STUDY_PAGE, re.S)
_NEEDED = {
    'modular_hyperteacher.launch.slurm': 'submitit',
    'modular_hyperteacher.launch.ray_cluster': 'ray',
}


@pytest.fixture(scope='module', name='folder')
def fixture_folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
  """The page's files, in a folder of their own."""
  folder = tmp_path_factory.mktemp('extending')
  for name, code in _FILES.items():
    (folder / name).write_text(code)
  return folder


def _run(folder: pathlib.Path, *arguments: str) -> str:
  result = commands.python(*arguments, cwd=folder)
  assert result.returncode == 0, result.stderr
  return result.stdout


@pytest.mark.slow
def test_the_page_on_extending_works(folder: pathlib.Path) -> None:
  assert set(_FILES) == {'my_sines.py', 'my_readout.py', 'my_config.py'}
  outputs = []
  for command in _COMMANDS:
    program, _, module, *arguments = shlex.split(command)
    assert program == 'python'
    needed = _NEEDED.get(module)
    if needed is None or importlib.util.find_spec(needed):
      outputs.append(_run(folder, '-m', module, *arguments))
  (described,) = json.loads(outputs[0])
  assert described['num_fast_params'] == 32
  assert 'readout' in outputs[2] and '1 of them finished' in outputs[3]
  assert 'cost: 1 runs' in outputs[5]
  summaries = list(folder.glob('my_results/sines/laptop/*/summary.json'))
  assert len(summaries) == 2
  last = json.loads(summaries[0].read_text())['last']
  assert {'loss', 'r2'} <= set(last['ood'])  # decoded
  _run(folder, '-c', _FIGURE)
  drawn = (folder / 'sines.html').read_text()
  assert all(path.parent.name in drawn for path in summaries)


@pytest.mark.slow
def test_a_model_of_ones_own_learns_from_grid_worlds(
    folder: pathlib.Path,
) -> None:
  text = _FILES['my_config.py']
  text = text.replace("{'name': 'my_sines:make', 'num_examples': 16}", 'None')
  text = text.replace('task=task', "task=goals.blocks('paper')['task']")
  text = text.replace('import experiment', 'import experiment, goals')
  text = text.replace('num_outer_steps=60', 'num_outer_steps=2')
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
  for name, text in _STUDY:
    path = folder / name.replace('\\', '')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
  # An environment that has this package, and into which the study is installed.
  venv.create(tmp_path / 'env', with_pip=True)
  (packages,) = (tmp_path / 'env').glob('lib/*/site-packages')
  known = [
      str(commands.ROOT),
      *filter(lambda p: 'site-packages' in p, sys.path),
  ]
  (packages / 'known.pth').write_text('\n'.join(known))
  done = subprocess.run(
      ['bash', '-euc', _STUDY_COMMANDS],
      cwd=folder,
      env=commands.environment(
          PATH=f'{tmp_path}/env/bin:{os.environ["PATH"]}', PYTHONPATH=''
      ),
      capture_output=True,
      text=True,
      check=False,
  )
  assert done.returncode == 0, done.stderr
  output = folder / 'figures' / 'output'
  report = (output / 'report.html').read_text()
  assert '>Sums of sines</h2>' in report
  assert (output / 'sine_readouts.html').exists()
  entries = json.loads((output / 'claims.json').read_text())
  (entry,) = [entry for entry in entries if entry['id'] == 'SINES-1']
  assert entry['verdict'] != 'NOT RUN' and entry['num_seeds'] == 3


@pytest.mark.parametrize('block', ['task', 'model'])
def test_configs_of_strangers_import_nothing(block: str) -> None:
  with pytest.raises(errors.UserError, match='not run code of another package'):
    components.choose({}, block, {'name': 'os:system'})
