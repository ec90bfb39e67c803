"""Errors reported in one line: wrong input, or a fault of the machine.

Checks of user input raise `UserError` with a message that names the field, its
value and what is allowed: one line on stderr and exit code 2. After a fault of
the machine (exit code 1) the same command can be tried again.
"""

from collections.abc import Iterable
import errno
import pathlib
from typing import Any

# Errors of a file system that are no user's mistake.
FAULTS = (
    errno.EIO,
    errno.ESTALE,
    errno.ETIMEDOUT,
    errno.ENOSPC,
    errno.EDQUOT,
)


class UserError(ValueError):
  """Wrong input: a field, a flag or a file on disk."""


def require(allowed: Any, field: str, value: Any, rule: str) -> None:
  """Raises UserError unless `allowed`; `rule` says what the value must be."""
  if not allowed:
    raise UserError(f'{field} is {value}; {rule}.')


def require_choice(field: str, value: Any, choices: Iterable[str]) -> None:
  """Raises UserError unless the value is one of the choices."""
  rule = f'choose one of {", ".join(choices)}'
  require(value in choices, field, f"'{value}'", rule)


def line(message: str) -> str:
  """Returns a message without line breaks and codes that a terminal obeys."""
  return ''.join(c if c.isprintable() else repr(c)[1:-1] for c in message)


def describe(error: BaseException) -> str:
  """Returns an error's type and its message, on one line of limited length."""
  text = ' '.join(f'{type(error).__name__}: {error}'.split()).removesuffix(':')
  return text if len(text) < 300 else f'{text[:300]}...'


class MachineError(Exception):
  """A fault of the machine; nothing is lost, and a retry may succeed."""


def unreadable(path: pathlib.Path, error: OSError) -> Exception:
  """Returns the error of a path that cannot be read."""
  kind = MachineError if error.errno in FAULTS else UserError
  return kind(f'{path} cannot be read ({error.strerror}).')


class StorageError(MachineError, OSError):
  """Results cannot be written."""

  def __init__(self, path: pathlib.Path, reason: str | OSError) -> None:
    if isinstance(reason, OSError):
      reason = reason.strerror or str(reason)
    is_full = any(word in reason for word in ('space', 'quota'))
    advice = ', for example by freeing disk space' if is_full else ''
    super().__init__(
        f'cannot write {path}: {reason}. Fix this{advice}, and run the same'
        ' command again; training resumes from its last checkpoint.'
    )
    self.strerror = reason
