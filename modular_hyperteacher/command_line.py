"""Parsing the command line, so that what is wrong with it is one clear line.

ml_collections overrides any config field (`--config.training.seeds="(1, 2)"`),
but tells of a mistake in a traceback. Here a mistake names the field as typed,
what was given and what is allowed.
"""

import pathlib
import re
import runpy
import sys
import traceback
from typing import Any, Callable, NamedTuple

from absl import flags
import ml_collections
from ml_collections import config_flags

from modular_hyperteacher import errors
from modular_hyperteacher import sweeps
from modular_hyperteacher import tracking

_RESULTS = 'results'
_ONLY = 'only'


class Sweep(NamedTuple):
  """What a command line asks to be trained."""

  runs: list[sweeps.Run]
  published: list[sweeps.Run]  # of the same config's 'paper' preset
  root: pathlib.Path  # for results


def define_sweep_flags() -> None:
  """Defines --config, --results, --only and --wandb."""
  config_flags.DEFINE_config_file(
      'config', None, 'Experiment: configs/NAME.py or configs/NAME.py:PRESET.'
  )
  flags.DEFINE_string(_RESULTS, 'results', 'Folder for results.')
  flags.DEFINE_multi_string(
      _ONLY, [], 'Train only runs with field=value; repeat to narrow down.'
  )
  tracking.define_flag()


def check_arguments(argv: list[str]) -> None:
  """Raises UserError for stray words, or if --config is missing."""
  if len(argv) > 1:
    raise errors.UserError(f"unknown argument '{argv[1]}'; see --help.")
  if flags.FLAGS['config'].value is None:
    raise errors.UserError('--config is missing; try configs/fig3b.py.')


def read_sweep() -> Sweep:
  """Returns what the flags ask for.

  Raises:
    UserError: if they ask for what there is not.
  """
  flag = flags.FLAGS['config']
  config = apply_overrides(flag.value, config_flags.get_override_values(flag))
  get_config = load_config(config_flags.get_config_filename(flag))
  root = flags.FLAGS[_RESULTS].value
  if not root:
    raise errors.UserError("--results is ''; name a folder, such as results.")
  return Sweep(
      sweeps.select(sweeps.expand(config), flags.FLAGS[_ONLY].value),
      sweeps.expand(get_config('paper')),
      pathlib.Path(root).expanduser(),
  )


def is_users(error: Exception) -> bool:
  """Whether an error is about user input: raised by this package's checks.

  Tasks and models raise plain ValueErrors; those from inside of a library are
  bugs and keep their traceback.
  """
  *_, (frame, _) = traceback.walk_tb(error.__traceback__)
  package = pathlib.Path(__file__).parent
  ours = package in pathlib.Path(frame.f_code.co_filename).parents
  return isinstance(error, errors.UserError) or (
      isinstance(error, ValueError) and ours
  )


_OVERRIDE = re.compile(r'--?(?:no)?config\.([^=]+)(?:=.*)?$', re.DOTALL)
_ILLEGAL = re.compile(r'flag --(\S+?)=(.*?): ', re.DOTALL)


def load_config(argument: str) -> Callable[..., ml_collections.ConfigDict]:
  """Returns the `get_config` of 'path/to/config.py' or 'path:preset'.

  Raises:
    UserError: if there is no such file, it cannot be run, or it has no
      `get_config`.
  """
  path = pathlib.Path(argument.partition(':')[0])
  if not path.is_file():
    raise errors.UserError(
        f"--config is '{argument}'; there is no file {path}. Run from the"
        ' repository root, and see its folder configs/.'
    )
  try:
    namespace = runpy.run_path(str(path))
  except (Exception, SystemExit) as error:  # Whatever is wrong in the file.
    what = ' '.join(f'{type(error).__name__} {error}'.split())
    if not isinstance(error, SyntaxError):  # Which tells its own place.
      *_, (frame, line) = traceback.walk_tb(error.__traceback__)
      what += f' ({frame.f_code.co_filename}, line {line})'
    raise errors.UserError(
        f'--config: {path} is not a config; running it ends in {what}.'
    ) from error
  if 'get_config' not in namespace:
    raise errors.UserError(f'--config: {path} has no get_config(preset).')
  return namespace['get_config']


