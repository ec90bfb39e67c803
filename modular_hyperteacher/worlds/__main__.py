"""Writes tasks to files and scores files of predictions.

  python -m modular_hyperteacher.worlds list
  python -m modular_hyperteacher.worlds export --world=goals --split=ood \\
      --num_tasks=1024 --out=goals.npz
  python -m modular_hyperteacher.worlds score --predictions=my_learner.npz
"""

import argparse
from collections.abc import Sequence
import logging
import pathlib
import sys
from typing import NoReturn

from modular_hyperteacher import errors
from modular_hyperteacher import worlds
from modular_hyperteacher.cli import formats
from modular_hyperteacher.cli import output
from modular_hyperteacher.devices import jax_settings
from modular_hyperteacher.worlds import catalogue
from modular_hyperteacher.worlds import files

_NUM_TASKS = 1024


class _Parser(argparse.ArgumentParser):

  def error(self, message: str) -> NoReturn:
    """Says what is wrong on one line."""
    raise errors.UserError(f'{message}; see --help.')


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command; returns the exit code."""
  logging.getLogger('jax').setLevel(logging.ERROR)
  try:
    with output.guarded():
      jax_settings.fix()
      arguments = _parser().parse_args(argv)
      arguments.run(arguments)
  except (errors.UserError, errors.MachineError) as error:
    print(errors.line(f'error: {error}'), file=sys.stderr)
    return 2 if isinstance(error, errors.UserError) else 1
  except KeyboardInterrupt:
    print('SIGINT: stopped.', file=sys.stderr)
    return 130
  return 0


def _parser() -> argparse.ArgumentParser:
  parser = _Parser(
      prog='python -m modular_hyperteacher.worlds',
      description=(
          'Writes tasks to files and scores files of predictions; see'
          ' docs/library.md.\nCOMMAND --help lists the options of a command.'
      ),
      epilog=(
          'example:\n'
          '  %(prog)s export --world=goals --split=ood --out=goals.npz'
      ),
      formatter_class=argparse.RawDescriptionHelpFormatter,  # Breaks no lines.
  )
  commands = parser.add_subparsers(required=True, metavar='COMMAND')

  listing = commands.add_parser('list', help='list worlds')
  listing.set_defaults(run=lambda _: print('\n'.join(worlds.list())))

  export = commands.add_parser('export', help='write tasks to an .npz file')
  export.set_defaults(run=_export)
  export.add_argument(
      '--world', required=True, help=f'one of {", ".join(worlds.list())}'
  )
  export.add_argument(
      '--split',
      required=True,
      help=(
          'which tasks: test (combinations seen in training), ood (held out),'
          ' or another split of the world'
      ),
  )
  export.add_argument(
      '--out', required=True, type=pathlib.Path, help='file to write'
  )
  export.add_argument(
      '--num_tasks',
      type=int,
      help=f'default: {_NUM_TASKS}, or the size of a fixed test set',
  )
  export.add_argument(
      '--preset',
      default='laptop',
      help=f'{", ".join(catalogue.PRESETS)}; default: laptop',
  )
  export.add_argument(
      '--seed',
      default=2020,
      type=int,
      help=(
          'seed of the world: its teacher or mazes, and which combinations are'
          ' held out; default: 2020'
      ),
  )
  export.add_argument(
      '--tasks_seed', default=0, type=int, help='seed of the tasks; default: 0'
  )
  export.add_argument(
      '--only',
      action='append',
      default=[],
      metavar='FIELD=VALUE',
      help=(
          'only the world with this field, such as task_support=random; can be'
          ' repeated'
      ),
  )

  score = commands.add_parser('score', help='score a file of predictions')
  score.set_defaults(run=_score)
  score.add_argument(
      '--predictions',
      required=True,
      type=pathlib.Path,
      help='.npz file; its name up to the first dot is the name of the learner',
  )
  return parser


def _export(arguments: argparse.Namespace) -> None:
  world = catalogue.make_only(
      arguments.world, arguments.preset, arguments.only, arguments.seed
  )
  num_tasks = arguments.num_tasks
  if num_tasks is None and arguments.split not in world.fixed_sizes:
    num_tasks = _NUM_TASKS
  tasks = files.export(
      arguments.out, world, arguments.split, num_tasks, arguments.tasks_seed
  )
  print(f'{arguments.out}: {world.name}, preset {world.preset}')
  for field, value in world.fields.items():
    print(f'  {field}: {value}')
  for name in files.VISIBLE:
    array = getattr(tasks, name)
    print(f'{name}: {array.dtype} {list(array.shape)}')
  wanted = world.prediction(tasks)
  kind = 'float' if 'f' in wanted.kinds else 'integer'
  print(f'To predict: {kind} {list(wanted.shape)}')


def _score(arguments: argparse.Namespace) -> None:
  row = files.score(arguments.predictions).row()
  columns = {
      name: [formats.number(x) if isinstance(x, float) else str(x)]
      for name, x in row.items()
  }
  print(formats.table(columns), end='')


if __name__ == '__main__':
  sys.exit(main())
