"""Runs a script: parses flags, prints errors on one line."""

from collections.abc import Callable

from absl import logging

from modular_hyperteacher.cli import command_line
from modular_hyperteacher.devices import compilation_cache


def run(main: Callable[[], None]) -> None:
  """Runs a script; see `command_line.run`."""

  def script() -> int:
    logging.set_verbosity(logging.ERROR)  # Kaleido logs every step.
    compilation_cache.enable_by_default()
    main()
    return 0

  command_line.run(script, command_line.check_words)
