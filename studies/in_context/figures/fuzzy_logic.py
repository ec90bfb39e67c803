"""Fuzzy logic: Figure 2C and Table A1 of Schug et al. (2025), and decoding.

R^2 is `relative_r2`, as in the released code. Bars show new combinations of
known terms; beside each bar stands R^2 on seen ones.
"""

from collections.abc import Mapping, Sequence

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.studies.in_context import naming

EXPERIMENT = 'fuzzy_logic'
METRIC = 'relative_r2'
TITLE_2C = 'Fuzzy logic: R² by kind of attention, examples and held-out share'
TITLE_A1 = 'Fuzzy logic: HYLA and its ablations'
TITLE_DECODING = 'Fuzzy logic: can the terms of a function be decoded?'
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
_MEASURES = {
    'test': ('test', METRIC),
    'ood': ('ood', METRIC),
    'ood_unknown_terms': ('ood_unknown_terms', METRIC),
    'decoding': ('ood', 'decoding_r2'),
    **{
        name: (*naming.TERMS.scored, name)
        for name in (*map(naming.TERMS.metric, range(2)), naming.TERMS.majority)
    },
}


def make_cell(
    attention: str, num_tokens: int = 32, ood_fraction: float = 0.7
) -> cells.Cell:
  """Returns a cell; one of the tokens is the query."""
  return dict(zip(CELL, (attention, num_tokens - 1, ood_fraction)))


def label(attention: str) -> str:
  """Returns how figures call a kind of attention; may hold <br>."""
  return _KINDS[attention][0]


def draw_2c(library: data.Library) -> cells.Drawn:
  """Returns bars of three kinds: a panel per length and held-out share."""
  found = cells.read(library, EXPERIMENT, CELL)
  panels = {
      f'{length + 1} tokens, {fraction:.0%} held out': _bars(
          found, MAIN, length + 1, fraction
      )
      for length in sorted(found.axis('num_support'))
      for fraction in sorted(found.axis('ood_fraction'))
      if found.find(num_support=length, ood_fraction=fraction)
  }
  return finish(found, panels, TITLE_2C, 'R² on new combinations')


def draw_a1(library: data.Library) -> cells.Drawn:
  """Returns bars of all kinds with the published values beside them."""
  found = cells.read(library, EXPERIMENT, CELL)
  panels = {
      '32 tokens, 70% held out': [
          bar._replace(beside=_KINDS[kind][1])
          for kind, bar in zip(_KINDS, _bars(found, tuple(_KINDS)))
      ]
  }
  return finish(
      found,
      panels,
      TITLE_A1,
      'R² on new combinations',
      beside='published, whisker: standard error',
  )


def draw_decoding(library: data.Library) -> cells.Drawn:
  """Returns bars of how well terms of new combinations can be decoded."""
  found = cells.read(library, EXPERIMENT, CELL)
  (split,) = naming.TERMS.scored
  panels = {
      'From the residual stream (R²)': _bars(found, MAIN, metric='decoding_r2'),
      'From codes (macro F1)': [
          found.bar(
              make_cell(kind),
              f'{label(kind)},<br>block {block + 1}',
              COLOURS[kind],
              naming.TERMS.metric(block),
              split=split,
          )
          for kind in BY_CODES
          for block in range(2)
      ],
  }
  names = [
      f'{majority.mean():.2f} for {label(kind)}'
      for kind in BY_CODES
      for majority in [
          found.values(make_cell(kind), split, naming.TERMS.majority)
      ]
      if len(majority)
  ]
  if names:
    line = f'F1 of always naming the most frequent term: {", ".join(names)}.'
    found = found._replace(notes=(line,))
  return finish(found, panels, TITLE_DECODING, 'R² or F1')


def _bars(
    found: cells.Cells,
    kinds: Sequence[str],
    num_tokens: int = 32,
    ood_fraction: float = 0.7,
    metric: str = METRIC,
) -> list[bars.Bar]:
  drawn = []
  for kind in kinds:
    cell = make_cell(kind, num_tokens, ood_fraction)
    colour, seen = COLOURS.get(kind, _ABLATION), found.seen(cell, metric)
    drawn.append(found.bar(cell, label(kind), colour, metric, beside=seen))
  return drawn


def finish(
    found: cells.Cells,
    panels: Mapping[str, Sequence[bars.Bar]],
    title: str,
    y_title: str,
    beside: str = 'seen combinations, whisker: standard error',
    measures: Mapping[str, tuple[str, str]] = _MEASURES,
) -> cells.Drawn:
  """Returns bars from 0 to 1, and the table of all cells."""
  figure = bars.draw(
      panels,
      title=title,
      y_title=y_title,
      y_range=(0, 1),
      caption=found.caption(),
      beside_name=beside,
  )
  return figure, cells.make_table(found, measures)
