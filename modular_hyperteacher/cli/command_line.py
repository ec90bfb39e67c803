"""Parses the command line and reports mistakes in one line.

ml_collections overrides any config field (`--config.training.seeds="(1, 2)"`),
but reports a mistake as a traceback. Here the message names the field as typed,
what was given and what is allowed.
"""

import ast
from collections.abc import Callable
import pathlib
import re
import sys
import traceback
from typing import Any, NamedTuple

from absl import app
from absl import flags
from absl import logging
import ml_collections
from ml_collections import config_flags
from ml_collections.config_flags import config_path

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher.cli import output
from modular_hyperteacher.cli import user_config
from modular_hyperteacher.cli import wandb_tracker
from modular_hyperteacher.devices import host_devices
from modular_hyperteacher.devices import jax_settings
from modular_hyperteacher.devices import platforms
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import components
from modular_hyperteacher.experiments import sweeps

_CONFIG = ('--config', '-config')
# Overrides of fields that the config does not list, which only `parse` knows.
_unlisted: dict[str, Any] = {}


class Sweep(NamedTuple):
  """What a command line asks to train."""

  runs: list[sweeps.Run]
  published: list[sweeps.Run]  # the runs of the same config's 'paper' preset
  root: pathlib.Path  # the folder of results


def define_sweep_flags() -> None:
  """Defines --config, --only, --results and --wandb."""
  define_config_flags()
  define_results_flag()
  wandb_tracker.define_flag()


def define_config_flags(default: str | None = None) -> None:
  """Defines --config and --only."""
  config_flags.DEFINE_config_file(
      'config',
      default,
      'Experiment: configs/NAME.py[:VARIANT][:PRESET], or without the folder:'
      ' NAME[:VARIANT][:PRESET].',
  )
  flags.DEFINE_multi_string(
      'only',
      [],
      'Only runs with field=value, such as model=maml, or with one of several'
      ' values, as in model=maml,anil; all conditions must hold',
  )


def define_results_flag() -> None:
  """Defines --results, for `read_root`."""
  flags.DEFINE_string('results', 'results', 'Folder of your results.')


def define_host_devices_flag() -> None:
  """Defines --host_devices."""
  flags.DEFINE_integer(
      'host_devices',
      None,
      'Number of devices that a CPU is divided into; each computes a share of'
      ' every meta-batch. Default: the largest number, up to one per core, that'
      ' divides the meta-batches and the numbers of evaluation tasks of all'
      ' runs; one per process if several processes train together.',
      lower_bound=1,
      upper_bound=host_devices.MOST,
  )


def divide_host(runs: list[sweeps.Run]) -> None:
  """Divides a CPU into devices, as --host_devices says."""
  suitable = host_devices.suit(
      [run.config for run in runs], host_devices.num_cores()
  )
  host_devices.divide(flags.FLAGS.host_devices, suitable)


def check_words(argv: list[str]) -> None:
  """Raises UserError for words that are not flags."""
  if len(argv) > 1:
    raise errors.UserError(f"unknown argument '{argv[1]}'; see --help.")


def check_arguments(argv: list[str]) -> None:
  """Raises UserError for unknown words, or if --config is missing."""
  check_words(argv)
  if flags.FLAGS.config is None:
    raise errors.UserError('--config is missing; try configs/fig3b.py.')


def run(
    command: Callable[[], int],
    check: Callable[[list[str]], None] = check_arguments,
) -> None:
  """Runs a command that has these flags, and exits with the code it returns.

  A user's mistake (exit code 2), a fault of the machine (1) and Ctrl-C (130)
  print one line. `check` raises UserError for arguments that the command does
  not accept.
  """

  def checked(argv: list[str]) -> int:
    # JAX logs details that users do not need.
    logging.set_verbosity(logging.WARNING)
    try:
      check(argv)
      return command()
    except KeyboardInterrupt:
      print('SIGINT: stopped.', file=sys.stderr)
      return 130
    except Exception as error:  # pylint: disable=broad-exception-caught
      if not isinstance(error, errors.MachineError) and not is_users(error):
        raise
      print(f'error: {describe(error)}', file=sys.stderr)
      return 1 if isinstance(error, errors.MachineError) else 2

  with output.guarded():
    app.run(checked, flags_parser=parse)


