"""Reads the list of a campaign: what to train, and in which order.

A line selects runs of a config and names the published values that they
reproduce; `#` starts a comment:

  fig3e:paper --only=max_active=2 --only=model=maml --values=A3.maml.*

--only=FIELD=VALUE can be repeated, as for training. --seeds=2020,2021 replaces
the config's seeds. --values=ID,ID is optional: names or patterns of the column
`id` of the files in modular_hyperteacher/published/.
"""

import pathlib
import shlex
from typing import Any, NamedTuple

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher.cli import user_config
from modular_hyperteacher.experiments import published
from modular_hyperteacher.experiments import sweeps

_LISTS = pathlib.Path(__file__).parents[1] / 'configs/campaigns'
_OPTIONS = ('--only', '--seeds', '--values')


class Line(NamedTuple):
  """A line of the list."""

  text: str  # without its values
  runs: list[sweeps.Run]
  patterns: str  # of values, as written
  values: list[str]  # ids


def find(name: str) -> pathlib.Path:
  """Returns the list of configs/campaigns that has this name, or a user's file.

  Raises:
    UserError: if there is neither.
  """
  lists = {path.stem: path for path in sorted(_LISTS.glob('*.txt'))}
  if name in lists:
    return lists[name]
  path = files.locate(name, '--list')
  if not path.exists():
    raise errors.UserError(
        f"--list is '{name}'; choose one of {', '.join(lists)}, or a file."
    )
  return path


def read(path: pathlib.Path) -> list[Line]:
  """Returns the lines of a list.

  Raises:
    UserError: if the list is empty or unreadable; names a wrong line.
  """
  try:
    text = path.read_text('utf-8')
  except (OSError, UnicodeDecodeError) as error:
    raise errors.UserError(
        f"--list is '{path}', which cannot be read: {error}."
    ) from error
  lines = []
  for number, line in enumerate(text.splitlines(), start=1):
    try:
      words = shlex.split(line, comments=True)
      if words:
        lines.append(_parse(*words))
    except Exception as error:  # A user's config can raise anything.
      what = ' '.join(str(error).split())
      raise errors.UserError(
          f'--list: {path}, line {number}: {what}'
      ) from error
  if not lines:
    raise errors.UserError(f"--list is '{path}', which has no lines.")
  return lines


def _parse(config_name: str, *options: str) -> Line:
  given: dict[str, list[str]] = {name: [] for name in _OPTIONS}
  for option in options:
    name, equals, value = option.partition('=')
    if name not in _OPTIONS or not equals:
      raise errors.UserError(
          f"unknown option '{option}'; choose from --only=FIELD=VALUE,"
          ' --seeds=NUMBER,NUMBER and --values=ID,ID.'
      )
    given[name] += [value] if name == '--only' else value.split(',')
  config: Any = user_config.read(config_name)
  overrides = {}
  if texts := given['--seeds']:
    are_numbers = all(text.isdecimal() for text in texts)
    rule = 'write numbers such as 2020,2021'
    errors.require(are_numbers, '--seeds', f"'{','.join(texts)}'", rule)
    config.training.seeds = tuple(map(int, texts))
    overrides['training.seeds'] = config.training.seeds
  runs = sweeps.select(user_config.expand(config, overrides), given['--only'])
  patterns = given['--values']
  return Line(
      ' '.join(
          word
          for word in (config_name, *options)
          if not word.startswith('--values')
      ),
      runs,
      ','.join(patterns),
      [found for pattern in patterns for found in published.match(pattern)],
  )
