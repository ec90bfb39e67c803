"""Errors that are told in one line: the user's to mend, or the machine's.

Everything that checks user input raises `ValueError` with a message that
names the field, what was given and what is allowed. `UserError` marks it at
the command line, where it is one line on stderr and exit code 2. A fault of
the machine is worth trying again: exit code 1.
"""

import pathlib


class UserError(ValueError):
  """Wrong input: a field, a flag or a file on disk."""


class StorageError(Exception):
  """Results cannot be written, and what that means for the run."""

  def __init__(
      self, path: pathlib.Path, cause: Exception, saved_step: int | None
  ):
    """Says what to do.

    Args:
      path: what could not be written.
      cause: why.
      saved_step: the outer step of the newest checkpoint, if there is one.
    """
    lines = str(cause).splitlines() or ['']
    start = 'the start' if saved_step is None else f'step {saved_step}'
    super().__init__(
        f'cannot write {path} ({type(cause).__name__}: {lines[0][:200]}). Make'
        ' room on the disk, or mend what is in the way; the same command then'
        f' goes on from {start}.'
    )
