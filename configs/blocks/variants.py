"""Variants of a config: its runs trained longer, on another task, and so on.

A config with variants has a table `VARIANTS`: name -> a function that returns
the variant's config of a preset. `--config=configs/fig3e.py:teacher` trains the
variant 'teacher', and `:teacher:smoke` its preset 'smoke'. Results go to the
folder of a variant's own experiment, 'fig3e_teacher'.
"""

from collections.abc import Callable, Mapping
from typing import cast, TypeAlias, TypeVar

from modular_hyperteacher import errors
from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.experiments import sweeps

# Preset -> config.
Make: TypeAlias = Callable[[str], experiment.Config]
_GetConfig = TypeVar('_GetConfig', bound=Callable[..., experiment.Config])


def add(
    name: str, get_config: _GetConfig, variants: Mapping[str, Make]
) -> _GetConfig:
  """Returns a `get_config` of 'PRESET', 'VARIANT' or 'VARIANT:PRESET'.

  The `get_config` of the file `name` returns the config itself, and refuses
  unknown presets.
  """

  def choose(preset: str = 'laptop') -> experiment.Config:
    variant, colon, rest = preset.partition(':')
    if variant in variants:
      config = variants[variant](rest if colon else 'laptop')
      config.experiment = f'{name}_{variant}'
      return config
    try:
      return get_config(preset)
    except errors.UserError as error:
      known = ', '.join(variants)
      raise errors.UserError(f'{error} Variants of {name}: {known}.') from error

  return cast(_GetConfig, choose)


def longer(config: experiment.Config, *sweep: sweeps.Grid) -> experiment.Config:
  """Changes a config to train some of its runs four times as long, or all.

  Only 'laptop' trains longer; the published training stays as it is.
  """
  factor = presets.choose(config.preset, smoke=1, laptop=4, paper=1)
  steps = 'num_outer_steps'
  config.training[steps] *= factor
  config.sweep = tuple(
      grid | {steps: [factor * n for n in grid[steps]]}
      if steps in grid
      else grid
      for grid in sweep or config.sweep
  )
  return config
