"""Claims of "Attention as a Hypernetwork" (Schug et al., 2025), fuzzy logic.

HY-1 is an identity, measured rather than trained. HY-8 is about F1 of naming
terms, all others about `relative_r2`.
"""

import functools
import itertools

import pandas as pd

from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.studies.in_context import identities
from modular_hyperteacher.studies.in_context import naming
from modular_hyperteacher.studies.in_context.figures import fuzzy_logic

_UNKNOWN = 'ood_unknown_terms'
_FRACTIONS = (0.3, 0.5, 0.7)
_ABLATIONS = (
    'hyla_no_rms_head',
    'hyla_no_nonlinearity',
    'hyla_no_nonlinearity_no_rms_head',
)
# Errors of float32, relative to the largest output.
EXACT = 1e-5


def _r2(
    frame: pd.DataFrame,
    attention: str,
    split: str = 'ood',
    num_tokens: int = 32,
    ood_fraction: float = 0.7,
    metric: str = fuzzy_logic.METRIC,
) -> comparisons.Sample:
  cell = fuzzy_logic.make_cell(attention, num_tokens, ood_fraction)
  return comparisons.sample(frame, cell, split, metric)


def _hyla_above(frame: pd.DataFrame, *others: str) -> comparisons.Comparisons:
  return [_r2(frame, 'hyla') > _r2(frame, kind) for kind in others]


def _falls_least(frame: pd.DataFrame) -> comparisons.Comparisons:
  """Compares slopes over the held-out share."""
  falls = [
      comparisons.slope(
          f'fall of {kind}',
          [_r2(frame, kind, 'ood', 16, share) for share in _FRACTIONS],
          [-share for share in _FRACTIONS],
      )
      for kind in fuzzy_logic.MAIN
  ]
  *others, hyla = falls
  return [*(fall > 0 for fall in falls), *(fall > hyla for fall in others)]


def _same_on_seen(frame: pd.DataFrame) -> comparisons.Comparisons:
  """Compares the OOD range with thrice each difference on seen combinations.

  The kinds at the ends of the range are chosen, for every seed, by the others.
  """
  ood = [_r2(frame, kind) for kind in fuzzy_logic.MAIN]
  spread = comparisons.range_of('range of OOD R2', ood)
  seen = [_r2(frame, kind, 'test') for kind in fuzzy_logic.MAIN]
  for a, b in itertools.permutations(seen, 2):
    name = f'range of OOD R2 - 3 ({a.name} - {b.name})'
    yield (spread - 3 * (a - b)).named(name) > 0


def _unknown_terms_fail(frame: pd.DataFrame) -> comparisons.Comparisons:
  for kind in fuzzy_logic.MAIN:
    unknown = _r2(frame, kind, _UNKNOWN)
    yield unknown < 0.5
    yield _r2(frame, kind) - unknown > 0.1


def _terms_can_be_named(frame: pd.DataFrame) -> comparisons.Comparisons:
  """Compares the best block, chosen for every seed by the others."""
  (split,) = naming.TERMS.scored
  for kind in fuzzy_logic.BY_CODES:
    f1 = functools.partial(_r2, frame, kind, split)
    blocks = [
        f1(metric=naming.TERMS.metric(block))
        for block in range(naming.TERMS.num_blocks(frame))
    ]
    best = comparisons.best_of(f'best block of {kind}', blocks)
    yield best - f1(metric=naming.TERMS.majority) > 0.2


def exact(
    id_: str, sentence: str, artefact: str, figure: str, *names: str
) -> verdicts.Claim:
  """Returns the claim that the named identities hold."""

  def compare(frame: pd.DataFrame) -> comparisons.Comparisons:
    error = comparisons.at(frame, ('identity',), 'test', identities.METRIC)
    return [error(name) < EXACT for name in names]

  return verdicts.Claim(
      id=id_,
      sentence=sentence,
      artefact=artefact,
      experiment='identities',
      figure=figure,
      cell=identities.CELL,
      compare=compare,
      read=identities.MEASURED.read,
  )


_claim = functools.partial(
    verdicts.Claim,
    experiment=fuzzy_logic.EXPERIMENT,
    figure='fuzzy_logic',
    cell=fuzzy_logic.CELL,
)
CLAIMS = (
    exact(
        'HY-1',
        'Multi-head attention, softmax or linear, is a linear hypernetwork'
        ' whose code is the scores of the heads; outputs differ by rounding'
        f' only (relative error below {EXACT:g}).',
        'Schug et al. (2025), Section 2.1',
        'fuzzy_logic_a1',
        *identities.ATTENTION,
    ),
    _claim(
        'HY-2',
        'On new combinations of terms of fuzzy logic, HYLA has a higher R2'
        ' than softmax and linear attention.',
        artefact='Schug et al. (2025), Table A1',
        figure='fuzzy_logic_a1',
        compare=lambda frame: _hyla_above(frame, 'softmax', 'linear'),
    ),
    _claim(
        'HY-3',
        'With 16 tokens, R2 on new combinations falls with the share of'
        ' combinations that is held out, and falls least for HYLA.',
        artefact='Schug et al. (2025), Figure 2C',
        compare=_falls_least,
    ),
    _claim(
        'HY-4',
        'R2 on new combinations is higher with 32 tokens than with 16, for'
        ' all three kinds of attention.',
        artefact='Schug et al. (2025), Figure 2C',
        compare=lambda frame: [
            _r2(frame, kind) > _r2(frame, kind, num_tokens=16)
            for kind in fuzzy_logic.MAIN
        ],
    ),
    _claim(
        'HY-5',
        'On seen combinations, the three kinds of attention differ in R2 by'
        ' less than a third of their range on new ones.',
        artefact='Schug et al. (2025), Figure A3',
        compare=_same_on_seen,
    ),
    _claim(
        'HY-6',
        'With terms that training never shows, R2 is below 0.5, and more than'
        ' 0.1 below that on new combinations of known terms, for all three'
        ' kinds of attention.',
        artefact='Schug et al. (2025), Figure A3C',
        compare=_unknown_terms_fail,
    ),
    _claim(
        'HY-7',
        "HYLA's R2 on new combinations falls without its nonlinearity, without"
        ' its normalisation over heads, and without both. The text says so;'
        ' the published values for fuzzy logic do not.',
        artefact='Schug et al. (2025), Table A1',
        figure='fuzzy_logic_a1',
        compare=lambda frame: _hyla_above(frame, *_ABLATIONS),
    ),
    _claim(
        'HY-8',
        'The terms of new combinations can be named from the scores of a'
        " token's attention to itself: in the best block, macro F1 exceeds"
        ' that of always naming the most frequent term by more than 0.2, for'
        ' HYLA and softmax attention.',
        artefact='Schug et al. (2025), Figure 2B',
        compare=_terms_can_be_named,
    ),
)
