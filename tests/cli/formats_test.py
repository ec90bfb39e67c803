"""Tables in Markdown, and pages that hold them."""

import pytest

from modular_hyperteacher.cli import formats


def test_cells_cannot_break_a_table() -> None:
  text = formats.table({'a': ['x|y', '2'], 'b': ['', '1']})
  assert text == '| a | b |\n| --- | --- |\n| x\\|y |  |\n| 2 | 1 |\n'


def test_only_what_is_between_the_markers_is_replaced() -> None:
  page = 'One.\n<!-- table: a -->\nold\n<!-- end -->\nTwo. <!-- end -->\n'
  filled = formats.fill(page, {'a': r'| \1 |' + '\n'})
  assert filled == page.replace('old\n', '\n| \\1 |\n\n')
  assert formats.fill(filled, {'a': r'| \1 |' + '\n'}) == filled
  with pytest.raises(ValueError, match="no markers for the table 'b'"):
    formats.fill(page, {'b': ''})
