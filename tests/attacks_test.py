"""Files of strangers reach nothing outside of their folder, nor all memory."""

import io
import json
import os
import pathlib
import socket
import struct
from typing import Any
import zipfile

import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted
from modular_hyperteacher.figures.library import bundles
from modular_hyperteacher.pretrained import loading
from modular_hyperteacher.pretrained import weights
from modular_hyperteacher.runs import locks
from modular_hyperteacher.runs import run_folder
from tests.helpers import made_up

_LIKE = {'w': np.zeros((1, 3), np.float32)}


@pytest.fixture(name='bundle')
def fixture_bundle(tmp_path: pathlib.Path) -> pathlib.Path:
  """A bundle of one run with parameters; its run id is its only key."""
  made_up.write_runs(
      tmp_path / 'own', {('anil', 'random'): 0.6}, 'smoke', (1,), (0.0,)
  )
  (run,) = tmp_path.glob('own/*/*/*')
  folder = tmp_path / 'bundles' / 'fig3b' / 'smoke'
  bundles.write_bundle(run.parent, folder)
  weights.write(
      folder / 'parameters', run.name, kind='last', seeds=[1], meta_params=_LIKE
  )
  return folder


@pytest.mark.parametrize(
    'name',
    ['../../../precious', '{root}/precious', '.hidden', 'a\0b', 'x' * 300],
)
def test_names_stay_inside(
    bundle: pathlib.Path,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
  """`figures/bundle.py` deleted such files, and `pretrained.load` read them."""
  name = name.replace('{root}', str(tmp_path))
  precious = tmp_path / 'precious.npz'
  precious.write_text('kept')
  for path in (bundle / 'parameters/index.json', bundle / 'provenance.json'):
    tree: Any = json.loads(path.read_text())
    runs = tree.get('runs', tree)
    runs[name] = runs.pop(next(iter(runs)))
    path.write_text(json.dumps(tree))
  with pytest.raises(errors.UserError, match='must be a plain name'):
    weights.remove(bundle / 'parameters', {name})
  with pytest.raises(errors.UserError, match='must be a plain name'):
    weights.read(bundle / 'parameters', name, _LIKE)
  with pytest.raises(errors.UserError, match='must be a plain name'):
    weights.write(
        bundle / 'new', name, kind='last', seeds=[1], meta_params=_LIKE
    )
  assert loading.available(tmp_path / 'none', tmp_path / 'bundles').empty
  assert not bundles.read(bundle).runs
  assert capsys.readouterr().err.count('must be a plain name') == 2
  assert precious.read_text() == 'kept'


def test_links_are_not_followed(
    bundle: pathlib.Path, tmp_path: pathlib.Path
) -> None:
  parameters = bundle / 'parameters'
  (run_id,) = weights.read_index(parameters)
  elsewhere = tmp_path / 'elsewhere'
  parameters.rename(elsewhere)
  parameters.symlink_to(elsewhere)
  for action in (
      lambda: weights.remove(parameters, {run_id}),
      lambda: weights.read(parameters, run_id, _LIKE),
  ):
    with pytest.raises(errors.UserError, match='is a link'):
      action()
  assert (elsewhere / f'{run_id}.npz').exists()
  os.mkfifo(tmp_path / 'pipe')
  (tmp_path / 'link').symlink_to(elsewhere / f'{run_id}.npz')
  for name in ('pipe', 'link', 'elsewhere'):
    with pytest.raises(errors.UserError):
      untrusted.read_bytes(tmp_path / name)


def _npy(declared: str, content: bytes) -> bytes:
  header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {declared}}}\n"
  return (
      b'\x93NUMPY\x01\x00'
      + struct.pack('<H', len(header))
      + (header.encode() + content)
  )


def _npz(member: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
  buffer = io.BytesIO()
  with zipfile.ZipFile(buffer, 'w', method) as archive:
    archive.writestr('w.npy', member)
  return buffer.getvalue()


@pytest.mark.parametrize(
    'content',
    [
        _npz(_npy('(35184372088832,)', b'1234')),  # 2^45 floats
        _npz(_npy('(1, 13107200)', bytes(50 * 2**20))),
        _npz(_npy('(1, -3)', b'1234')),
        _npz(_npy('(1, 3)', b'1234')),
        _npz(_npy('(1, 3), __import__("os")', b'1234')),
        _npz(_npy('(1, 3)', bytes(12)))[:-9],
        _npz(_npy('(1, 3)', bytes(12)), zipfile.ZIP_LZMA),
        b'PK',
        b'',
    ],
)
def test_archives_are_checked_before_they_are_unpacked(
    bundle: pathlib.Path, content: bytes
) -> None:
  (run_id,) = weights.read_index(bundle / 'parameters')
  (bundle / 'parameters' / f'{run_id}.npz').write_bytes(content)
  with pytest.raises(errors.UserError):
    weights.read(bundle / 'parameters', run_id, _LIKE)


@pytest.mark.parametrize(
    'content',
    [
        '[]', '5', 'null', '', '{', '[' * 10**5, '\0' * 20,
        '{"host": "h", "machine": "m", "pid": "x", "started": null}',
        '{"host": "h", "machine": "MACHINE", "pid": 1e400, "started": null}',
        '{"host": "h", "machine": "MACHINE", "pid": 99999999999999999,'
        ' "started": null}',
        '{"host": "\\u001b[2J", "machine": "m", "pid": 1, "started": null}',
        '{"host": "h"}',
    ],
)  # fmt: skip
def test_locks_with_odd_content(tmp_path: pathlib.Path, content: str) -> None:
  folder = run_folder.RunFolder(tmp_path)
  text = content.replace('MACHINE', str(locks._machine()))
  (tmp_path / '.lock-0.json').write_text(text)
  held = locks.Locks(stale_s=0)
  held.holder(folder)
  held.are_alive(folder)
  lock = held.acquire(folder)  # It did not change, so nobody holds it.
  assert lock is not None
  lock.release()


@pytest.mark.parametrize('kind', ['folder', 'socket', 'link'])
def test_what_is_no_lock_is_named(
    tmp_path: pathlib.Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
  monkeypatch.chdir(tmp_path)  # The path of a socket must be short.
  path = pathlib.Path('.lock-0.json')
  if kind == 'folder':
    path.mkdir()
  elif kind == 'link':
    path.symlink_to('nowhere')
  else:
    socket.socket(socket.AF_UNIX).bind(str(path))
  with pytest.raises(errors.UserError, match='lock-0.json is not a file'):
    locks.Locks().acquire(run_folder.RunFolder(tmp_path))
