"""Errors that are told in one line: the user's to mend, or the machine's.

Everything that checks user input raises `ValueError` with a message that
names the field, what was given and what is allowed. `UserError` marks it at
the command line, where it is one line on stderr and exit code 2. A fault of
the machine is worth trying again: exit code 1.
"""

import pathlib


class UserError(ValueError):
  """Wrong input: a field, a flag or a file on disk."""


class MachineError(Exception):
  """A fault of the machine; nothing is lost, and another try may succeed."""


class StorageError(MachineError, OSError):
  """Results cannot be written; says what to do."""

  def __init__(self, path: pathlib.Path, reason: str) -> None:
    super().__init__(
        f'cannot write {path}: {reason}. Mend that, by making room on the disk'
        ' for instance; the same command then goes on from the last'
        ' checkpoint.'
    )
    self.strerror = reason
