"""What the scripts of this folder share: flags, and errors on one line."""

import os
import sys
from typing import Callable

from absl import app
from absl import flags
from absl import logging

from modular_hyperteacher import errors


def run(main: Callable[[], None]) -> None:
  """Runs a script; wrong input is one line on stderr and exit code 2."""
  app.run(lambda argv: sys.exit(_guard(main, argv)), flags_parser=_parse_flags)


def _guard(main, argv):
  logging.set_verbosity(logging.ERROR)  # Kaleido tells all that it does.
  try:
    if len(argv) > 1:
      raise errors.UserError(f"unknown argument '{argv[1]}'; see --help.")
    main()
  except errors.UserError as error:
    print(f'error: {error}', file=sys.stderr)
    return 2
  except BrokenPipeError:  # As of `| head`: who reads has seen enough.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
  return 0


def _parse_flags(argv):
  try:
    return flags.FLAGS(argv)
  except flags.Error as error:
    print(f'error: {" ".join(str(error).split())}', file=sys.stderr)
    sys.exit(2)
