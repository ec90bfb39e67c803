"""Writes files that are whole or not there, in folders that users name.

Nothing is pickled.
"""

from collections.abc import Iterable, Iterator, Mapping
import contextlib
import hashlib
import io
import json
import math
import os
import pathlib
import tempfile
from typing import Any, cast
import uuid

import numpy as np

from modular_hyperteacher import errors

# Names of files that are being written, or that a killed process left.
UNFINISHED = '.writing-%s'


def locate(name: str | os.PathLike[str], field: str) -> pathlib.Path:
  """Returns the path that a user names in a field, such as '--results'.

  It need not exist; ~ is the home folder. UserError if nothing can have this
  name.
  """
  if not os.fspath(name):
    raise errors.UserError(f"{field} is ''; name a folder or a file.")
  try:
    path = pathlib.Path(name).expanduser()
    str(path).encode()  # Libraries that write files take only UTF-8.
    path.exists()
  except (OSError, RuntimeError, UnicodeError) as error:  # No such home, say.
    raise errors.UserError(
        f"{field} is '{name}', which cannot be a folder or a file: {error}."
    ) from error
  return path


def create_folder(folder: pathlib.Path, flag: str) -> None:
  """Creates a folder, with its parents.

  Raises:
    UserError: if it is not writable; names the flag.
    StorageError: if the disk is full, or the file system fails.
  """
  with writing_to(folder, flag):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
      pass


@contextlib.contextmanager
def writing_to(folder: pathlib.Path, flag: str) -> Iterator[None]:
  """Raises errors of files in a folder as `create_folder` does."""
  try:
    yield
  except errors.MachineError:
    raise
  except OSError as error:
    if error.errno in errors.FAULTS:
      raise errors.StorageError(folder, error) from error
    raise errors.UserError(
        f'{flag}: cannot write to {folder} ({error.strerror}); choose a'
        ' writable folder.'
    ) from error


def write_atomically(path: pathlib.Path, content: str | bytes) -> None:
  """Replaces a file atomically.

  Raises:
    StorageError: if writing fails; an existing file is unchanged.
  """
  write_together({path: content})


def write_together(files: Mapping[pathlib.Path, str | bytes]) -> None:
  """Replaces files that belong together; none if one cannot be written.

  A kill or a failure between two of the renames, which take microseconds, may
  replace some of them.

  Raises:
    StorageError: if writing one fails.
  """
  temporary = {
      path: path.with_name(UNFINISHED % uuid.uuid4().hex) for path in files
  }
  path = next(iter(files), pathlib.Path())
  try:
    for path, content in files.items():
      with open(temporary[path], 'xb') as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    for path in files:
      os.replace(temporary[path], path)
  except OSError as error:
    for left in temporary.values():
      with contextlib.suppress(OSError):
        left.unlink()
    raise errors.StorageError(path, error) from error


def exists(path: pathlib.Path) -> bool:
  """Returns whether a path exists.

  Raises:
    UserError: if it cannot be looked up: no permission, or too long a name.
    MachineError: if the file system fails.
  """
  try:
    path.stat()  # Path.exists hides faults from Python 3.14 on.
  except (FileNotFoundError, NotADirectoryError):
    return False
  except OSError as error:
    raise errors.unreadable(path, error) from error
  return True


def encode_record(value: Any) -> str:
  """Returns JSON; NaN becomes null, infinity 'inf' or '-inf'."""
  return json.dumps(_plain(value), indent=2, allow_nan=False) + '\n'


def encode_arrays(
    arrays: Mapping[str, np.ndarray], compress: bool = False
) -> bytes:
  """Returns named arrays as an .npz file; equal arrays give equal bytes."""
  buffer = io.BytesIO()
  save = np.savez_compressed if compress else np.savez
  # No array is called `allow_pickle`, the one named parameter.
  save(buffer, **cast(dict[str, Any], arrays))
  return buffer.getvalue()


def hash_arrays(named: Iterable[tuple[str, Any]]) -> str:
  """Returns a hash of all names, dtypes, shapes and bytes."""
  digest = hashlib.sha256()
  for name, leaf in named:
    array = np.asarray(leaf)
    digest.update(f'{name} {array.dtype.str} {array.shape}\n'.encode())
    digest.update(array.tobytes())
  return digest.hexdigest()


def _plain(value: Any) -> Any:
  """Returns a value for JSON: NaN is None, infinity is text."""
  if isinstance(value, dict):
    return {name: _plain(entry) for name, entry in value.items()}
  if isinstance(value, (list, tuple)):
    return [_plain(entry) for entry in value]
  if isinstance(value, float) and not math.isfinite(value):
    return None if math.isnan(value) else str(value)
  return value
