"""What stands on top of this package, by name: configs and studies.

Nothing below `studies` imports a study. A name that this package does not know
is looked up in all studies, those of other installed packages included.
"""

import functools
import importlib
import pathlib
from typing import Any

PACKAGE = 'modular_hyperteacher'
_FOLDER = pathlib.Path(__file__).parents[1]


@functools.cache
def studies() -> tuple[Any, ...]:
  """Returns all studies, `studies.study.Study`."""
  return importlib.import_module(f'{PACKAGE}.studies').load()


def resolve(name: str) -> Any:
  """Returns what 'package.module:attribute' names."""
  module, _, attribute = name.partition(':')
  return getattr(importlib.import_module(module), attribute)


@functools.cache
def config_modules() -> dict[str, str]:
  """Returns config -> its module: the paper's, then those of the studies."""
  folder = _FOLDER / 'configs'
  names = sorted(p.stem for p in folder.glob('*.py') if p.stem != '__init__')
  modules = {name: f'{PACKAGE}.configs.{name}' for name in names}
  for study in studies():
    for name in study.configs:
      modules.setdefault(name, f'{study.package}.configs.{name}')
  return modules


def find_config(name: str) -> Any:
  """Returns the module of a config; None if there is none of this name."""
  module = config_modules().get(name)
  return None if module is None else importlib.import_module(module)


def is_paper(config: str) -> bool:
  """Returns whether a config is the paper's, rather than a study's."""
  return config_modules().get(config, '').startswith(f'{PACKAGE}.configs.')


def bundled_root(config: str) -> pathlib.Path:
  """Returns the folder of bundled results for a config's runs."""
  owners = {name: s for s in studies() for name in s.configs}
  if config in owners and not is_paper(config):
    return (owners[config].folder / 'data').resolve()
  return bundled_roots()[0]


@functools.cache
def bundled_roots() -> tuple[pathlib.Path, ...]:
  """Returns the folders of bundled results: the paper's, then the studies'."""
  roots = [_FOLDER / 'figures' / 'data']
  roots += [study.folder / 'data' for study in studies()]
  return tuple(root.resolve() for root in roots)
