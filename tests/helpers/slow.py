"""Cases of a test that take long, next to those that do not."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def mark(cases: Iterable[Any], slow: Collection[Any]) -> list[Any]:
  """Returns the cases of a parameter, or tuples of several; marks slow ones."""
  return [
      pytest.param(
          *(case if isinstance(case, tuple) else (case,)),
          marks=[pytest.mark.slow] if case in slow else [],
      )
      for case in cases
  ]
