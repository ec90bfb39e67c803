"""Tables as Markdown and HTML."""

import html
import math
from typing import Any

import pandas as pd

from modular_hyperteacher.cli import summary
from modular_hyperteacher.profiling import markdown


def to_markdown(table: pd.DataFrame) -> str:
  """Returns a table; columns x_mean and x_se become one, 'x': mean ± error."""
  return markdown.table(_texts(table))


def to_html(table: pd.DataFrame) -> str:
  """Returns the same as an HTML table."""
  columns = _texts(table)
  head = ''.join(
      f'<th scope="col">{html.escape(name)}</th>' for name in columns
  )
  body = ''.join(
      f'<tr>{"".join(f"<td>{html.escape(text)}</td>" for text in row)}</tr>\n'
      for row in zip(*columns.values())
  )
  return (
      f'<table>\n<thead><tr>{head}</tr></thead>\n'
      f'<tbody>\n{body}</tbody>\n</table>\n'
  )


def to_page(title: str, table: pd.DataFrame) -> str:
  """Returns an HTML page of one table."""
  name = html.escape(title)
  return (
      '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">'
      '<meta name="viewport" content="width=device-width, initial-scale=1">'
      f'<title>{name}</title></head>\n'
      f'<body>\n<h1>{name}</h1>\n{to_html(table)}</body>\n</html>\n'
  )


def _texts(table: pd.DataFrame) -> dict[str, list[str]]:
  """Returns column -> texts; x_mean and x_se become one column, x."""
  columns = {}
  for name in table.columns:
    stem, _, ending = name.rpartition('_')
    if ending == 'mean' and f'{stem}_se' in table:
      errors = table[f'{stem}_se']
      columns[stem] = [with_error(m, s) for m, s in zip(table[name], errors)]
    elif not (ending == 'se' and f'{stem}_mean' in table):
      columns[name] = [_text(value) for value in table[name]]
  return columns


def with_error(value: float | None, error: float | None) -> str:
  """Returns 'value ± error', 'value' or ''; None and NaN are missing."""
  text = _text(value)
  return f'{text} ± {_text(error)}' if text and _text(error) else text


def _text(value: Any) -> str:
  if pd.isna(value):  # None, NaN, or pandas' own.
    return ''
  if isinstance(value, float):
    return summary.number(value) if math.isfinite(value) else str(value)
  return str(value)
