"""Imports run one way: down the layers, never up."""

import ast
from collections.abc import Iterator
import pathlib

import pytest

from modular_hyperteacher import studies

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
        ('learning',),
        ('models',),
        ('tasks',),
        ('devices',),
        ('published',),
        ('untrusted',),
        ('files',),
        ('errors', 'randomness'),
    ),
    'figures': (
        ('make_all', 'render', 'bundle', 'readme', 'performance_page'),
        ('report',),
        ('registry',),
        ('claims',),
        ('extensions',),
        ('paper',),
        ('worlds',),
        ('described',),
        ('judging',),
        ('library',),
        ('plotting',),
    ),
}
# Top-level folders, each linked into the package, from top to bottom.
_FOLDERS = ('tests', 'studies', 'figures', 'launch', 'configs')


def _imports(path: pathlib.Path) -> Iterator[tuple[str, ...]]:
  for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
    if isinstance(node, ast.ImportFrom) and node.module:
      for alias in node.names:
        yield (*node.module.split('.'), alias.name)
    elif isinstance(node, ast.Import):
      for alias in node.names:
        yield tuple(alias.name.split('.'))


def _modules(folder: str) -> Iterator[tuple[pathlib.Path, tuple[str, ...]]]:
  """Yields the files of a folder, and what each of them imports of ours."""
  paths = sorted((_ROOT / folder).rglob('*.py'))
  assert paths
  for path in paths:
    for imported in _imports(path):
      if imported[0] == 'modular_hyperteacher':
        yield path, imported[1:]
      # Python knows one name only.
      assert imported[0] not in _FOLDERS[1:], path


@pytest.mark.parametrize('package', _LAYERS)
def test_imports_run_down_the_layers(package: str) -> None:
  layers = {
      name: depth
      for depth, names in enumerate(_LAYERS[package])
      for name in names
  }
  upward = []
  for path, imported in _modules(package):
    own, *_ = path.relative_to(_ROOT / package).with_suffix('').parts
    if package != 'modular_hyperteacher':
      if imported[:1] != (package,):
        continue
      imported = imported[1:]
    if own == '__init__' or imported[0] in _FOLDERS:
      continue
    other = imported[0]
    if layers[other] < layers[own] or (
        layers[other] == layers[own] and other != own
    ):
      upward.append(f'{path}: {".".join(imported)}')
  assert not upward


@pytest.mark.parametrize(
    'folder, above',
    [
        ('modular_hyperteacher', set(_FOLDERS)),
        ('configs', {'tests', 'studies', 'figures', 'launch'}),
        ('launch', {'tests', 'studies', 'figures'}),
        ('figures', {'tests', 'studies', 'launch'}),
        ('studies', {'tests', 'launch'}),
    ],
)
def test_a_folder_knows_nothing_of_what_uses_it(
    folder: str, above: set[str]
) -> None:
  assert not [
      f'{path}: {".".join(imported)}'
      for path, imported in _modules(folder)
      if imported[0] in above
  ]


@pytest.mark.parametrize('study', studies.BUILT_IN)
def test_no_study_knows_another(study: str) -> None:
  assert not [
      f'{path}: {".".join(imported)}'
      for path, imported in _modules(f'studies/{study}')
      if imported[0] == 'studies' and imported[1] not in (study, 'study')
  ]


def test_few_modules_lie_at_the_package_root() -> None:
  assert len(list((_ROOT / 'modular_hyperteacher').glob('*.py'))) <= 6