def read_sweep() -> Sweep:
  """Returns the sweep that the flags select; raises UserError if wrong."""
  argument = config_flags.get_config_filename(flags.FLAGS['config'])
  return Sweep(read_runs(), user_config.published(argument), read_root())


def read_root() -> pathlib.Path:
  """Returns the folder for results; raises UserError for a wrong name."""
  return files.locate(flags.FLAGS.results or '', '--results')


def read_runs() -> list[sweeps.Run]:
  """Returns the runs that --config and --only select."""
  flag: Any = flags.FLAGS['config']  # absl does not type flag values.
  overrides = config_flags.get_override_values(flag) | _unlisted
  config = apply_overrides(flags.FLAGS.config, overrides)
  runs = user_config.expand(config, overrides)
  return sweeps.select(runs, flags.FLAGS.only)


def _optional_fields(config: ml_collections.ConfigDict) -> dict[str, Any]:
  """Returns the fields that a config does not list, with their defaults."""
  blocks = config.to_dict()
  optional = {}
  for name, model in blocks.get('models', {}).items():
    try:
      components.allow({'task': blocks['task'], 'model': model})
      fields = build.optional_fields(blocks['task'], model)
    except (AttributeError, KeyError, TypeError, ValueError):
      continue  # Building the run reports the mistake.
    for path, default in fields.items():
      block, _, rest = path.partition('.')
      path = f'models.{name}.{rest}' if block == 'model' else path
      if not _contains(blocks, path):
        optional[path] = default
  return optional


def _contains(blocks: dict[str, Any], path: str) -> bool:
  node: Any = blocks
  for part in path.split('.'):
    if not isinstance(node, dict) or part not in node:
      return False
    node = node[part]
  return True


def _parse_value(name: str, text: str, default: Any) -> Any:
  """Returns the value; raises UserError unless it has the default's type."""
  try:
    value = ast.literal_eval(text)
  except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
    value = {'true': True, 'false': False}.get(text.lower(), text)
  kind = type(default)
  if kind is float and type(value) is int:
    value = float(value)
  if default is not None and type(value) is not kind:
    raise errors.UserError(
        f"config.{name} is '{text}'; it must be of type {kind.__name__}."
    )
  return value


def is_users(error: Exception) -> bool:
  """Whether an error reports wrong user input.

  Tasks and models raise plain ValueErrors for wrong fields. A ValueError raised
  inside a library is a bug and keeps its traceback.
  """
  path, _ = _raised_at(error)
  package = pathlib.Path(__file__).parents[1]
  ours = package in pathlib.Path(path).parents or path in components.files()
  if isinstance(error, errors.UserError) or platforms.is_missing(error):
    return True
  return isinstance(error, ValueError) and ours


def describe(error: Exception) -> str:
  """Returns what went wrong in one line, and where in a user's own file."""
  path, number = _raised_at(error)
  where = f' ({path}, line {number})' if path in components.files() else ''
  return errors.line(f'{error}{where}')


def _raised_at(error: Exception) -> tuple[str, int]:
  """Returns the file and the line that raised an error."""
  *_, (frame, number) = traceback.walk_tb(error.__traceback__)
  return frame.f_code.co_filename, number


_OVERRIDE = re.compile(r'--?(?:no)?config\.([^=]*)(?:=(.*))?$', re.DOTALL)
_ILLEGAL = re.compile(r'flag --(\S+?)=(.*?): ', re.DOTALL)


def _list_shared_flags() -> None:
  """Lets --help list the flags of all modules of the project."""
  for module, defined in flags.FLAGS.flags_by_module_dict().items():
    if module.partition('.')[0] in ('modular_hyperteacher', 'launch'):
      for flag in defined:
        flags.FLAGS.register_key_flag_for_module(sys.argv[0], flag)


