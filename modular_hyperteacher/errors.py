"""Errors that are reported in one line: wrong input or a machine's fault.

Everything that checks user input raises `ValueError` with a message that
names the field, what was given and what is allowed. The command line prints it
as one line on stderr and exits with code 2. After a fault of the machine, with
exit code 1, the same command may succeed.
"""

import pathlib


class UserError(ValueError):
  """Wrong input: a field, a flag or a file on disk."""


class MachineError(Exception):
  """A fault of the machine; nothing is lost, and a retry may succeed."""


class StorageError(MachineError, OSError):
  """Results cannot be written."""

  def __init__(self, path: pathlib.Path, reason: str | OSError) -> None:
    if isinstance(reason, OSError):
      reason = reason.strerror or str(reason)
    super().__init__(
        f'cannot write {path}: {reason}. Fix this, for example by freeing disk'
        ' space; the same command then resumes from the last checkpoint.'
    )
    self.strerror = reason
