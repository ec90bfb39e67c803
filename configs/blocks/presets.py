"""Presets: the scales at which an experiment can run.

'paper' has the published values ("Tables" are those of the paper's Appendix C,
with the values selected in the authors' released configs), 'laptop' changes
scale only, and 'smoke' takes a few steps of that. Some configs also have
'workstation': 'laptop' with more runs, which take it over an hour of two cores.
They have a constant `WORKSTATION`, and their results count as the laptop's.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from modular_hyperteacher import errors

_T = TypeVar('_T')

PRESETS = ('smoke', 'laptop', 'paper')
WORKSTATION = 'workstation'


def choose(preset: str, *, smoke: _T, laptop: _T, paper: _T) -> _T:
  """Returns the value of a preset; ValueError if there is no such preset."""
  values = {'smoke': smoke, 'laptop': laptop, 'paper': paper}
  errors.require_choice('preset', preset, PRESETS)
  return values[preset]


def scale(preset: str) -> str:
  """Returns the preset whose scale a preset has: itself, or 'laptop'.

  Args:
    preset: of a config that has `WORKSTATION`.

  Raises:
    UserError: if there is no such preset.
  """
  errors.require_choice('preset', preset, (*PRESETS, WORKSTATION))
  return 'laptop' if preset == WORKSTATION else preset


def merge(
    block: Mapping[str, Any], changes: Mapping[str, Any]
) -> dict[str, Any]:
  """Returns a nested block with some fields changed or added."""
  merged = dict(block)
  for field, value in changes.items():
    if isinstance(value, Mapping) and field in block:
      value = merge(block[field], value)
    merged[field] = value
  return merged
