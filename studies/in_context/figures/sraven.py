"""sRAVEN: Table A1 and Figure 5 of Schug et al. (2025).

Bars are the share of instances whose whole answer is right, on multisets of
rules that training never shows; beside each bar stands that on seen ones.
"""

from collections.abc import Mapping, Sequence
import re

import pandas as pd

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.studies.in_context import naming
from modular_hyperteacher.studies.in_context.figures import fuzzy_logic

EXPERIMENT = 'sraven'
METRIC = 'accuracy_all'
TITLE = 'sRAVEN: accuracy by kind of attention, heads and features'
TITLE_DECODING = 'sRAVEN: can rules be decoded from codes of attention?'
MAIN = fuzzy_logic.MAIN
CELL = ('model.body.attention', 'model.body.num_heads', 'task.num_features')
UNPERMUTED = naming.RULES.scored[0]


def make_cell(attention: str, num_heads: int, num_features: int) -> cells.Cell:
  """Returns a cell."""
  return dict(zip(CELL, (attention, num_heads, num_features)))


def num_blocks(frame: pd.DataFrame) -> int:
  """Returns the number of blocks whose codes were read; at least 1."""
  of_a_block = naming.RULES.metric(0).removesuffix('0')
  pattern = re.compile(of_a_block + '([0-9]+)')
  found = [pattern.fullmatch(metric) for metric in frame['metric'].unique()]
  return 1 + max((int(match[1]) for match in found if match), default=0)


def draw(library: data.Library) -> cells.Drawn:
  """Returns bars of accuracies: a panel per number of features and heads."""
  found = cells.read(library, EXPERIMENT, CELL)
  panels = {
      f'{features} features, {heads} head{"s" * (heads > 1)}': [
          _bar(found, make_cell(kind, heads, features))
          for kind in MAIN
          if found.find(attention=kind, num_heads=heads, num_features=features)
      ]
      for features in sorted(found.axis('num_features'))
      for heads in sorted(found.axis('num_heads'), reverse=True)
      if found.find(num_heads=heads, num_features=features)
  }
  return _finish(found, panels, TITLE, 'share of right answers, new multisets')


def draw_decoding(library: data.Library) -> cells.Drawn:
  """Returns bars of how well rules are named from codes, by block."""
  found = cells.read(library, EXPERIMENT, CELL)
  size = max(found.axis('num_heads')), min(found.axis('num_features'))
  panels = {
      fuzzy_logic.label(kind): [
          _bar(
              found,
              make_cell(kind, *size),
              naming.RULES.metric(block),
              f'block {block + 1}',
          )
          for block in range(num_blocks(found.frame))
      ]
      for kind in MAIN
  }
  majority = found.values(
      make_cell(MAIN[0], *size), UNPERMUTED, naming.RULES.majority
  )
  if len(majority):
    line = f'F1 of always naming the most frequent rule: {majority.mean():.2f}.'
    found = found._replace(notes=(line,))
  return _finish(found, panels, TITLE_DECODING, 'macro F1 of rules')


def _bar(
    found: cells.Cells,
    cell: cells.Cell,
    metric: str = METRIC,
    label: str | None = None,
) -> bars.Bar:
  kind = cell[CELL[0]]
  return found.bar(
      cell,
      label or fuzzy_logic.label(kind),
      fuzzy_logic.COLOURS[kind],
      metric,
      split='ood' if metric == METRIC else UNPERMUTED,
      beside=found.seen(cell, metric),
  )


def _finish(
    found: cells.Cells,
    panels: Mapping[str, Sequence[bars.Bar]],
    title: str,
    y_title: str,
) -> cells.Drawn:
  names = [
      *map(naming.RULES.metric, range(num_blocks(found.frame))),
      naming.RULES.majority,
  ]
  return fuzzy_logic.finish(
      found,
      panels,
      title,
      y_title,
      beside='seen multisets, whisker: standard error',
      measures={
          'test': ('test', METRIC),
          'ood': ('ood', METRIC),
          **{name: (UNPERMUTED, name) for name in names},
      },
  )
