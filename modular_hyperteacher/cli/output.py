"""Standard output whose reader may leave, such as `| head`."""

from collections.abc import Iterator
import contextlib
import os
import sys


@contextlib.contextmanager
def until_closed() -> Iterator[None]:
  """Ends its block, quietly, once nobody reads standard output any more."""
  try:
    try:
      yield
    finally:  # What is still in the buffer may find that the reader has left.
      sys.stdout.flush()
  except BrokenPipeError:
    # Python flushes once more when it exits.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
