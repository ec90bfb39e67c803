"""Fuzzy logic: Figure 2C and Table A1 of Schug et al. (2025), and decoding.

R^2 is `relative_r2`, as in the released code. Bars show new combinations of
known terms; beside each bar stands R^2 on seen ones.
"""

from collections.abc import Sequence
import functools

import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.paper import model_bars
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.studies.in_context import fuzzy_logic
from modular_hyperteacher.studies.in_context import naming

EXPERIMENT = 'fuzzy_logic'
METRIC = 'relative_r2'
CELL = ('model.body.attention', 'task.num_support', 'task.ood_fraction')
MAIN = ('softmax', 'linear', 'hyla')
# Row of Table A1 -> label, published OOD R2 and its standard error.
_KINDS = {
    'softmax': ('softmax', (0.6328, 0.0231)),
    'linear': ('linear', (0.5989, 0.0522)),
    'hyla': ('HYLA', (0.8113, 0.0777)),
    'linear_rms_head': ('linear +<br>RMSHead', (0.6893, 0.0510)),
    'hyla_no_rms_head': ('HYLA -<br>RMSHead', (0.8127, 0.0788)),
    'hyla_no_nonlinearity': ('HYLA - non-<br>linearity', (0.8454, 0.0532)),
    'hyla_no_nonlinearity_no_rms_head': (
        'HYLA -<br>both',
        (0.7942, 0.0743),
    ),
    'hyla_softmax': ('HYLA with<br>softmax', (0.7098, 0.0708)),
}
COLOURS = {'softmax': '#0072B2', 'linear': '#E69F00', 'hyla': '#009E73'}
_ABLATION = '#999999'
BY_CODES = ('softmax', 'hyla')  # Whose codes are decoded.
(_SCORED,) = naming.TERMS.scored


def _table(grid: cells.Cells) -> pd.DataFrame:
  blocks = range(naming.TERMS.num_blocks(grid.frame))
  names = (*map(naming.TERMS.metric, blocks), naming.TERMS.majority)
  return cells.make_table(
      grid,
      {
          split: (split, METRIC)
          for split in ('test', 'ood', fuzzy_logic.UNKNOWN_TERMS)
      }
      | {'decoding': ('ood', 'decoding_r2')}
      | {name: (_SCORED, name) for name in names},
  )


def make_cell(
    attention: str, num_tokens: int = 32, ood_fraction: float = 0.7
) -> cells.Cell:
  """Returns a cell; one of the tokens is the query."""
  return dict(zip(CELL, (attention, num_tokens - 1, ood_fraction)))


def label(attention: str) -> str:
  """Returns how figures call a kind of attention; may hold <br>."""
  return _KINDS[attention][0]


def _bars(
    grid: cells.Cells,
    kinds: Sequence[str],
    num_tokens: int = 32,
    ood_fraction: float = 0.7,
    metric: str = METRIC,
) -> list[bars.Bar]:
  drawn = []
  for kind in kinds:
    cell = make_cell(kind, num_tokens, ood_fraction)
    colour, seen = COLOURS.get(kind, _ABLATION), grid.seen(cell, metric)
    drawn.append(grid.bar(cell, label(kind), colour, metric, beside=seen))
  return drawn


def _panels_2c(grid: cells.Cells) -> dict[str, list[bars.Bar]]:
  """Returns a panel per length and held-out share."""
  return {
      f'{length + 1} tokens, {fraction:.0%} held out': _bars(
          grid, MAIN, length + 1, fraction
      )
      for length in sorted(grid.axis('num_support'))
      for fraction in sorted(grid.axis('ood_fraction'))
      if grid.find(num_support=length, ood_fraction=fraction)
  }


def _panels_a1(grid: cells.Cells) -> dict[str, list[bars.Bar]]:
  """Returns all kinds, with the published values beside them."""
  return {
      '32 tokens, 70% held out': [
          bar._replace(beside=_KINDS[kind][1])
          for kind, bar in zip(_KINDS, _bars(grid, tuple(_KINDS)))
      ]
  }


def _panels_decoding(grid: cells.Cells) -> dict[str, list[bars.Bar]]:
  """Returns how well terms of new combinations can be decoded."""
  return {
      'From the residual stream (R²)': _bars(grid, MAIN, metric='decoding_r2'),
      'From codes (macro F1)': [
          grid.bar(
              make_cell(kind),
              f'{label(kind)},<br>block {block + 1}',
              COLOURS[kind],
              naming.TERMS.metric(block),
              split=_SCORED,
          )
          for kind in BY_CODES
          for block in range(naming.TERMS.num_blocks(grid.frame))
      ],
  }


def _majority(grid: cells.Cells) -> list[str]:
  names = [
      f'{majority.mean():.2f} for {label(kind)}'
      for kind in BY_CODES
      for majority in [
          grid.values(make_cell(kind), _SCORED, naming.TERMS.majority)
      ]
      if len(majority)
  ]
  if not names:
    return []
  return [f'F1 of always naming the most frequent term: {", ".join(names)}.']


_describe = functools.partial(
    described.bar_grid,
    experiment=EXPERIMENT,
    cell=CELL,
    measures=_table,
    y_range=(0, 1),
)
_NEW = 'R² on new combinations'
FIGURES = {
    'fuzzy_logic': _describe(
        y_title=_NEW,
        beside_name=model_bars.SEEN,
        title='Fuzzy logic: which attention solves new functions?',
        panels=_panels_2c,
    ),
    'fuzzy_logic_a1': _describe(
        y_title=_NEW,
        beside_name='published, whisker: standard error',
        title='Fuzzy logic: which part of HYLA matters?',
        panels=_panels_a1,
    ),
    'fuzzy_logic_decoding': _describe(
        y_title='R² or F1',
        beside_name=model_bars.SEEN,
        title='Fuzzy logic: can the terms of a function be decoded?',
        panels=_panels_decoding,
        notes=(_majority,),
    ),
}
