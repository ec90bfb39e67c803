"""Reads arrays from .npz files of strangers, after checks of every size.

An .npz file is a zip archive of .npy files. A small file can expand to any
size, and an array of objects would be unpickled. Here an array is read only
after its header matches what the caller expects. It then needs the memory of
its expected size, and nothing is executed.
"""

from collections.abc import Mapping
import math
import pathlib
import struct
from typing import IO, NamedTuple
import zipfile

import numpy as np

from modular_hyperteacher import errors

# The last bytes of a zip archive without a comment, as NumPy writes them.
_END = struct.Struct('<4s4H2LH')
_END_MARK = b'PK\x05\x06'
# Precedes these bytes in a file of more than 4 GiB: the directory's 64-bit
# sizes, and a locator that says where they are.
_WIDE_END = struct.Struct('<4sQ2H2L4Q4sLQL')
_WIDE_MARK, _LOCATOR_MARK = b'PK\x06\x06', b'PK\x06\x07'
_LOCATOR_SIZE = 20
# Bounds, unless the caller expects more arrays.
_MAX_MEMBERS = 1024
_MAX_DIRECTORY = 2**16  # In bytes.
_ENTRY_SIZE = 80  # In bytes, of a directory's entry without its name.
_MAX_HEADER = 4096  # Characters of an array's header.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class DamagedError(errors.UserError):
  """A file that holds other arrays than expected, or none."""


class Expected(NamedTuple):
  """Requirements of an array."""

  shape: tuple[int | None, ...]  # None for an axis of any length
  kinds: str  # allowed kinds of dtype, as in `np.dtype.kind`: 'f', 'iu', ...
  max_bytes: int = 2**31  # needed if `shape` has a None


def read(
    path: pathlib.Path, expected: Mapping[str, Expected]
) -> dict[str, np.ndarray]:
  """Returns the expected arrays of a file; ignores its other members.

  Raises:
    UserError: names the file and the array that is missing or unexpected.
    MachineError: if the file system fails.
  """
  try:
    if not path.is_file():  # Neither a folder nor a pipe, which would block.
      raise errors.UserError(f'{path} is not a file.')
    with path.open('rb') as file:
      return parse(path, file, expected)
  except OSError as error:
    raise errors.unreadable(path, error) from error


def parse(
    path: pathlib.Path, file: IO[bytes], expected: Mapping[str, Expected]
) -> dict[str, np.ndarray]:
  """Returns the expected arrays of an open file; `path` is for messages.

  Raises:
    DamagedError: names the file and the array that is missing or unexpected.
    OSError: if reading fails.
  """
  try:
    _check_directory(path, file, expected)
    with zipfile.ZipFile(file) as archive:
      return {
          name: _read_array(path, archive, name, wanted)
          for name, wanted in expected.items()
      }
  except (DamagedError, MemoryError, OSError):
    raise
  # The parsers of NumPy and zipfile raise many types.
  except Exception as error:
    raise DamagedError(
        f'{path} cannot be read as an .npz file ({type(error).__name__}).'
    ) from error


def _check_directory(
    path: pathlib.Path, file: IO[bytes], expected: Mapping[str, Expected]
) -> None:
  """Checks the size of the directory, which `ZipFile` reads as a whole."""
  size = file.seek(0, 2)
  file.seek(max(size - _END.size - _WIDE_END.size, 0))
  tail = file.read()
  mark, *numbers = _END.unpack(tail[-_END.size :])
  _, _, _, num_members, directory_size, _, comment_size = numbers
  whole = mark == _END_MARK and not comment_size
  if tail[: -_END.size][-_LOCATOR_SIZE:].startswith(_LOCATOR_MARK):
    mark, *numbers = _WIDE_END.unpack(tail[: -_END.size])
    num_members, directory_size, place = numbers[6], numbers[7], numbers[11]
    # `ZipFile` looks for it here or where the locator says.
    whole &= mark == _WIDE_MARK and place == size - len(tail)
  if not whole:
    raise DamagedError(f'{path} is not an .npz file, or it is cut short.')
  most = max(_MAX_MEMBERS, len(expected))
  room = sum(_ENTRY_SIZE + len(name.encode()) for name in expected)
  if num_members > most or directory_size > max(_MAX_DIRECTORY, room):
    raise DamagedError(f'{path} has too many members; the maximum is {most}.')


def _read_array(
    path: pathlib.Path, archive: zipfile.ZipFile, name: str, wanted: Expected
) -> np.ndarray:
  where = f"{path}, array '{name}'"
  if f'{name}.npy' not in archive.namelist():
    raise DamagedError(f'{where} is missing.')
  member = archive.getinfo(f'{name}.npy')
  if member.compress_type not in _METHODS:
    raise DamagedError(
        f'{where} has a compression method that NumPy does not use.'
    )
  with archive.open(member) as stream:
    shape, in_columns, dtype = _read_header(stream)
    fits = len(shape) == len(wanted.shape) and all(
        size >= 0 and want in (size, None)
        for size, want in zip(shape, wanted.shape)
    )
    if not fits or dtype.hasobject or dtype.kind not in wanted.kinds:
      allowed = ' or '.join(_KINDS[kind] for kind in wanted.kinds)
      axes = ', '.join('any' if n is None else str(n) for n in wanted.shape)
      raise DamagedError(
          f'{where} has dtype {dtype.name} and shape {list(shape)}; it must be'
          f' {allowed} of shape [{axes}].'
      )
    # Python's integers do not overflow.
    num_bytes = math.prod(shape) * dtype.itemsize
    if num_bytes > wanted.max_bytes:
      raise DamagedError(
          f'{where} has {num_bytes} bytes; the maximum is {wanted.max_bytes}.'
      )
    content = stream.read(num_bytes)
  if len(content) != num_bytes:
    raise DamagedError(f'{where} is cut short.')
  array = np.frombuffer(content, dtype)
  return array.reshape(shape, order='F' if in_columns else 'C')


_KINDS = {
    'b': 'bool',
    'f': 'floats',
    'i': 'integers',
    'u': 'unsigned integers',
}


def _read_header(
    stream: IO[bytes],
) -> tuple[tuple[int, ...], bool, np.dtype]:
  """Returns shape, whether the order is Fortran's, and dtype."""
  version = np.lib.format.read_magic(stream)
  readers = {
      (1, 0): np.lib.format.read_array_header_1_0,
      (2, 0): np.lib.format.read_array_header_2_0,
  }
  if version not in readers:
    raise ValueError(f'version {version}')
  return readers[version](stream, max_header_size=_MAX_HEADER)
