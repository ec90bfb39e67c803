"""What a user must know of a run is told: divergence, other hardware."""

import json
import pathlib
import re
import subprocess
from typing import Any

import pytest

from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.paper import fig3b
from modular_hyperteacher.runs import provenance
from tests.helpers import made_up
from tests.helpers import training


@pytest.mark.slow
def test_a_diverged_run_is_marked(tmp_path: pathlib.Path) -> None:
  """In its summary, in the table, and below the figure."""
  done = training.run(
      *training.ONE_RUN,
      f'--results={tmp_path}',
      '--config.models.maml.outer.learning_rate=1e30',
      '--config.models.maml.outer.max_consecutive_skips=0',
  )
  assert done.returncode == 0, done.stderr
  (path,) = tmp_path.glob('fig3b/smoke/*/summary.json')
  summary = json.loads(path.read_text())
  assert summary['diverged'] == summary['seeds']
  (row,) = [
      line
      for line in done.stdout.splitlines()
      if line.strip().startswith('maml') and 'random' in line
  ]
  assert row.split()[2:5] == ['diverged'] * 3
  figure, table = fig3b.draw(data.Library(tmp_path, tmp_path / 'nothing'))
  assert 'Diverged, and left out of the means' in made_up.texts(figure)
  assert path.parent.name in made_up.texts(figure)
  assert table['ood_mean'].isna().all()


@pytest.mark.parametrize(
    'field',
    ['num_cores', 'num_devices', 'processor', 'device_kind', 'num_processes'],
)
def test_what_decides_the_last_bits_is_compared(field: str) -> None:
  before = provenance.describe()
  assert not provenance.changes(before, provenance.describe())
  (told,) = provenance.changes(before, {**before, field: 'other'})
  assert told == f'{field} is other, was {before[field]}'
  # Sessions of earlier versions recorded fewer fields.
  del before[field]
  assert not provenance.changes(before, {**before, field: 'other'})


def test_another_version_of_jax_is_told() -> None:
  before = provenance.describe()
  versions = {**before['versions'], 'jax': '0.1', 'optax': '0.1'}
  told = provenance.changes(before, {**before, 'versions': versions})
  assert told == [f'jax is 0.1, was {before["versions"]["jax"]}']


def _commit(folder: pathlib.Path) -> None:
  for arguments in (
      ['init', '-q'],
      ['add', '.'],
      ['-c', 'user.name=a', '-c', 'user.email=b', 'commit', '-qm', 'one'],
  ):
    subprocess.run(['git', *arguments], cwd=folder, check=True)


def test_a_commit_says_whether_files_differ(tmp_path: pathlib.Path) -> None:
  assert (provenance.ROOT / 'main.py').exists()  # All code.
  assert provenance.commit(tmp_path) is None
  source = tmp_path / 'models' / 'maml.py'
  source.parent.mkdir()
  source.write_text('one')
  _commit(tmp_path)
  commit = provenance.commit(tmp_path)
  assert commit is not None and re.fullmatch('[0-9a-f]{12}', commit)
  source.write_text('two')
  assert provenance.commit(tmp_path) == f'{commit}+'
  # Code that a link in the folder points to counts, its data does not.
  source.write_text('one')
  package = source.parent
  (tmp_path / 'studies').mkdir()
  (package / 'studies').symlink_to('../studies')
  _commit(tmp_path)
  clean = provenance.commit(package)
  assert clean is not None and not clean.endswith('+')
  (tmp_path / 'studies' / 'results.csv').write_text('1')
  assert provenance.commit(package) == clean
  (tmp_path / 'studies' / 'rule.py').write_text('x = 1')
  assert provenance.commit(package) == f'{clean}+'
  # Such as a wheel that is installed into an environment inside.
  (tmp_path / 'installed').mkdir()
  assert provenance.commit(tmp_path / 'installed') is None


def test_a_clone_of_another_user_is_told(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
  def refuse(*arguments: Any) -> str:
    told = 'fatal: detected dubious ownership in repository'
    raise subprocess.CalledProcessError(128, 'git', stderr=told)

  monkeypatch.setattr(provenance, '_git', refuse)
  for _ in range(2):
    assert provenance.commit(tmp_path) is None
  told = capsys.readouterr().err
  assert told.count('the commit is not recorded, as another user owns') == 1


@pytest.mark.slow
def test_resuming_on_other_hardware_is_told(tmp_path: pathlib.Path) -> None:
  """And the run is finished all the same."""
  arguments = [*training.ONE_RUN, f'--results={tmp_path}']
  first = training.run(*arguments, '--config.training.num_outer_steps=60')
  assert first.returncode == 0, first.stderr
  assert 'warning' not in first.stderr
  (folder,) = tmp_path.glob('fig3b/smoke/*')
  path = folder / 'provenance.json'
  stored = json.loads(path.read_text())
  for session in stored['sessions']:
    session['num_cores'] += 1
  path.write_text(json.dumps(stored))
  (folder / 'summary.json').unlink()
  again = training.run(*arguments)
  assert again.returncode == 0, again.stderr
  assert 'num_cores is' in again.stderr
  assert 'not bit for bit' in again.stderr
