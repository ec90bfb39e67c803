"""Loads users' configs; any mistake in their file is a one-line error."""

from collections.abc import Mapping
import math
import os
import pathlib
import re
import runpy
import traceback
from typing import Any

import ml_collections

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted
from modular_hyperteacher.experiments import checked
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import settings
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.runs import records

_NAMES = ('experiment', 'preset')
_BLOCKS = ('task', 'models', 'training', 'execution')
_MAX_RUNS = 100_000
# All that a user's code may raise, except for Ctrl-C.
_ANYTHING = (Exception, SystemExit)


def locate(argument: str) -> str:
  """Returns the path of an installed config: 'fig3b:paper' -> '...py:paper'.

  Other arguments stay. UserError for a variant's experiment, 'fig3b_pairs'.
  """
  name, colon, choice = argument.partition(':')
  if not re.fullmatch(r'\w+', name) or os.path.exists(name):
    return argument
  config = plugins.find_config(name)
  if config is None:
    return argument
  if config.variant:
    raise errors.UserError(
        f"--config is '{argument}', a variant of {config.name}. Write"
        f' {config.flag(choice, by_name=True)}.'
    )
  return f'{config.module.__file__}{colon}{choice}'


def load(argument: str) -> dict[str, Any]:
  """Returns what the file of 'path/to/config.py' or 'path:preset' defines.

  UserError unless there is such a file, it can be run, and has `get_config`.
  """
  name, _, choice = locate(argument).partition(':')
  path = pathlib.Path(name)
  try:
    is_file = path.is_file()
  except (OSError, ValueError):  # Too long a name, for instance.
    is_file = False
  if not is_file:
    hint = 'Name a config of the package, such as fig3b, or a file.'
    if config := plugins.find_config(path.stem):
      hint = f'Write {config.flag(choice, by_name=True)}.'
    raise errors.UserError(
        f"--config is '{argument}'; there is no file {path}. {hint}"
    )
  try:
    namespace = runpy.run_path(str(path))
  except _ANYTHING as error:
    what = errors.describe(error)
    if not isinstance(error, SyntaxError):  # It names its own line.
      *_, (frame, line) = traceback.walk_tb(error.__traceback__)
      what += f' ({frame.f_code.co_filename}, line {line})'
    raise errors.UserError(
        f'--config: {path} is not a config; running it raises {what}.'
    ) from error
  if not callable(namespace.get('get_config')):
    raise errors.UserError(f'--config: {path} has no get_config(preset).')
  return namespace


def read(argument: str) -> ml_collections.ConfigDict:
  """Returns the config that 'path:preset' names, before overrides.

  Raises:
    UserError: if `get_config` fails or returns something else.
  """
  get_config = load(argument)['get_config']
  _, colon, choice = argument.partition(':')
  try:
    config = get_config(choice) if colon else get_config()
  except ValueError as error:
    text = ' '.join(str(error).split())
    raise errors.UserError(f'--config: {text}') from error
  except _ANYTHING as error:
    raise errors.UserError(
        f"--config is '{argument}'; its get_config raises"
        f' {errors.describe(error)}.'
    ) from error
  check(config)
  return config


def published(argument: str) -> list[sweeps.Run]:
  """Returns the runs of a config, as for `read`, at the published scale.

  Empty for a config without that scale: it lacks the preset, or ignores it.
  """
  defined = load(argument)
  variant, *_ = argument.partition(':')[2].split(':')
  try:
    known = variant in defined.get('VARIANTS', ())
    prefix = f'{variant}:' if known else ''
    paper = sweeps.expand(defined['get_config'](f'{prefix}paper'))
  except _ANYTHING:
    return []  # Users' configs may have no preset of this name.
  try:
    laptop = sweeps.expand(defined['get_config'](f'{prefix}laptop'))
  except _ANYTHING:
    return paper
  same = {run.run_id for run in paper} == {run.run_id for run in laptop}
  return [] if same else paper


def expand(
    config: ml_collections.ConfigDict, overrides: Mapping[str, Any]
) -> list[sweeps.Run]:
  """Returns the runs of a config; `overrides` maps paths to values.

  Raises:
    UserError: if the config is malformed.
  """
  check(config)
  try:
    runs = sweeps.expand(config, overrides)
  except (AttributeError, IndexError, KeyError, TypeError) as error:
    raise errors.UserError(
        f'--config: expanding its sweep {untrusted.shorten(config.sweep)}'
        f' raises {errors.describe(error)}.'
    ) from error
  for run in runs:  # A sweep may set a field to anything.
    for block, kind in (
        ('training', settings.TrainingConfig),
        ('execution', settings.ExecutionConfig),
    ):
      untrusted.check(run.config[block], dict[str, Any], block)
      checked.call(kind, block, run.config[block])
    untrusted.check(run.config, records.Config, 'config')
    untrusted.check_name(run.run_id, 'the name of a run, from the sweep')
  return runs


def check(config: Any) -> None:
  """Raises UserError unless an object is a well-formed config."""
  if not isinstance(config, ml_collections.ConfigDict):
    raise errors.UserError(
        f'--config: get_config returns {untrusted.shorten(config)}; it must'
        ' return an ml_collections.ConfigDict.'
    )
  try:
    blocks = config.to_dict()
  except Exception as error:
    raise errors.UserError(
        f'--config: reading its fields raises {errors.describe(error)}.'
    ) from error
  for field in (*_NAMES, *_BLOCKS, 'sweep'):
    if field not in blocks:
      raise errors.UserError(f'--config: config.{field} is missing.')
  for field in _NAMES:
    untrusted.check_name(blocks[field], f'config.{field}')
  for field in _BLOCKS:
    untrusted.check(blocks[field], dict[str, Any], f'config.{field}')
    records.check_leaves(blocks[field], f'config.{field}')
  if not blocks['models']:
    raise errors.UserError('config.models is empty; it must hold a model.')
  components = {f'models.{name}': x for name, x in blocks['models'].items()}
  for field, block in ({'task': blocks['task']} | components).items():
    untrusted.check(block, dict[str, Any], f'config.{field}')
    untrusted.check(block.get('name'), str, f'config.{field}.name')
  number = sum(
      math.prod(map(len, axes.values()))
      for axes in sweeps.check_sweep(config.sweep)
  )
  if number > _MAX_RUNS:
    raise errors.UserError(
        f'config.sweep has {number} runs; the maximum is {_MAX_RUNS}.'
    )
