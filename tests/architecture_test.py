"""Imports run one way: down the layers, never up."""

import ast
from collections.abc import Iterator
import pathlib

import pytest

_ROOT = pathlib.Path(__file__).parents[1]
# From what knows most to what knows least.
_LAYERS = {
    'modular_hyperteacher': (
        ('main', 'benchmark', 'worlds'),
        ('profiling',),
        ('cli',),
        ('pretrained',),
        ('runs',),
        ('experiments',),
        ('analysis',),
        ('seq2seq', 'in_context'),
        ('learning',),
        ('models',),
        ('tasks',),
        ('devices',),
        ('published',),
        ('untrusted',),
        ('errors', 'randomness'),
    ),
    'figures': (
        ('make_all', 'render', 'bundle', 'readme'),
        ('report',),
        ('registry',),
        ('claims',),
        ('extensions', 'lake2019'),
        ('paper',),
        ('worlds',),
        ('library',),
        ('plotting',),
    ),
}
_ABOVE_THE_PACKAGE = {'configs', 'figures', 'launch', 'tests'}


def _imports(path: pathlib.Path) -> Iterator[tuple[str, ...]]:
  for node in ast.walk(ast.parse(path.read_text())):
    if isinstance(node, ast.ImportFrom) and node.module:
      for alias in node.names:
        yield (*node.module.split('.'), alias.name)
    elif isinstance(node, ast.Import):
      for alias in node.names:
        yield tuple(alias.name.split('.'))


@pytest.mark.parametrize('package', _LAYERS)
def test_imports_run_down_the_layers(package: str) -> None:
  layers = {
      name: depth
      for depth, names in enumerate(_LAYERS[package])
      for name in names
  }
  upward = []
  for path in sorted((_ROOT / package).rglob('*.py')):
    own, *_ = path.relative_to(_ROOT / package).with_suffix('').parts
    if own == '__init__':
      continue
    for imported in _imports(path):
      if imported[0] != package:
        continue
      other = imported[1]
      if layers[other] < layers[own] or (
          layers[other] == layers[own] and other != own
      ):
        upward.append(f'{path}: {".".join(imported)}')
  assert not upward


def test_the_package_knows_nothing_of_what_uses_it() -> None:
  paths = sorted((_ROOT / 'modular_hyperteacher').rglob('*.py'))
  assert paths
  assert not [
      (path, imported)
      for path in paths
      for imported in _imports(path)
      if imported[0] in _ABOVE_THE_PACKAGE
  ]


def test_few_modules_lie_at_the_package_root() -> None:
  assert len(list((_ROOT / 'modular_hyperteacher').glob('*.py'))) <= 6
