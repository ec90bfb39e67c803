"""The runs that configs describe, and the published results."""

from collections.abc import Mapping
import functools
from typing import Any

import numpy as np

from modular_hyperteacher.experiments import published
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.published import schug2024

# The experiment whose paper preset the paper's tables report.
_TABULATED = 'fig3e'


described_runs = sweeps.described_runs


@functools.cache
def described_fields(experiment: str, preset: str) -> list[dict[str, Any]]:
  """Returns path -> value of each described run; not to be changed."""
  runs = described_runs(experiment, preset)
  return [dict(sweeps.flatten(run.config)) for run in runs]


def find_runs(
    experiment: str, preset: str, cell: Mapping[str, Any]
) -> list[sweeps.Run]:
  """Returns the described runs with these values of fields, by path."""
  fields = described_fields(experiment, preset)
  return [
      run
      for run, known in zip(described_runs(experiment, preset), fields)
      if all(known.get(path) == value for path, value in cell.items())
  ]


def odd_field(
    experiment: str, preset: str, config: dict[str, Any]
) -> str | None:
  """Returns a field whose type is another than in all described runs, if any.

  Figures sort, compare and look up values, and fail at odd ones.
  """
  known = _kinds(experiment, preset)
  for path, value in sweeps.flatten(config):
    if value is not None and path in known and _kind(value) not in known[path]:
      return path
  return None


@functools.cache
def _kinds(experiment: str, preset: str) -> dict[str, set[type]]:
  """Returns path -> types of its values that are not missing."""
  kinds: dict[str, set[type]] = {}
  for fields in described_fields(experiment, preset):
    for path, value in fields.items():
      if value is not None:
        kinds.setdefault(path, set()).add(_kind(value))
  return kinds


def _kind(value: Any) -> type:
  """Returns a type that tells values apart as figures do."""
  if isinstance(value, (list, tuple)):
    return tuple
  return float if type(value) is int else type(value)


def tolerance(dispersion: Any) -> Any:
  """Returns the largest difference from a published value that still agrees.

  Two published standard deviations or two percentage points, whichever is more.
  """
  return np.fmax(2 * dispersion, 0.02)  # NaN if none is published.


def agrees(ours: float, published: tuple[float, float]) -> bool:
  """Returns whether a value agrees with a published (mean, dispersion)."""
  return bool(abs(ours - published[0]) <= tolerance(published[1]))


def published_accuracy(
    experiment: str, cell: Mapping[str, Any], split: str
) -> tuple[float, float] | None:
  """Returns a tabulated accuracy, as fractions.

  Returns:
    (mean, dispersion as printed), or None where the paper has no number.
  """
  runs = find_runs(experiment, 'paper', cell)
  return tabulated(runs[0].config, split) if runs else None


def tabulated(config: dict[str, Any], split: str) -> tuple[float, float] | None:
  """Returns the number that the papers print in a table for this config.

  Task and model must match. The number of outer steps may differ: the tables
  use 100,000 steps, most other experiments 200,000.
  """
  value = published.accuracy_of_studies(config, split)
  if value is not None:
    return value
  for run in described_runs(_TABULATED, 'paper'):
    if all(run.config[block] == config[block] for block in ('task', 'model')):
      return schug2024.accuracy(config, split)
  return None
