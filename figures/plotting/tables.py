"""Tables as texts, as Markdown, and on pages that are hand-written."""

from collections.abc import Mapping
import math
import re
from typing import Any

import pandas as pd

from modular_hyperteacher.cli import formats


def to_markdown(table: pd.DataFrame) -> str:
  """Returns a table; columns x_mean and x_se become one, 'x': mean ± error."""
  return formats.table(texts(table))


def fill(page: str, tables: Mapping[str, str]) -> str:
  """Returns a page with the tables of these names replaced.

  They stand between the lines '<!-- table: NAME -->' and '<!-- end -->'.
  ValueError if a table has no such place.
  """
  for name, text in tables.items():
    page, number = re.subn(
        rf'(<!-- table: {name} -->\n).*?(<!-- end -->)',
        lambda match, text=text: f'{match[1]}\n{text}\n{match[2]}',
        page,
        flags=re.DOTALL,
    )
    if not number:
      raise ValueError(f"the page has no markers for the table '{name}'.")
  return page


def texts(table: pd.DataFrame) -> dict[str, list[str]]:
  """Returns column -> texts; x_mean and x_se become one column, x."""
  columns = {}
  for name in table.columns:
    stem, _, ending = name.rpartition('_')
    if ending == 'mean' and f'{stem}_se' in table:
      errors = table[f'{stem}_se']
      columns[stem] = [with_error(m, s) for m, s in zip(table[name], errors)]
    elif not (ending == 'se' and f'{stem}_mean' in table):
      columns[name] = [number(value) for value in table[name]]
  return columns


def with_error(value: float | None, error: float | None) -> str:
  """Returns 'value ± error', 'value' or ''; None and NaN are missing."""
  text = number(value)
  return f'{text} ± {number(error)}' if text and number(error) else text


def number(value: Any) -> str:
  """Returns a value as text; '' if it is missing."""
  if pd.isna(value):  # None, NaN, or pandas' own.
    return ''
  if isinstance(value, float):
    return formats.number(value) if math.isfinite(value) else str(value)
  return str(value)
