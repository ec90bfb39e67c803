"""Runs a script: parses flags, prints errors on one line."""

from collections.abc import Callable, Sequence
import sys

from absl import app
from absl import flags
from absl import logging

from modular_hyperteacher import errors
from modular_hyperteacher.cli import output
from modular_hyperteacher.devices import compilation_cache


def run(main: Callable[[], None]) -> None:
  """Runs a script; a UserError prints one line and exits with code 2."""
  with output.until_closed():
    app.run(
        lambda argv: sys.exit(_guard(main, argv)), flags_parser=_parse_flags
    )


def _guard(main: Callable[[], None], argv: Sequence[str]) -> int:
  logging.set_verbosity(logging.ERROR)  # Kaleido logs every step.
  try:
    if len(argv) > 1:
      raise errors.UserError(f"unknown argument '{argv[1]}'; see --help.")
    compilation_cache.enable_by_default()
    main()
  except (errors.MachineError, errors.UserError) as error:
    print(f'error: {error}', file=sys.stderr)
    return 2 if isinstance(error, errors.UserError) else 1
  except KeyboardInterrupt:
    print('SIGINT: stopped.', file=sys.stderr)
    return 130
  return 0


def _parse_flags(argv: Sequence[str]) -> Sequence[str]:
  try:
    return flags.FLAGS(argv)
  except SystemExit:  # After --help.
    sys.exit(0)
  except flags.Error as error:
    print(f'error: {" ".join(str(error).split())}', file=sys.stderr)
    sys.exit(2)
