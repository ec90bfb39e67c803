"""Results of others are data: nothing that reads them can execute them."""

import ast
from collections.abc import Iterator
import pathlib

import pytest

_ROOT = pathlib.Path(__file__).parents[1]
_FILES = sorted(
    path
    for folder in ('modular_hyperteacher', 'figures', 'launch')
    for path in (_ROOT / folder).rglob('*.py')
)
_MODULES = {'pickle', 'cloudpickle', 'dill', 'joblib', 'marshal', 'shelve'}
_CALLS = {'eval', 'exec', 'compile', '__import__', 'read_pickle'}


def _executing(tree: ast.AST) -> Iterator[str]:
  """Yields what could execute data: imports of picklers, calls of eval."""
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      yield from _MODULES & {alias.name.split('.')[0] for alias in node.names}
    elif isinstance(node, ast.ImportFrom):
      yield from _MODULES & {(node.module or '').split('.')[0]}
    elif isinstance(node, ast.Call):
      function = node.func
      if isinstance(function, ast.Name):
        yield from _CALLS & {function.id}
      elif isinstance(function, ast.Attribute):
        yield from {'read_pickle'} & {function.attr}
      yield from {'allow_pickle=True'} & set(map(ast.unparse, node.keywords))


@pytest.mark.parametrize('path', _FILES, ids=lambda p: p.stem)
def test_nothing_executes_what_it_reads(path: pathlib.Path) -> None:
  assert not list(_executing(ast.parse(path.read_text(encoding='utf-8'))))


@pytest.mark.parametrize(
    'code',
    [
        'import pickle',
        'from joblib import load',
        'eval("1")',
        'pd.read_pickle("x")',
        'np.load("x", allow_pickle=True)',
    ],
)
def test_what_is_looked_for_is_found(code: str) -> None:
  assert list(_executing(ast.parse(code)))
