"""Tables of plotted numbers, as Markdown."""

import math
from typing import Any

import pandas as pd


def to_markdown(table: pd.DataFrame) -> str:
  """Returns a table with every pair of columns x_mean, x_se as 'x': m ± s."""
  columns = {}
  for name in table.columns:
    stem, _, ending = name.rpartition('_')
    if ending == 'mean' and f'{stem}_se' in table:
      errors = table[f'{stem}_se']
      columns[stem] = [with_error(m, s) for m, s in zip(table[name], errors)]
    elif not (ending == 'se' and f'{stem}_mean' in table):
      columns[name] = [_text(value) for value in table[name]]
  rows = [list(columns), ['---'] * len(columns), *zip(*columns.values())]
  return ''.join(f'| {" | ".join(row)} |\n' for row in rows)


def with_error(value: float | None, error: float | None) -> str:
  """Returns 'value ± error', without what is missing."""
  text = _text(value)
  return f'{text} ± {_text(error)}' if text and _text(error) else text


def _text(value: Any) -> str:
  if value is None or value != value:
    return ''
  if isinstance(value, float):
    return f'{value:.3f}' if math.isfinite(value) else str(value)
  return str(value).replace('|', r'\|')
