"""Standard output and error that cannot be written: closed, full, unread.

Work goes on without them. A reader that leaves, such as `| head`, wants no
more. Any other output that is lost is told, and exit code 1.
"""

from collections.abc import Iterator
import contextlib
import os
import sys
from typing import Any


class _Stream:
  """A stream that drops its text after a first failure."""

  def __init__(self, stream: Any, number: int) -> None:
    self._stream = stream
    self._number = number  # The file descriptor has it.
    self.lost: str | None = None
    if stream is None:
      self.lost = 'it is closed'
      self._drop()
    elif hasattr(stream, 'reconfigure'):  # Not where a test captures it.
      stream.reconfigure(errors='replace')

  def _drop(self) -> None:
    """Opens the null device in its place, to which Python flushes, too."""
    null = os.open(os.devnull, os.O_WRONLY)
    if null != self._number:
      os.dup2(null, self._number)
      os.close(null)
    if self._stream is None:
      self._stream = os.fdopen(self._number, 'w', encoding='utf-8')

  def _attempt(self, name: str, *arguments: Any) -> Any:
    try:
      return getattr(self._stream, name)(*arguments)
    except OSError as error:
      unread = isinstance(error, BrokenPipeError)
      self.lost = self.lost or ('' if unread else error.strerror)
      self._drop()
      return None

  def write(self, text: str) -> int:
    """Writes text, if it can be written."""
    self._attempt('write', text)
    return len(text)

  def flush(self) -> None:
    """Writes what is buffered, if it can be written."""
    self._attempt('flush')

  def __getattr__(self, name: str) -> Any:
    return getattr(self._stream, name)


@contextlib.contextmanager
def guarded() -> Iterator[None]:
  """Lets its block go on if its output cannot be written.

  Raises:
    SystemExit: with code 1, after a block that succeeds, if output was lost.
  """
  before = sys.stdout, sys.stderr
  out, error = (_Stream(stream, i) for i, stream in enumerate(before, start=1))
  sys.stdout, sys.stderr = out, error
  ending = None
  try:
    yield
  except SystemExit as raised:
    ending = raised
  finally:
    out.flush()
    if out.lost:
      print(
          f'error: standard output cannot be written: {out.lost}. What was'
          ' printed is lost; what was written to files is not.',
          file=error,
      )
    error.flush()
    sys.stdout, sys.stderr = before
  if out.lost and not (ending and ending.code):
    sys.exit(1)
  if ending:
    raise ending
