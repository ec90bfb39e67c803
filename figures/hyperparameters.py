"""Tables A10 to A12: hyperparameters, printed from the configs themselves."""

import functools
from typing import Callable

import pandas as pd

from figures import data
from figures import reference
from figures import style
from modular_hyperteacher import sweeps

# Table -> the experiment of which the world's settings are printed, the world.
TABLES = {
    'A10': ('fig3b', 'the hyperteacher'),
    'A11': ('fig4c', 'the preferences'),
    'A12': ('fig4e', 'the goals'),
}


def title(name: str) -> str:
  """Returns the title of a table, such as 'A10'."""
  return f'Table {name}: hyperparameters on {TABLES[name][1]}'


def make_draw(name: str) -> Callable[[data.Library], tuple[None, pd.DataFrame]]:
  """Returns the function that makes a table, such as 'A10'."""
  return functools.partial(_draw, name)


def _draw(name, library):
  """Returns no figure, and a row per preset and field, a column per model."""
  del library  # Settings, not results.
  rows = []
  for preset in ('paper', 'laptop'):
    by_model = {}
    for run in reference.described_runs(TABLES[name][0], preset):
      fields = {
          field: value
          for block in ('model', 'training')
          for field, value in sweeps.flatten(run.config[block], f'{block}.')
      }
      by_model.setdefault(fields.pop('model.name'), fields)
    names = dict.fromkeys(f for fields in by_model.values() for f in fields)
    for field in sorted(names):
      values = {
          style.MODEL_NAMES[model]: _text(by_model[model], field)
          for model in style.MODELS
          if model in by_model
      }
      rows.append({'preset': preset, 'field': field, **values})
  return None, pd.DataFrame(rows)


def _text(fields, field):
  if field not in fields:
    return ''  # The model has no such setting.
  value = fields[field]
  if value is None:
    return 'none'
  return f'{value:g}' if isinstance(value, float) else str(value)
