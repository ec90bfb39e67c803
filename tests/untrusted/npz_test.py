"""Files of strangers cannot execute, nor take more memory than expected."""

import io
import pathlib
import struct
import tracemalloc
from typing import Any
import zipfile

import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher.untrusted import npz

_EXPECTED = {'x': npz.Expected((2, None), 'f', max_bytes=2**20)}


def _array(
    shape: tuple[int, ...], dtype: str = '<f4', content: bytes = b''
) -> bytes:
  """Returns an .npy file that claims a shape and dtype, whatever it holds."""
  buffer = io.BytesIO()
  header = {'descr': dtype, 'fortran_order': False, 'shape': shape}
  np.lib.format.write_array_header_1_0(buffer, header)
  return buffer.getvalue() + content


def _write(
    path: pathlib.Path,
    content: bytes,
    name: str = 'x.npy',
    method: int = zipfile.ZIP_DEFLATED,
) -> pathlib.Path:
  with zipfile.ZipFile(path, 'w', method) as archive:
    archive.writestr(name, content)
  return path


@pytest.mark.parametrize('save', [np.savez, np.savez_compressed])
@pytest.mark.parametrize('order', ['C', 'F'])
def test_arrays_are_read_as_they_were_saved(
    tmp_path: pathlib.Path, save: Any, order: Any
) -> None:
  x = np.asarray(np.random.default_rng(0).normal(size=(2, 3)), order=order)
  save(tmp_path / 'file.npz', x=x, other=np.array([object()]))
  read = npz.read(tmp_path / 'file.npz', _EXPECTED)
  assert set(read) == {'x'}
  np.testing.assert_array_equal(read['x'], x)


@pytest.mark.parametrize(
    'content, message',
    [
        (
            _array((3, 4)),
            r'shape \[3, 4\]; it must be floats of shape \[2, any',
        ),
        (_array((2,)), r'shape \[2\]; it must be'),
        (_array((2, 2), '|O'), 'dtype object'),
        (_array((2, 2), '<i4'), 'dtype int32'),
        (_array((2, 10**12)), '8000000000000 bytes; the maximum is 1048576'),
        (_array((2, 10**30)), 'the maximum is 1048576'),
        (_array((2, -1)) + bytes(2**21), r'shape \[2, -1\]; it must be'),
        (_array((2, 3), content=bytes(4)), 'is cut short'),
        (b'no array', r'cannot be read as an .npz file \(ValueError\)'),
        (b'\x93NUMPY\x01\x00\xff\xff' + b' ' * 65535, 'cannot be read'),
    ],
)
def test_arrays_that_are_not_expected_are_refused(
    tmp_path: pathlib.Path, content: bytes, message: str
) -> None:
  path = _write(tmp_path / 'file.npz', content)
  with pytest.raises(errors.UserError, match=message):
    npz.read(path, _EXPECTED)


@pytest.mark.parametrize(
    'header',
    ["{'descr': (", '"""', "{'descr': ()}", '{[]: 1}', "{1: 1, 'a': 2}"],
)
def test_headers_that_are_no_headers_are_refused(
    tmp_path: pathlib.Path, header: str
) -> None:
  text = header.encode().ljust(64) + b'\n'
  content = b'\x93NUMPY\x01\x00' + struct.pack('<H', len(text)) + text
  with pytest.raises(errors.UserError, match='cannot be read as an .npz file'):
    npz.read(_write(tmp_path / 'file.npz', content), _EXPECTED)


def test_a_bomb_costs_no_memory(tmp_path: pathlib.Path) -> None:
  bomb = _array((2, 3)) + bytes(2**26)
  path = _write(tmp_path / 'file.npz', bomb)
  assert path.stat().st_size < 2**18
  tracemalloc.start()
  assert npz.read(path, _EXPECTED)['x'].shape == (2, 3)
  _, peak = tracemalloc.get_traced_memory()
  tracemalloc.stop()
  assert peak < 2**20


def test_archives_that_numpy_does_not_write_are_refused(
    tmp_path: pathlib.Path,
) -> None:
  array = _array((2, 1), content=bytes(8))
  bzip = _write(tmp_path / 'b.npz', array, method=zipfile.ZIP_BZIP2)
  unnamed = _write(tmp_path / 'u.npz', array, name='y.npy')
  many = tmp_path / 'm.npz'
  with zipfile.ZipFile(many, 'w') as archive:
    for i in range(1025):
      archive.writestr(f'{i}.npy', array)
  cut = tmp_path / 'c.npz'
  cut.write_bytes(bzip.read_bytes()[:-1])
  wide = tmp_path / 'w.npz'
  whole = _write(tmp_path / 'x.npz', array).read_bytes()
  locator = struct.pack('<4sLQL', b'PK\x06\x07', 0, 0, 1)
  wide.write_bytes(whole[:-22] + locator + whole[-22:])
  empty = tmp_path / 'e.npz'
  empty.touch()
  for path, message in (
      (bzip, 'a compression method'),
      (unnamed, "array 'x' is missing"),
      (many, 'too many members; the maximum is 1024'),
      (cut, 'is not an .npz file, or it is cut short'),
      (wide, 'is not an .npz file, or it is cut short'),
      (empty, 'cannot be read as an .npz file'),
      (tmp_path, 'is not a file'),
      (tmp_path / 'none.npz', 'is not a file'),
  ):
    with pytest.raises(errors.UserError, match=message):
      npz.read(path, _EXPECTED)


@pytest.mark.parametrize(
    'num_members, moved, message',
    [
        (2, 0, None),
        (2, 1, 'is not an .npz file'),
        (2, -1, 'is not an .npz file'),
        (1025, 0, 'too many members; the maximum is 1024'),
    ],
)
def test_64_bit_sizes_are_checked_as_others_are(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    num_members: int,
    moved: int,
    message: str | None,
) -> None:
  monkeypatch.setattr(zipfile, 'ZIP_FILECOUNT_LIMIT', 1)
  path = tmp_path / 'file.npz'
  x = np.ones((2, 3))
  names = ['x', *map(str, range(num_members - 1))]
  path.write_bytes(files.encode_arrays({name: x for name in names}))
  content = bytearray(path.read_bytes())
  assert content[-42:-38] == b'PK\x06\x07'
  content[-14:-12] = bytes(2)  # The number that others read.
  (place,) = struct.unpack('<Q', content[-34:-26])
  content[-34:-26] = struct.pack('<Q', place + moved)
  path.write_bytes(content)
  if message is None:
    np.testing.assert_array_equal(npz.read(path, _EXPECTED)['x'], x)
  else:
    with pytest.raises(errors.UserError, match=message):
      npz.read(path, _EXPECTED)


def test_damaged_bytes_are_refused_or_read(tmp_path: pathlib.Path) -> None:
  """Any byte may be wrong: the answer is an array or a UserError."""
  np.savez_compressed(tmp_path / 'file.npz', x=np.ones((2, 3)))
  content = (tmp_path / 'file.npz').read_bytes()
  refused = 0
  for index in range(len(content)):
    damaged = bytearray(content)
    damaged[index] ^= 0xFF
    (tmp_path / 'damaged.npz').write_bytes(damaged)
    try:
      npz.read(tmp_path / 'damaged.npz', _EXPECTED)
    except errors.UserError:
      refused += 1
  assert refused > len(content) / 2