def parse(argv: list[str]) -> list[str]:
  """Returns the words that are not flags. `run` calls it."""
  try:
    jax_settings.fix()
    config = None  # Before overrides.
    for i, word in enumerate(argv[1:], start=1):
      name, equals, argument = word.partition('=')
      if argv[i - 1] in _CONFIG:
        argv[i] = user_config.locate(word)
        config = user_config.read(argv[i])
      elif name in _CONFIG and equals:
        path = user_config.locate(argument)
        argv[i] = f'{name}={path}'
        config = user_config.read(path)
    names = [m.group(1) for word in argv if (m := _OVERRIDE.match(word))]
    optional = {}
    # Only if needed, because it imports components of other packages.
    if config and not all(_contains(config.to_dict(), name) for name in names):
      optional = _optional_fields(config)
    argv = _take_unlisted(argv, optional)
    sys.argv[:] = argv  # Where ml_collections looks for overrides.
    for word in argv:
      if match := _OVERRIDE.match(word):
        _check_override(match.group(1), match.group(2), config, optional)
    _list_shared_flags()
    try:
      return flags.FLAGS(argv)
    except SystemExit:  # After --help.
      sys.exit(0)
    except flags.IllegalFlagValueError as error:
      raise errors.UserError(_explain(error, config)) from error
    except flags.UnrecognizedFlagError as error:
      raise errors.UserError(
          f"there is no flag '--{error.flagname}'; see --help."
      ) from error
    except (flags.Error, AttributeError, KeyError, TypeError) as error:
      raise errors.UserError(' '.join(str(error).split())) from error
  except errors.UserError as error:
    print(errors.line(f'error: {error}'), file=sys.stderr)
    sys.exit(2)


def _take_unlisted(argv: list[str], optional: dict[str, Any]) -> list[str]:
  """Moves overrides of unlisted fields to `_unlisted`; returns the rest."""
  _unlisted.clear()
  kept = []
  for word in argv:
    match = re.fullmatch(r'--?config\.([^=]+)=(.*)', word, re.DOTALL)
    if match and match.group(1) in optional:
      name, text = match.groups()
      _unlisted[name] = _parse_value(name, text, optional[name])
    else:
      kept.append(word)
  return kept


def _check_override(
    name: str,
    text: str | None,
    config: ml_collections.ConfigDict | None,
    optional: dict[str, Any],
) -> None:
  if config is None:
    raise errors.UserError(
        f'--config.{name} is given, but not --config; try'
        ' --config=configs/fig3b.py.'
    )
  if not name or name in optional:
    raise errors.UserError(f'write --config.{name or "FIELD"}=VALUE, with =.')
  blocks = config.to_dict()
  if not _contains(blocks, name):
    suggestion = sweeps.suggest(name, blocks | dict.fromkeys(optional))
    raise errors.UserError(f'there is no field config.{name}; {suggestion}')
  value = config_path.get_value(name, config)
  if name in ('experiment', 'preset'):
    raise errors.UserError(
        f'config.{name} cannot be set; choose experiment and preset by'
        ' --config=configs/NAME.py[:VARIANT][:PRESET].'
    )
  if isinstance(value, ml_collections.ConfigDict):
    fields = ', '.join(f'config.{name}.{field}' for field in value)
    raise errors.UserError(f'config.{name} is a block; set one of {fields}.')
  if isinstance(value, tuple) and text and not text.lstrip().startswith('('):
    raise errors.UserError(
        f"config.{name} is '{text}'; it must be a tuple, such as {value!r}."
    )


def _explain(error: Exception, config: ml_collections.ConfigDict | None) -> str:
  """Returns a message that names the field, the value and the type."""
  match = _ILLEGAL.match(str(error))
  if match and match.group(1).startswith('config.') and config is not None:
    name, value = match.groups()
    kind: Any = config_path.get_type(name.removeprefix('config.'), config)
    hint = ' Only a config file can set None.' if value == 'None' else ''
    return f"{name} is '{value}'; it must be of type {kind.__name__}.{hint}"
  return ' '.join(str(error).split())


def apply_overrides(
    config: ml_collections.ConfigDict, overrides: dict[str, Any]
) -> ml_collections.ConfigDict:
  """Returns the config with unlisted fields that are not at their defaults."""
  config = config.copy_and_resolve_references()
  for field, value in overrides.items():
    *parents, leaf = field.split('.')
    block: Any = config
    for parent in parents:
      block = block[parent]
    if leaf not in block and value != _optional_fields(config).get(field):
      with block.unlocked():
        block[leaf] = value
  return config
