"""Claims of "Attention as a Hypernetwork" (Schug et al., 2025), fuzzy logic.

HY-1, that attention is a linear hypernetwork, is an identity, which
tests/in_context/attention_test.py checks. All claims are about `relative_r2`.
"""

import itertools

import numpy as np
import pandas as pd

from figures.claims import comparisons
from figures.claims import verdicts
from figures.extensions import fuzzy_logic

_UNKNOWN = 'ood_unknown_terms'
_FRACTIONS = (0.3, 0.5, 0.7)
_ABLATIONS = (
    'hyla_no_rms_head',
    'hyla_no_nonlinearity',
    'hyla_no_nonlinearity_no_rms_head',
)


def _r2(
    frame: pd.DataFrame,
    attention: str,
    split: str = 'ood',
    num_tokens: int = 32,
    ood_fraction: float = 0.7,
) -> comparisons.Sample:
  cell = fuzzy_logic.make_cell(attention, num_tokens, ood_fraction)
  return comparisons.sample(frame, cell, split, fuzzy_logic.METRIC)


def _hyla_above(
    frame: pd.DataFrame, *others: str
) -> list[comparisons.Comparison]:
  hyla = _r2(frame, 'hyla')
  return [comparisons.difference(hyla, _r2(frame, kind)) for kind in others]


def _falls_least(frame: pd.DataFrame) -> list[comparisons.Comparison]:
  """Compares slopes over the held-out share, with 16 tokens."""
  samples = {
      kind: [_r2(frame, kind, 'ood', 16, share) for share in _FRACTIONS]
      for kind in fuzzy_logic.MAIN
  }
  fall = -(np.array(_FRACTIONS) - np.mean(_FRACTIONS))
  fall /= np.sum(fall**2)
  falls = [
      comparisons.between(f'fall of {kind}', found, fall)
      for kind, found in samples.items()
  ]
  steeper = [
      comparisons.between(
          f'fall of {kind} - fall of hyla',
          [*samples[kind], *samples['hyla']],
          np.concatenate([fall, -fall]),
      )
      for kind in fuzzy_logic.MAIN[:2]
  ]
  return falls + steeper


def _rises_with_examples(frame: pd.DataFrame) -> list[comparisons.Comparison]:
  return [
      comparisons.difference(_r2(frame, kind), _r2(frame, kind, num_tokens=16))
      for kind in fuzzy_logic.MAIN
  ]


def _same_on_seen(frame: pd.DataFrame) -> list[comparisons.Comparison]:
  """Differences on seen combinations, three times, below the OOD range.

  The range is that of the OOD means; the kinds at its ends are the same for
  all seeds.
  """
  ood = {kind: _r2(frame, kind) for kind in fuzzy_logic.MAIN}
  if any(s.values.empty for s in ood.values()):
    return []
  ordered = sorted(ood.values(), key=lambda s: s.values.mean())
  seen = [_r2(frame, kind, 'test') for kind in fuzzy_logic.MAIN]
  return [
      comparisons.between(
          f'range of OOD R2 - 3 ({a.name} - {b.name})',
          [ordered[-1], ordered[0], a, b],
          (1, -1, -3, 3),
      )
      for a, b in itertools.permutations(seen, 2)
  ]


def _unknown_terms_fail(frame: pd.DataFrame) -> list[comparisons.Comparison]:
  found = []
  for kind in fuzzy_logic.MAIN:
    unknown = _r2(frame, kind, _UNKNOWN)
    found.append(comparisons.below(unknown, 0.5))
    found.append(comparisons.difference(_r2(frame, kind), unknown, 0.1))
  return found


def _claim(
    id_: str, sentence: str, artefact: str, compare: verdicts.Compare
) -> verdicts.Claim:
  return verdicts.Claim(
      id=id_,
      sentence=sentence,
      artefact=f'Schug et al. (2025), {artefact}',
      experiment=fuzzy_logic.EXPERIMENT,
      figure='fuzzy_logic_a1' if 'Table' in artefact else 'fuzzy_logic',
      cell=fuzzy_logic.CELL,
      compare=compare,
  )


CLAIMS = (
    _claim(
        'HY-2',
        'On new combinations of terms of fuzzy logic, HYLA has a higher R2'
        ' than softmax and linear attention.',
        'Table A1',
        lambda frame: _hyla_above(frame, 'softmax', 'linear'),
    ),
    _claim(
        'HY-3',
        'R2 on new combinations falls with the share of combinations that is'
        ' held out, and falls least for HYLA.',
        'Figure 2C',
        _falls_least,
    ),
    _claim(
        'HY-4',
        'R2 on new combinations is higher with 32 tokens than with 16, for'
        ' all three kinds of attention.',
        'Figure 2C',
        _rises_with_examples,
    ),
    _claim(
        'HY-5',
        'On seen combinations, the three kinds of attention differ in R2 by'
        ' less than a third of their range on new ones.',
        'Figure A3',
        _same_on_seen,
    ),
    _claim(
        'HY-6',
        'With terms that training never shows, R2 is below 0.5, and more than'
        ' 0.1 below that on new combinations of known terms, for all three'
        ' kinds of attention.',
        'Figure A3C',
        _unknown_terms_fail,
    ),
    _claim(
        'HY-7',
        "HYLA's R2 on new combinations falls without its nonlinearity, without"
        ' its normalisation over heads, and without both. The text says so;'
        ' the published values for fuzzy logic do not.',
        'Table A1',
        lambda frame: _hyla_above(frame, *_ABLATIONS),
    ),
)
