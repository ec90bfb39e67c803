"""Figures of this study."""

from collections.abc import Mapping
import functools
from typing import Any

from modular_hyperteacher.figures import registry
from modular_hyperteacher.studies.meta_seq2seq.figures import scan_attention
from modular_hyperteacher.studies.meta_seq2seq.figures import scan_directions
from modular_hyperteacher.studies.meta_seq2seq.figures import scan_lengths
from modular_hyperteacher.studies.meta_seq2seq.figures import scan_tables


def _of(module: Any, name: str, *experiments: str) -> registry.Figure:
  """Returns one of several figures of a module."""
  draw = functools.partial(module.draw, name)
  return registry.Figure(module.TITLES[name], experiments, draw)


FIGURES: Mapping[str, registry.Figure] = {
    'scan_me': _of(scan_tables, 'scan_me', 'scan_me'),
    'scan_attention_me': _of(scan_attention, 'scan_attention_me', 'scan_me'),
    'scan_table2': _of(scan_tables, 'scan_table2', 'scan_add_jump'),
    'scan_attention': _of(scan_attention, 'scan_attention', 'scan_add_jump'),
    'scan_table3': _of(
        scan_tables, 'scan_table3', 'scan_around_right', 'scan_length'
    ),
    'scan_directions': scan_directions.FIGURE,
    'scan_lengths': registry.Figure(
        scan_lengths.TITLE, scan_lengths.EXPERIMENTS, scan_lengths.draw
    ),
}
