"""Presets: the scales at which an experiment can run.

'paper' has the published values ("Tables" are those of the paper's Appendix C,
with the values selected in the authors' released configs), 'laptop' is a
smaller problem that students learn in minutes (docs/reproducibility.md says
what differs), and 'smoke' takes a few steps of that. Some configs also have
'workstation': 'laptop' with more runs, which take it over an hour of two cores.
They have a constant `WORKSTATION`, and their results count as the laptop's.
Some figures of the hyperteacher have 'desktop': the published task and models,
and fewer, smaller outer steps, which take hours of two cores. Their configs
have a constant `DESKTOP`.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from modular_hyperteacher import errors

_T = TypeVar('_T')

# Those that every config has.
PRESETS = ('smoke', 'laptop', 'paper')
DESKTOP = 'desktop'
# From the smallest scale to the published one.
SCALES = ('smoke', 'laptop', DESKTOP, 'paper')
WORKSTATION = 'workstation'
# Presets of configs that have a constant of the same name.
OPTIONAL = (DESKTOP, WORKSTATION)


def choose(
    preset: str, *, smoke: _T, laptop: _T, paper: _T, desktop: _T | None = None
) -> _T:
  """Returns the value of a preset; without a value, there is no `desktop`.

  Raises:
    UserError: if there is no such preset.
  """
  values = {'smoke': smoke, 'laptop': laptop}
  if desktop is not None:
    values[DESKTOP] = desktop
  values['paper'] = paper
  errors.require_choice('preset', preset, values)
  return values[preset]


def scale(preset: str) -> str:
  """Returns the preset whose scale a preset has: itself, or 'laptop'.

  Raises:
    UserError: if there is no such preset.
  """
  errors.require_choice('preset', preset, (*SCALES, WORKSTATION))
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
