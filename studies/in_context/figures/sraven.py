"""sRAVEN: Table A1 and Figure 5 of Schug et al. (2025).

Bars are the share of instances whose whole answer is right, on multisets of
rules that training never shows; beside each bar stands that on seen ones.
"""

import functools

import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.studies.in_context import naming
from modular_hyperteacher.studies.in_context.figures import fuzzy_logic

EXPERIMENT = 'sraven'
METRIC = 'accuracy_all'
MAIN = fuzzy_logic.MAIN
CELL = ('model.body.attention', 'model.body.num_heads', 'task.num_features')
UNPERMUTED = naming.RULES.scored[0]


def make_cell(attention: str, num_heads: int, num_features: int) -> cells.Cell:
  """Returns a cell."""
  return dict(zip(CELL, (attention, num_heads, num_features)))


def _bar(
    grid: cells.Cells,
    cell: cells.Cell,
    metric: str = METRIC,
    label: str | None = None,
) -> bars.Bar:
  kind = cell[CELL[0]]
  return grid.bar(
      cell,
      label or fuzzy_logic.label(kind),
      fuzzy_logic.COLOURS[kind],
      metric,
      split='ood' if metric == METRIC else UNPERMUTED,
      beside=grid.seen(cell, metric),
  )


def _panels(grid: cells.Cells) -> dict[str, list[bars.Bar]]:
  """Returns a panel of accuracies per number of features and heads."""
  return {
      f'{features} features, {heads} head{"s" * (heads > 1)}': [
          _bar(grid, make_cell(kind, heads, features))
          for kind in MAIN
          if grid.find(attention=kind, num_heads=heads, num_features=features)
      ]
      for features in sorted(grid.axis('num_features'))
      for heads in sorted(grid.axis('num_heads'), reverse=True)
      if grid.find(num_heads=heads, num_features=features)
  }


def _size(grid: cells.Cells) -> tuple[int, int]:
  return max(grid.axis('num_heads')), min(grid.axis('num_features'))


def _decoding(grid: cells.Cells) -> dict[str, list[bars.Bar]]:
  """Returns a panel per kind: how well codes name rules, by block."""
  return {
      fuzzy_logic.label(kind): [
          _bar(
              grid,
              make_cell(kind, *_size(grid)),
              naming.RULES.metric(block),
              f'block {block + 1}',
          )
          for block in range(naming.RULES.num_blocks(grid.frame))
      ]
      for kind in MAIN
  }


def _majority(grid: cells.Cells) -> list[str]:
  cell, metric = make_cell(MAIN[0], *_size(grid)), naming.RULES.majority
  majority = grid.values(cell, UNPERMUTED, metric)
  if majority.empty:
    return []
  return [f'F1 of always naming the most frequent rule: {majority.mean():.2f}.']


def _table(grid: cells.Cells) -> pd.DataFrame:
  metrics = map(naming.RULES.metric, range(naming.RULES.num_blocks(grid.frame)))
  names = (*metrics, naming.RULES.majority)
  return cells.make_table(
      grid,
      {split: (split, METRIC) for split in ('test', 'ood')}
      | {name: (UNPERMUTED, name) for name in names},
  )


_describe = functools.partial(
    described.bar_grid,
    experiment=EXPERIMENT,
    cell=CELL,
    measures=_table,
    y_range=(0, 1),
    beside_name='seen multisets, whisker: standard error',
)
FIGURES = {
    'sraven': _describe(
        y_title='share of right answers, new multisets',
        title='sRAVEN: which attention solves new rules?',
        panels=_panels,
    ),
    'sraven_decoding': _describe(
        y_title='macro F1 of rules',
        title='sRAVEN: can rules be decoded from codes of attention?',
        panels=_decoding,
        notes=(_majority,),
    ),
}
