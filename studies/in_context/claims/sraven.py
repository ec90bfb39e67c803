"""Claims on sRAVEN: Schug et al. (2025).

The laptop's instances have two features, the paper's four. HY-10, HY-13, HY-15,
HY-17 and HY-18 need sizes that were not trained; README.md lists them.
"""

import functools

import pandas as pd

from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.studies.in_context import ambiguity
from modular_hyperteacher.studies.in_context import naming
from modular_hyperteacher.studies.in_context.figures import sraven

_VARIED = ('softmax', 'hyla')
# Values of a feature -> published share of ambiguous instances, its error.
_PUBLISHED = {4: (0.0642, 0.0038), 8: (0.0032, 0.0009), 16: (0.0005, 0.0003)}
# Values of a feature -> largest share of ambiguous instances that is 'rare'.
_RARE = {4: 0.1, 8: 0.01, 16: 0.005}


def _accuracy(
    frame: pd.DataFrame,
    attention: str,
    num_heads: int | None = None,
    num_features: int | None = None,
) -> comparisons.Sample:
  most_heads, fewest_features = _size(frame)
  cell = sraven.make_cell(
      attention, num_heads or most_heads, num_features or fewest_features
  )
  return comparisons.sample(frame, cell, 'ood', sraven.METRIC)


def _size(frame: pd.DataFrame) -> tuple[int, int]:
  """Returns the most heads and the fewest features that were trained."""
  heads, features = (frame[column] for column in sraven.CELL[1:])
  return int(heads.max()), int(features.min())


def _fewer_features_help(frame: pd.DataFrame) -> comparisons.Comparisons:
  for kind in _VARIED:
    two, three = (_accuracy(frame, kind, num_features=n) for n in (2, 3))
    yield two > three


def _rules_can_be_named(frame: pd.DataFrame) -> comparisons.Comparisons:
  f1 = comparisons.at(frame, sraven.CELL, sraven.UNPERMUTED)
  for kind in _VARIED:
    cell = sraven.make_cell(kind, *_size(frame)).values()
    rules = naming.RULES
    first = f1(*cell, metric=rules.metric(0))
    last = f1(*cell, metric=rules.metric(rules.num_blocks(frame) - 1))
    yield last - f1(*cell, metric=rules.majority) > 0.1
    yield last > first


def _share(
    frame: pd.DataFrame, num_values: int, metric: str
) -> comparisons.Sample:
  cell: cells.Cell = dict(zip(ambiguity.CELL, (4, num_values)))
  return comparisons.sample(frame, cell, 'test', metric)


def _is_as_published(frame: pd.DataFrame) -> comparisons.Comparisons:
  for num_values, (published, error) in _PUBLISHED.items():
    share = _share(frame, num_values, 'as_released')
    yield share < published + 3 * error
    if published > 3 * error:
      yield share > published - 3 * error


def _is_rare(frame: pd.DataFrame) -> comparisons.Comparisons:
  for num_values, bound in _RARE.items():
    yield _share(frame, num_values, 'in_any_feature') < bound


_claim = functools.partial(
    verdicts.Claim,
    experiment=sraven.EXPERIMENT,
    figure='sraven',
    cell=sraven.CELL,
)
_rare = functools.partial(
    verdicts.Claim,
    artefact='Schug et al. (2025), Table A2',
    experiment='sraven_ambiguity',
    figure='sraven',
    cell=ambiguity.CELL,
    read=ambiguity.MEASURED.read,
)
CLAIMS = (
    _claim(
        'HY-9',
        'On sRAVEN with new multisets of rules, HYLA gets more answers right'
        ' than softmax and linear attention.',
        artefact='Schug et al. (2025), Table A1',
        compare=lambda frame: [
            _accuracy(frame, 'hyla') > _accuracy(frame, kind)
            for kind in ('softmax', 'linear')
        ],
    ),
    _claim(
        'HY-11',
        'On new multisets of rules, one head gets fewer answers right than'
        ' eight, with HYLA and with softmax attention.',
        artefact='Schug et al. (2025), Figure 5C',
        compare=lambda frame: [
            _accuracy(frame, kind) > _accuracy(frame, kind, num_heads=1)
            for kind in _VARIED
        ],
    ),
    _claim(
        'HY-12',
        'On new multisets of rules, fewer answers are right with three'
        ' features than with two, with HYLA and with softmax attention.',
        artefact='Schug et al. (2025), Figure 5D',
        compare=_fewer_features_help,
    ),
    _claim(
        'HY-14',
        "Rules of new multisets can be named from the scores of a token's"
        ' attention to itself: in the last block, macro F1 exceeds that of'
        ' always naming the most frequent rule by more than 0.1, and that of'
        ' the first block, for HYLA and softmax attention.',
        artefact='Schug et al. (2025), Figure 5F',
        compare=_rules_can_be_named,
        figure='sraven_decoding',
    ),
    _rare(
        'HY-16',
        'Instances of sRAVEN whose context allows an answer that differs in'
        ' every feature are as rare as published, to within three standard'
        ' errors, by the released check: 6.4 ± 0.4%, 0.32 ± 0.09% and 0.05 ±'
        ' 0.03% with four features of 4, 8 and 16 values.',
        compare=_is_as_published,
    ),
    _rare(
        'HY-16x',
        "Ours, not the paper's: instances whose context allows an answer that"
        ' differs in any feature are rare, too: below 10%, 1% and 0.5% with'
        ' four features of 4, 8 and 16 values.',
        artefact=verdicts.OURS,
        compare=_is_rare,
    ),
)
