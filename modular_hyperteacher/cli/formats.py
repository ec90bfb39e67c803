"""Numbers as text, and tables on Markdown pages that are hand-written."""

from collections.abc import Mapping, Sequence
import re


def number(value: float) -> str:
  """Returns three decimals, or two digits if the number is below 0.001."""
  return f'{value:.1e}' if 0 < abs(value) < 1e-3 else f'{value:.3f}'


def table(columns: Mapping[str, Sequence[str]]) -> str:
  """Returns a table; `columns` maps headers to cells of equal number."""
  rows = [list(columns), ['---'] * len(columns), *zip(*columns.values())]
  cells = [[text.replace('|', r'\|') for text in row] for row in rows]
  return ''.join(f'| {" | ".join(row)} |\n' for row in cells)


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
