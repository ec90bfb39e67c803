"""All published numbers: the paper's, and those of the papers of studies.

Each has an id, such as 'A6.maml.ood_accuracy': its table, row and column.
"""

from collections.abc import Mapping
import fnmatch
import functools
import importlib
from typing import Any

from modular_hyperteacher import errors
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.published import schug2024


@functools.cache
def _of_studies() -> tuple[Any, ...]:
  """Returns the modules with the numbers of other papers."""
  named = [study.published for study in plugins.studies() if study.published]
  return tuple(map(importlib.import_module, named))


@functools.cache
def ids() -> tuple[str, ...]:
  """Returns the ids of all published numbers, in the order of the files."""
  sources = (schug2024, *_of_studies())
  return tuple(name for source in sources for name in source.table()['id'])


def match(pattern: str) -> list[str]:
  """Returns the ids that match 'A6.maml.*'; raises UserError if none do."""
  matching = fnmatch.filter(ids(), pattern)
  if not matching:
    raise errors.UserError(
        f"'{pattern}' matches no published value; see the column id of the"
        ' files in modular_hyperteacher/published/, and try A6.maml.*, for'
        ' example.'
    )
  return matching


def accuracy(
    config: Mapping[str, Any], split: str
) -> tuple[float, float] | None:
  """Returns (mean, dispersion as printed), fractions; see `schug2024`."""
  of_study = accuracy_of_studies(config, split)
  return schug2024.accuracy(config, split) if of_study is None else of_study


def accuracy_of_studies(
    config: Mapping[str, Any], split: str
) -> tuple[float, float] | None:
  """Does what `accuracy` does, without that of Schug et al. (2024)."""
  every = (source.accuracy(config, split) for source in _of_studies())
  return next((value for value in every if value is not None), None)
