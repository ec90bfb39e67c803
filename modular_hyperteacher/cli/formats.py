"""Numbers and tables as text."""

from collections.abc import Mapping, Sequence


def number(value: float) -> str:
  """Returns three decimals, or two digits if the number is below 0.001."""
  return f'{value:.1e}' if 0 < abs(value) < 1e-3 else f'{value:.3f}'


def table(columns: Mapping[str, Sequence[str]]) -> str:
  """Returns a table in Markdown; `columns` maps headers to their cells."""
  rows = [list(columns), ['---'] * len(columns), *zip(*columns.values())]
  cells = [[text.replace('|', r'\|') for text in row] for row in rows]
  return ''.join(f'| {" | ".join(row)} |\n' for row in cells)
