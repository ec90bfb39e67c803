"""Checks names, files and values that come from a file or a user.

Types declare what is valid: TypedDicts for files, a component's signature for a
block of a config. A validation library would need a second declaration of every
component, and would not check names, links and sizes.
"""

import functools
import hashlib
import json
import math
import os
import pathlib
import stat
import types
import typing
from typing import Annotated, Any, IO, Literal, NotRequired

import numpy as np

from modular_hyperteacher import errors

MAX_BYTES = 256 * 2**20  # The largest file, packed and unpacked.
_MAX_NAME_BYTES = 200  # File systems allow 255; temporary names are longer.
_MAX_INT = 2**63
_MAX_SHOWN = 80  # A message shows so many characters of a value.
_KINDS = {
    int: 'a whole number of less than 64 bits',
    float: 'a finite number below 1e303',
    str: 'text',
    bool: 'True or False',
    type(None): 'None',
}


def check_name(text: Any, field: str) -> None:
  """Raises UserError unless a text is the plain name of a file or folder."""
  if (
      not isinstance(text, str)
      or not text.isprintable()  # Also lone surrogates, which have no bytes.
      or not 0 < len(os.fsencode(text)) <= _MAX_NAME_BYTES
      or text.startswith('.')
      or any(separator in text for separator in '/\\')
  ):
    raise wrong(
        field,
        text,
        f'a plain name of at most {_MAX_NAME_BYTES} bytes: printable, without'
        ' / or \\, and not beginning with a dot',
    )


Name = Annotated[str, check_name]


def inside(folder: pathlib.Path, name: str, field: str) -> pathlib.Path:
  """Returns the path of a plain name in a folder; neither may be a link.

  Raises:
    UserError: if the name is not plain, or if there is a link.
  """
  check_name(name, field)
  for path in (folder, folder / name):
    if path.is_symlink():
      raise errors.UserError(f'{path} is a link; links are not followed.')
  return folder / name


def open_file(path: pathlib.Path) -> IO[bytes]:
  """Opens a file to read it; neither follows a link nor blocks on a pipe.

  Raises:
    UserError: if it is not a file.
    OSError: if it is a link, or cannot be opened.
  """
  flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
  descriptor = os.open(path, flags)
  if not stat.S_ISREG(os.fstat(descriptor).st_mode):
    os.close(descriptor)
    raise errors.UserError(f'{path} is not a file.')
  return open(descriptor, 'rb')


def read_bytes(path: pathlib.Path) -> bytes | None:
  """Returns a file's content, or None if it does not exist.

  Raises:
    UserError: if it is a link, not a file, too large or unreadable.
    MachineError: if the file system fails.
  """
  try:
    with open_file(path) as file:
      size = os.fstat(file.fileno()).st_size
      if size > MAX_BYTES:
        raise errors.UserError(
            f'{path} has {size} bytes; the maximum is {MAX_BYTES}.'
        )
      return file.read(MAX_BYTES)
  except (FileNotFoundError, NotADirectoryError):
    return None
  except OSError as error:
    raise errors.unreadable(path, error) from error


def check_digest(
    path: pathlib.Path, content: bytes, digest: str | None
) -> None:
  """Raises UserError if a file does not match its digest, if that is known."""
  if digest is not None and hashlib.sha256(content).hexdigest() != digest:
    raise errors.UserError(f'{path} was changed after it was written.')


def read_json(path: pathlib.Path, record: Any) -> Any:
  """Returns the content of a JSON file; None if there is no file.

  Raises:
    UserError: if it cannot be read, or does not have the type `record`.
    MachineError: if the file system fails.
  """
  content = read_bytes(path)
  if content is None:
    return None

  def refuse(text: str) -> None:
    raise ValueError(f'{text} is not a number')

  try:
    value = json.loads(content.decode(), parse_constant=refuse)
  except (ValueError, RecursionError) as error:
    raise errors.UserError(f'{path} is not valid JSON: {error}.') from error
  check(value, record, str(path))
  return value


