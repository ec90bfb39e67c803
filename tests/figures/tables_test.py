"""Tables in Markdown, and pages that hold them."""

import pandas as pd
import pytest

from modular_hyperteacher.figures.plotting import tables


def test_cells_cannot_break_a_table() -> None:
  frame = pd.DataFrame({'a': ['x|y', '2'], 'b': [None, '1']})
  text = tables.to_markdown(frame)
  assert text == '| a | b |\n| --- | --- |\n| x\\|y |  |\n| 2 | 1 |\n'


def test_only_what_is_between_the_markers_is_replaced() -> None:
  page = 'One.\n<!-- table: a -->\nold\n<!-- end -->\nTwo. <!-- end -->\n'
  filled = tables.fill(page, {'a': r'| \1 |' + '\n'})
  assert filled == page.replace('old\n', '\n| \\1 |\n\n')
  assert tables.fill(filled, {'a': r'| \1 |' + '\n'}) == filled
  with pytest.raises(ValueError, match="no markers for the table 'b'"):
    tables.fill(page, {'b': ''})
