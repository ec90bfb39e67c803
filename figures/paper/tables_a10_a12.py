"""Tables A10 to A12: hyperparameters, read from the configs."""

from collections.abc import Mapping
import functools
from typing import Any

import pandas as pd

from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.plotting import style


def _draw(_: data.Library, experiment: str) -> tuple[None, pd.DataFrame]:
  """Returns no figure, and a row per preset and field, a column per model."""
  rows = []
  for preset in ('paper', 'laptop'):
    by_model: dict[str, dict[str, Any]] = {}
    for run in reference.described_runs(experiment, preset):
      fields = {
          field: value
          for block in ('model', 'training')
          for field, value in sweeps.flatten(run.config[block], f'{block}.')
      }
      by_model.setdefault(fields.pop('model.name'), fields)
    for field in sorted({f for fields in by_model.values() for f in fields}):
      values = {
          style.MODEL_NAMES[model]: _text(by_model[model], field)
          for model in style.sort_models(by_model)
      }
      rows.append({'preset': preset, 'field': field, **values})
  return None, pd.DataFrame(rows)


def _text(fields: Mapping[str, Any], field: str) -> str:
  if field not in fields:
    return ''  # The model has no such setting.
  value = fields[field]
  if value is None:
    return 'none'
  return f'{value:g}' if isinstance(value, float) else str(value)


FIGURES = {
    f'table_{name.lower()}': described.Figure(
        f'Table {name}: hyperparameters on {what}',
        (),  # Settings, not results.
        functools.partial(_draw, experiment=experiment),
    )
    for name, experiment, what in (
        ('A10', 'fig3b', 'the hyperteacher'),
        ('A11', 'fig4c', 'the preferences'),
        ('A12', 'fig4e', 'the goals'),
    )
}
