"""Configs and studies, which stand on top of this package, by name.

Nothing below `studies` imports a study. A name that this package does not know
is looked up in all studies, those of other installed packages included.
"""

import functools
import importlib
import pathlib
from typing import Any, NamedTuple

from modular_hyperteacher import errors

PACKAGE = 'modular_hyperteacher'
_FOLDER = pathlib.Path(__file__).parents[1]


class Config(NamedTuple):
  """A config, or a variant of one."""

  name: str  # what its file is called, such as 'fig3e'
  variant: str  # such as 'teacher'; '' for the config itself
  module: Any  # its Python module

  @property
  def is_paper(self) -> bool:
    """Whether it is the paper's, rather than a study's."""
    return self.module.__name__ == f'{PACKAGE}.configs.{self.name}'

  @property
  def path(self) -> str:
    """Its file in the repository, 'configs/fig3e.py', or in a package."""
    module = self.module.__name__.removeprefix(f'{PACKAGE}.')
    return f'{module.replace(".", "/")}.py'

  def get_config(self, preset: str = 'laptop') -> Any:
    """Returns the `ml_collections.ConfigDict` of a preset."""
    variant = f'{self.variant}:' if self.variant else ''
    return self.module.get_config(variant + preset)

  def has(self, preset: str) -> bool:
    """Returns whether there is a preset; few have those of `OPTIONAL`."""
    presets = importlib.import_module(f'{PACKAGE}.configs.blocks.presets')
    has_constant = hasattr(self.module, preset.upper()) and not self.variant
    return preset not in presets.OPTIONAL or has_constant

  def flag(self, preset: str = 'laptop', *, by_name: bool = False) -> str:
    """Returns what trains it: '--config=configs/fig3e.py:teacher'.

    By name, that of the paper's is '--config=fig3e:teacher', too.
    """
    first = self.path if self.is_paper and not by_name else self.name
    preset = '' if preset == 'laptop' else preset
    return f'--config={":".join(filter(None, (first, self.variant, preset)))}'


@functools.cache
def studies() -> tuple[Any, ...]:
  """Returns all studies, `studies.study.Study`."""
  return importlib.import_module(f'{PACKAGE}.studies').load()


def resolve(name: str) -> Any:
  """Returns what 'package.module:attribute', or 'package.module', names.

  Raises:
    UserError: if another package than this one lacks it.
  """
  module, _, attribute = name.partition(':')
  try:
    imported = importlib.import_module(module)
    return getattr(imported, attribute) if attribute else imported
  except (Exception, SystemExit) as error:  # A module can raise anything.
    if module.startswith(f'{PACKAGE}.'):
      raise
    raise errors.UserError(
        f"a study names '{name}', which cannot be imported:"
        f' {errors.describe(error)}.'
    ) from error


@functools.cache
def paper_configs() -> tuple[str, ...]:
  """Returns the names of the paper's configs."""
  files = (_FOLDER / 'configs').glob('*.py')
  return tuple(sorted(p.stem for p in files if p.stem != '__init__'))


@functools.cache
def config_modules() -> dict[str, str]:
  """Returns config -> its module: the paper's, then those of the studies."""
  modules = {name: f'{PACKAGE}.configs.{name}' for name in paper_configs()}
  for study in studies():
    for name in study.configs:
      modules[name] = f'{study.package}.configs.{name}'
  return modules


@functools.cache
def find_config(experiment: str) -> Config | None:
  """Returns the config or variant of an experiment; None if there is none."""
  name, variant = experiment, ''
  while name not in config_modules():  # 'fig3e_teacher': 'fig3e', 'teacher'.
    name = name.rpartition('_')[0]
    variant = experiment[len(name) + 1 :]
    if not name:
      return None
  module = resolve(config_modules()[name])
  known = name == experiment or variant in getattr(module, 'VARIANTS', ())
  return Config(name, variant, module) if known else None


def config_of(experiment: str) -> Config:
  """Returns the config of an experiment; raises UserError if there is none."""
  config = find_config(experiment)
  if config is None:
    raise errors.UserError(f"there is no config of experiment '{experiment}'.")
  return config


@functools.cache
def experiments() -> tuple[str, ...]:
  """Returns the experiments of all configs, variants after what they vary."""
  names = []
  for name, module in config_modules().items():
    variants = getattr(resolve(module), 'VARIANTS', ())
    names += [name, *(f'{name}_{variant}' for variant in variants)]
  return tuple(names)


def bundled_root(experiment: str) -> pathlib.Path:
  """Returns the folder of bundled results for an experiment's runs."""
  config = find_config(experiment)
  if config is not None and not config.is_paper:
    owners = {name: study for study in studies() for name in study.configs}
    return (owners[config.name].folder / 'data').resolve()
  return bundled_roots()[0]


@functools.cache
def bundled_roots() -> tuple[pathlib.Path, ...]:
  """Returns the folders of bundled results: the paper's, then the studies'."""
  roots = [_FOLDER / 'figures' / 'data']
  roots += [study.folder / 'data' for study in studies()]
  return tuple(root.resolve() for root in roots)
