"""Reference numbers, computed with the authors' released code.

They are not part of the repository: they are read from `$GOLDEN_DIR`.
"""

import os
import pathlib
from typing import Any

import numpy as np
import pytest


def load(name: str) -> dict[str, Any]:
  folder = os.environ.get('GOLDEN_DIR')
  if not folder:
    pytest.skip('GOLDEN_DIR is not set: no reference numbers to compare with')
  path = pathlib.Path(folder) / f'{name}.npz'
  if not path.exists():
    pytest.skip(f'{path} does not exist')
  with np.load(path, allow_pickle=False) as file:
    return dict(file)


def assert_close(
    actual: Any, expected: Any, tolerance: float, label: str = ''
) -> None:
  scale = max(float(np.abs(expected).max()), 1e-12)
  error = float(np.abs(np.asarray(actual) - expected).max()) / scale
  assert error <= tolerance, f'{label}: relative deviation {error:.2e}'
