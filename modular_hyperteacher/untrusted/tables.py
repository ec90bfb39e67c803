"""Reads tables from CSV files, bit for bit."""

from collections.abc import Sequence
import csv
import io
import pathlib

import pandas as pd

from modular_hyperteacher import errors

_PARSED = {'step': int, 'seed': int, 'value': float}  # Other columns are text.


def parse(
    path: pathlib.Path, content: bytes, columns: Sequence[str]
) -> pd.DataFrame:
  """Returns a CSV table with these columns; missing values are NaN.

  Python parses the numbers, because pandas' parser may change the last digit,
  and a resumed run must write exactly what an uninterrupted one does.

  Raises:
    UserError: names the path and the first malformed line.
  """
  line = 1
  try:
    if not content.endswith(b'\n'):
      raise ValueError('its end is missing')
    lines = csv.reader(io.StringIO(content.decode()), strict=True)
    if next(lines, None) != list(columns):
      raise ValueError(f'its columns must be {",".join(columns)}')
    parsers = [(i, _PARSED[c]) for i, c in enumerate(columns) if c in _PARSED]
    rows = []
    for fields in lines:
      line = lines.line_num
      if len(fields) != len(columns) or '' in fields[:-1]:
        raise ValueError(f'a row must have {len(columns)} fields')
      fields[-1] = fields[-1] or 'nan'
      for i, parse_number in parsers:
        fields[i] = parse_number(fields[i])
      rows.append(fields)
    frame = pd.DataFrame(rows, columns=list(columns))
    kinds = {name: _PARSED[name] for name in columns if name in _PARSED}
    return frame.astype(kinds)
  except (OverflowError, ValueError, csv.Error) as error:
    raise errors.UserError(f'{path}, line {line}: {error}.') from error
