"""Whatever files hold, reading them ends well or in one line, and inside."""

from collections.abc import Callable
import json
import pathlib
import shutil
from typing import Any

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.figures.library import bundles
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.pretrained import loading
from modular_hyperteacher.pretrained import weights
from modular_hyperteacher.runs import locks
from modular_hyperteacher.runs import records
from modular_hyperteacher.runs import run_folder
from tests.fuzz import mutations
from tests.fuzz import settings
from tests.helpers import made_up

_LIKE = {'w': np.zeros((1, 3), np.float32)}
_LOCK = '.lock-0.json'
_FILES = (
    'own/config.json',
    'own/summary.json',
    'own/provenance.json',
    'own/metrics.csv',
    f'own/{_LOCK}',
    'bundle/results.csv.gz',
    'bundle/curves.csv.gz',
    'bundle/provenance.json',
    'bundle/parameters/index.json',
    'bundle/parameters/npz',
)


@pytest.fixture(scope='module', name='sound')
def fixture_sound(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
  """A folder with a run, its bundle with parameters, and a file to be kept."""
  root = tmp_path_factory.mktemp('sound')
  (root / 'precious.npz').write_text('kept')
  made_up.write_runs(
      root / 'own', {('anil', 'random'): 0.6}, 'smoke', (1,), (0.0,)
  )
  (run,) = root.glob('own/*/*/*')
  folder = root / 'bundle' / 'fig3b' / 'smoke'
  bundles.write_bundle(run.parent, folder)
  lock = {'host': 'h', 'machine': None, 'pid': 5, 'started': '1'}
  (run / _LOCK).write_text(json.dumps(lock))
  weights.write(
      folder / 'parameters', run.name, kind='last', seeds=[1], meta_params=_LIKE
  )
  return root


def _path(root: pathlib.Path, name: str) -> pathlib.Path:
  """Returns where a file of _FILES is."""
  source, _, rest = name.partition('/')
  place = root / source / 'fig3b' / 'smoke'
  (run,) = (root / 'own' / 'fig3b' / 'smoke').glob('*')
  if rest.endswith('npz'):
    return place / 'parameters' / f'{run.name}.npz'
  return (place / run.name if source == 'own' else place) / rest


def _read_all(root: pathlib.Path) -> None:
  """Reads everything as the commands do; errors of ours are fine."""
  (run,) = (root / 'own' / 'fig3b' / 'smoke').glob('*')
  folder = run_folder.RunFolder(run)
  bundle = root / 'bundle' / 'fig3b' / 'smoke'
  library = data.Library(root / 'own', root / 'bundle')
  cells.read(library, 'fig3b', ['model.name', 'task.task_support'])
  library.curves('fig3b')
  bundles.read_curves(bundle)
  loading.available(root / 'own', root / 'bundle')
  steps: list[Callable[[], Any]] = [
      lambda: folder.check({}),
      lambda: locks.Locks().holder(folder),
      lambda: locks.Locks().acquire(folder),
      lambda: weights.read(bundle / 'parameters', run.name, _LIKE),
      lambda: weights.remove(
          bundle / 'parameters', weights.read_index(bundle / 'parameters')
      ),
      lambda: bundles.write_bundle(run.parent, bundle),
  ]
  for step in steps:
    try:
      step()
    except (errors.UserError, errors.MachineError) as error:
      assert '\n' not in str(error)


def _attack(sound: pathlib.Path, case: st.DataObject) -> None:
  root = sound.with_name('attacked')
  shutil.rmtree(root, ignore_errors=True)
  shutil.copytree(sound, root)
  name = case.draw(st.sampled_from(_FILES))
  path = _path(root, name)
  content = path.read_bytes()
  if name.endswith('json') and case.draw(st.booleans()):
    tree = case.draw(mutations.damaged(json.loads(content)))
    content = json.dumps(tree).encode('utf-8', 'surrogatepass')
  else:
    content = case.draw(mutations.damaged_bytes(content))
  kind = case.draw(
      st.sampled_from(['file'] * 6 + ['missing', 'link', 'folder'])
  )
  path.unlink()
  if kind == 'file':
    path.write_bytes(content)
  elif kind == 'link':
    path.symlink_to(root / 'precious.npz')
  elif kind == 'folder':
    path.mkdir()
  outside = set(root.parent.iterdir())
  _read_all(root)
  assert (root / 'precious.npz').read_text() == 'kept'
  assert set(root.parent.iterdir()) == outside


@settings.FEWER
@hypothesis.given(st.data())
def test_damaged_files(sound: pathlib.Path, case: st.DataObject) -> None:
  _attack(sound, case)


@pytest.mark.slow
@settings.MANY
@hypothesis.given(st.data())
def test_many_damaged_files(sound: pathlib.Path, case: st.DataObject) -> None:
  _attack(sound, case)


def test_sound_files_are_read(
    sound: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
  """Or else the tests above would prove nothing."""
  library = data.Library(sound / 'own', sound / 'bundle')
  assert len(library.curves('fig3b')) and not capsys.readouterr().err
  (run,) = (sound / 'own' / 'fig3b' / 'smoke').glob('*')
  parameters = sound / 'bundle' / 'fig3b' / 'smoke' / 'parameters'
  np.testing.assert_array_equal(
      weights.read(parameters, run.name, _LIKE)['w'], _LIKE['w']
  )
  folder = run_folder.RunFolder(run)
  config = folder.read('config.json', records.Config)
  assert config and config['model']['name'] == 'anil'
