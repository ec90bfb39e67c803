"""Standard output whose reader may leave, such as `| head`."""

from collections.abc import Iterator
import contextlib
import os
import select
import sys


@contextlib.contextmanager
def until_closed() -> Iterator[None]:
  """Ends its block, quietly, once nobody reads standard output any more.

  Any other exception passes, also if the reader has left.
  """
  try:
    yield
  except BrokenPipeError:
    if _is_read():
      raise  # Another pipe broke.
  finally:  # What is still in the buffer may find that the reader has left.
    try:
      sys.stdout.flush()
    except BrokenPipeError:
      # Python flushes once more when it exits.
      os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_read() -> bool:
  """Whether standard output has a reader; under `python -u`, no flush tells."""
  poll = select.poll()
  poll.register(sys.stdout, 0)  # Errors are reported without being asked for.
  return not poll.poll(0)