def parse(argv: list[str]) -> list[str]:
  """Parses absl flags; returns what is left. For `app.run(flags_parser=)`."""
  try:
    config = _preview_config(argv)
    for name in _override_names(argv):
      _check_override(name, config)
    try:
      return flags.FLAGS(argv)
    except flags.IllegalFlagValueError as error:
      raise errors.UserError(_explain(error, config)) from error
    except flags.UnrecognizedFlagError as error:
      raise errors.UserError(
          f"there is no flag '--{error.flagname}'; see --help."
      ) from error
    except (flags.Error, AttributeError, KeyError, TypeError) as error:
      raise errors.UserError(' '.join(str(error).split())) from error
  except errors.UserError as error:
    print(f'error: {error}', file=sys.stderr)
    sys.exit(2)


def _preview_config(argv):
  """Returns the config before overrides, or None if --config is not given."""
  argument = None
  for i, word in enumerate(argv):
    name, equals, value = word.lstrip('-').partition('=')
    if word.startswith('-') and name == 'config':
      argument = value if equals else ''.join(argv[i + 1 : i + 2])
  if argument is None:
    return None
  get_config = load_config(argument)
  _, colon, preset = argument.partition(':')
  try:
    return get_config(preset) if colon else get_config()
  except ValueError as error:
    raise errors.UserError(f'--config: {error}') from error


def _override_names(argv):
  return [m.group(1) for word in argv if (m := _OVERRIDE.match(word))]


def _check_override(name, config):
  if config is None:
    raise errors.UserError(
        f'--config.{name} is given, but not --config; try'
        ' --config=configs/fig3b.py.'
    )
  node = config
  for part in name.split('.'):
    if not isinstance(node, ml_collections.ConfigDict) or part not in node:
      suggestion = sweeps.suggest(name, config.to_dict())
      raise errors.UserError(f'there is no field config.{name}; {suggestion}')
    node = node[part]
  if name in ('experiment', 'preset'):
    raise errors.UserError(
        f'config.{name} says what the results are and cannot be set; choose'
        ' both by --config=configs/NAME.py:PRESET.'
    )
  if isinstance(node, ml_collections.ConfigDict):
    fields = ', '.join(f'config.{name}.{field}' for field in node)
    raise errors.UserError(f'config.{name} is a block; set one of {fields}.')


def _explain(error, config):
  """Returns a message that names the field, the value and the type."""
  match = _ILLEGAL.match(str(error))
  if match and match.group(1).startswith('config.') and config is not None:
    name, value = match.groups()
    node = config
    *parents, leaf = name.removeprefix('config.').split('.')
    for parent in parents:
      node = node[parent]
    kind = node.get_type(leaf)
    hint = ' None can be said in a config file only.' if value == 'None' else ''
    return f"{name} is '{value}'; it must be of type {kind.__name__}.{hint}"
  return ' '.join(str(error).split())


def apply_overrides(
    config: ml_collections.ConfigDict, overrides: dict[str, Any]
) -> ml_collections.ConfigDict:
  """Returns the config with overridden fields taken out of its sweep.

  The sweep sets its fields last, so without this an override of a swept field
  would be ignored. Instead, it is the only value that is left of that axis.
  """
  sweep = tuple(
      tuple(
          (field, (overrides[field],) if field in overrides else values)
          for field, values in grid
      )
      for grid in sweeps.check_grids(config.sweep)
  )
  config = config.copy_and_resolve_references()
  config.sweep = tuple(dict.fromkeys(sweep))
  return config
