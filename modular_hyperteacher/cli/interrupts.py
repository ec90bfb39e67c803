"""Ctrl-C while a command is imported, which takes seconds."""

import os
import signal


def exit_at_once() -> None:
  """Makes Ctrl-C end the process without a traceback.

  Call it before the imports that take seconds. A command replaces the handler
  when it starts.
  """
  signal.signal(signal.SIGINT, _exit)


def _exit(*_: object) -> None:
  os.write(2, b'SIGINT: stopped before anything was started.\n')
  os._exit(130)