def check(value: Any, kind: Any, field: str) -> None:
  """Checks that a value has exactly a type, and that numbers are finite.

  Types that JSON lacks, such as arrays, are not checked. Functions in
  `Annotated` are called with the value and the field.

  Raises:
    UserError: names the innermost wrong field, its value and what is allowed.
  """
  origin, inner = typing.get_origin(kind), typing.get_args(kind)
  if origin in (Annotated, NotRequired):
    check(value, inner[0], field)
    for function in filter(callable, inner[1:]):
      function(value, field)
  elif _is_nan_or_infinite(value):
    raise wrong(field, value, _KINDS[float])
  elif origin in (typing.Union, types.UnionType):
    options = [option for option in inner if _fits(value, option)]
    if not options:
      raise wrong(field, value, ' or '.join(map(_describe, inner)))
    check(value, options[0], field)
  elif not _fits(value, kind):
    raise wrong(field, value, _describe(kind))
  elif typing.is_typeddict(kind):
    _check_fields(value, kind, field)
  elif origin is dict:
    for name, entry in value.items():
      check(name, inner[0], f'a name in {field}')
      check(entry, inner[1], f'{field}: {shown(name)}')
  elif origin in (list, tuple):
    if origin is tuple and inner[1:] != (...,) and len(inner) != len(value):
      raise wrong(field, value, f'a list of {len(inner)}')
    for i, entry in enumerate(value):
      own = inner[i] if origin is tuple and inner[1:] != (...,) else inner[0]
      check(entry, own, f'{field}[{i}]')


def _check_fields(value: dict, kind: Any, field: str) -> None:
  hints = _hints(kind)
  for name in value:
    if name not in hints:
      raise errors.UserError(
          f'{field}: unknown field {shorten(name)}; choose one of'
          f' {", ".join(hints)}.'
      )
  for name in sorted(kind.__required_keys__):
    if name not in value:
      raise errors.UserError(f'{field}: the field {name} is missing.')
  for name, entry in value.items():
    check(entry, hints[name], f'{field}: {name}')


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
  return typing.get_type_hints(kind, include_extras=True)


def _is_unicode(text: str) -> bool:
  """Whether text can be written; half a surrogate pair cannot."""
  try:
    text.encode()
  except UnicodeEncodeError:
    return False
  return True


def _is_nan_or_infinite(value: Any) -> bool:
  return isinstance(value, float) and not math.isfinite(value)


def _fits(value: Any, kind: Any) -> bool:
  """Whether a value has a type; does not check what it contains."""
  origin = typing.get_origin(kind) or kind
  if origin is Annotated:
    return _fits(value, typing.get_args(kind)[0])
  if origin is typing.Literal:
    return value in typing.get_args(kind)
  if typing.is_typeddict(kind) or origin is dict:
    return isinstance(value, dict)
  if origin in (list, tuple):
    return isinstance(value, (list, tuple))
  if isinstance(value, str):
    return origin not in _KINDS or (origin is str and _is_unicode(value))
  number = isinstance(value, (int, float)) and not isinstance(value, bool)
  if origin is int:
    return number and isinstance(value, int) and abs(value) < _MAX_INT
  if origin is float:
    return number and abs(value) < _MAX_INT**16
  return origin not in _KINDS or isinstance(value, origin)


def _describe(kind: Any) -> str:
  origin = typing.get_origin(kind) or kind
  if origin is Annotated:
    return _describe(typing.get_args(kind)[0])
  if origin in (list, tuple):
    return 'a list'
  if origin is Literal:
    return f'one of {", ".join(map(repr, typing.get_args(kind)))}'
  if typing.is_typeddict(kind) or origin is dict:
    return 'a block of fields'
  return _KINDS.get(origin) or str(origin)


def whole_number(value: Any, field: str, low: int, high: int, rule: str) -> int:
  """Returns a whole number of Python or NumPy, `low <= value < high`.

  Raises:
    UserError: if it is something else; ends with the rule.
  """
  is_whole = isinstance(value, (int, np.integer))
  allowed = is_whole and not isinstance(value, bool) and low <= value < high
  errors.require(allowed, field, shorten(value), rule)
  return int(value)


def plain(value: Any) -> Any:
  """Returns a number of NumPy as one of Python, anything else as it is."""
  return value.item() if isinstance(value, np.generic) else value


def shown(name: str) -> str:
  """Returns a name that came from a file as it is, if it can be printed."""
  return name if name.isprintable() else shorten(name)


def wrong(field: str, value: Any, allowed: str) -> errors.UserError:
  """Returns the error of a wrong value."""
  return errors.UserError(f'{field} is {shorten(value)}; it must be {allowed}.')


def shorten(value: Any) -> str:
  """Returns a value on one line, for a message."""
  text = repr(value)
  return text if len(text) <= _MAX_SHOWN else f'{text[:_MAX_SHOWN]}...'
