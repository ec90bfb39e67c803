"""The algebra of samples, against numbers worked out by hand."""

from collections.abc import Callable, Mapping
import dataclasses
import math

import numpy as np
import pandas as pd
import pytest

from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.judging import verdicts


def _sample(
    name: str, values: Mapping[int, float], *lost: int
) -> comparisons.Sample:
  runs = pd.DataFrame({'run_id': name, 'seed': [*values], 'preset': 'laptop'})
  series = pd.Series(values, dtype=float)
  return comparisons.Sample(name, series, runs, {}, 'ood', 'accuracy', lost)


_A = _sample('a', {1: 0.9, 2: 0.7, 3: 0.8})
_B = _sample('b', {1: 0.5, 2: 0.6, 3: 0.4})
_C = _sample('c', {1: 0.25, 2: 0.5, 3: 0.2})


@pytest.mark.parametrize(
    'quantity, name, values',
    [
        (-_A, '-a', [-0.9, -0.7, -0.8]),
        (_A + _B, 'a + b', [1.4, 1.3, 1.2]),
        (_A - _B, 'a - b', [0.4, 0.1, 0.4]),
        (_A - 0.5, 'a - 0.5', [0.4, 0.2, 0.3]),
        (_A + 0.5, 'a + 0.5', [1.4, 1.2, 1.3]),
        (1 - _A, '1 - a', [0.1, 0.3, 0.2]),
        (2 * _A, '2 × a', [1.8, 1.4, 1.6]),
        (2 * _A - _B, '2 × a - b', [1.3, 0.8, 1.2]),
        (2 * (_A - _B), '2 × a - b', [0.8, 0.2, 0.8]),
        (_B / _C, 'b / c', [2.0, 1.2, 2.0]),
        ((_A - _B) - (_B - _C), 'a - b - b - c', [0.15, 0.0, 0.2]),
        (-(_A - _B) + _C, '-a - b + c', [-0.15, 0.4, -0.2]),
        (-(_B / _C) + _A / _B, '-b / c + a / b', [-0.2, 7 / 6 - 1.2, 0.0]),
        (comparisons.mean('m', [_A - _B, _C]), 'm', [0.325, 0.3, 0.3]),
        # Over x = 1, 2, 3, the slope is half of last - first.
        (
            comparisons.slope('s', [_A, _B, _C], (1, 2, 3)),
            's',
            [-0.325, -0.1, -0.3],
        ),
        # Over x = 0, 0, 3, it is (last - mean of the others) / 3.
        (
            comparisons.slope('s', [_A, _B, _C], (0, 0, 3)),
            's',
            [-0.15, -0.05, -0.4 / 3],
        ),
        (np.float64(2) * _A, '2 × a', [1.8, 1.4, 1.6]),
        (np.float64(1) - _A, '1 - a', [0.1, 0.3, 0.2]),
    ],
    ids=lambda given: given if isinstance(given, str) else '',
)
def test_arithmetic_is_taken_seed_by_seed(
    quantity: comparisons.Quantity, name: str, values: list[float]
) -> None:
  assert quantity.name == name
  assert quantity.values.index.tolist() == [1, 2, 3]
  assert quantity.values.tolist() == pytest.approx(values)


def test_a_sentence_by_hand() -> None:
  found = _A - _B > 0.05
  assert (found.name, found.bound) == ('a - b', 0.05)
  assert found.samples == (_A, _B)
  # 0.4, 0.1, 0.4: deviation 0.1 * 3**0.5, so a standard error of 0.1.
  assert found.estimate == pytest.approx((0.3, 0.1, 3))
  assert found.t == pytest.approx(2.5)
  # The 95% quantile of t with two degrees of freedom is 2.92.
  assert found.interval == pytest.approx((0.3 - 0.292, 0.3 + 0.292), abs=1e-4)
  for same in (_A > _B, _B < _A):
    assert (same.name, same.bound, same.may_differ) == ('a - b', 0.0, ())
    assert same.t == pytest.approx(3.0)
  below = _A < 1
  assert (below.name, below.bound) == ('-a', -1.0)
  # -0.9, -0.7, -0.8: 0.2 above the bound, with an error of 0.1 / 3**0.5.
  assert below.t == pytest.approx(2 * 3**0.5)
  assert (_A > _B).across('task.num_query').may_differ == ('task.num_query',)
  assert (_A.named('x') - _B > 0).name == 'x - b'


def test_only_seeds_that_all_parts_have_count() -> None:
  late = _sample('late', {4: 0.1, 3: 0.2, 2: 0.3})
  assert (_A - late).values.to_dict() == pytest.approx({2: 0.4, 3: 0.6})
  four = (_A - late) - (_B - _sample('last', {3: 0.5, 9: 0.0}))
  assert four.values.to_dict() == pytest.approx({3: 0.8 - 0.2 - 0.4 + 0.5})
  assert comparisons.by_seed([_A, late]).index.tolist() == [2, 3]
  assert (_A / late).values.to_dict() == pytest.approx({2: 7 / 3, 3: 4.0})


def test_a_seed_without_a_value_is_lost_only_if_it_diverged() -> None:
  """Some evaluations have a NaN where the seed did not diverge."""
  gap = _sample('gap', {1: 0.5, 2: math.nan, 3: 0.4})
  found = _A - gap > 0
  assert found.values.to_dict() == pytest.approx({1: 0.4, 3: 0.4})
  assert found.lost == []
  assert (_A - dataclasses.replace(gap, lost=(2,)) > 0).lost == [2]


def test_a_missing_run_leaves_nothing_to_compare() -> None:
  none = _sample('none', {})
  for found in (_A > none, 2 * none - _A > 0, _A / none > 0, none < 0.5):
    assert found.values.empty
    judged = verdicts.judge([_A > _B, found])
    assert judged.verdict == 'NOT RUN'
    assert judged.note == 'no results for none'


@pytest.mark.parametrize(
    'compute',
    [
        lambda a, b: a - b,
        lambda a, b: (a - b) - (_A - _C),
        lambda a, b: 2 * (b - a),
        lambda a, b: a / b,
        lambda a, b: comparisons.mean('mean', [a, b]),
        lambda a, b: comparisons.best_of('best', [a, b]),
    ],
)
def test_a_seed_that_diverged_on_one_side_is_lost(
    compute: Callable[..., comparisons.Quantity],
) -> None:
  # Seed 3 diverged; seed 7 did so, too, but the other side never trained it.
  diverged = _sample('diverged', {1: 0.9, 2: 0.7}, 3, 7)
  found = compute(diverged, _B) > 0
  assert found.values.index.tolist() == [1, 2]
  assert found.lost == [3]
  assert math.isnan(found.t) and all(math.isnan(x) for x in found.interval)
  judged = verdicts.judge([found])
  assert judged.verdict == 'UNDECIDED'
  assert judged.note.startswith('no finite value of seed 3;')
  apart = dataclasses.replace(diverged, lost=(7,))
  assert (compute(apart, _B) > 0).lost == []


def test_a_quotient_that_does_not_exist_is_lost_in_sums_too() -> None:
  some = _sample('some', {1: 0.2, 2: 0.0, 3: 0.4})
  none = _sample('none', {1: 0.1, 2: 0.0, 3: 0.1})
  share = none / some
  assert share.values[1] == 0.5 and math.isnan(share.values[2])
  for found in (share > 0, _A / _B > share, 1 - share > 0, 2 * share > 0):
    assert found.values.index.tolist() == [1, 2, 3]
    assert found.lost == [2]
  assert (_A / some > 0).lost == [2]  # Infinite.


def test_the_best_is_picked_on_other_seeds() -> None:
  small = _sample('small', {1: 0.0, 2: 0.1, 3: 2.0})
  large = _sample('large', {1: 1.0, 2: 0.9, 3: 1.0})
  best = comparisons.best_of('best', [small, large])
  # Sums of the others: seed 1 2.1 and 1.9, seed 2 2 and 2, seed 3 0.1 and 1.9.
  assert best.values.to_dict() == {1: 0.0, 2: 0.1, 3: 1.0}
  found = best - _A > 0.2
  assert found.name == 'best - a' and found.samples == (small, large, _A)
  assert found.values.tolist() == pytest.approx([-0.9, -0.6, 0.2])
  # The smallest: seed 1 large, seed 2 small (the first of two), seed 3 small.
  spread = comparisons.range_of('spread', [small, large])
  assert spread.values.tolist() == pytest.approx([-1.0, 0.0, -1.0])


def test_a_choice_between_signs_has_one_sample() -> None:
  """A change in either direction, of which only one side is no other run."""
  change = _sample('share', {1: 0.3, 2: 0.4, 3: 0.2}) - 0.5
  largest = comparisons.best_of('change', [change, -change])
  assert largest.values.tolist() == pytest.approx([0.2, 0.1, 0.3])
  assert [s.name for s in largest.samples] == ['share']
  assert verdicts.judge([largest > 0.05]).verdict == 'UNDECIDED'
  assert verdicts.judge([largest > 0.0]).verdict == 'SUPPORTED'


def test_sums_of_sums_round_once() -> None:
  values = np.random.default_rng(0).normal(size=(4, 12))
  a, b, c, d = (
      _sample(name, dict(enumerate(row))) for name, row in zip('abcd', values)
  )
  found = ((a - b) - (c - d)).values.to_numpy()
  assert found.tolist() == (values.T @ [1, -1, -1, 1]).tolist()
  assert ((a - b) - (c - d)).samples == (a, b, c, d)


def test_a_comparison_is_no_truth_value() -> None:
  for careless in (
      lambda: 0 < _A < 1,
      lambda: _A > 0 or _B > 0,
      lambda: max(_A, _B),
  ):
    with pytest.raises(TypeError, match='a comparison is judged over seeds'):
      careless()


def test_a_sample_is_named_by_its_columns() -> None:
  frame = pd.DataFrame({
      'run_id': ['x', 'x', 'y'],
      'model.name': ['anil', 'anil', 'maml'],
      'task.max_active': [2, 2, 2],
      'seed': [1, 2, 1],
      'kind': 'last',
      'split': 'ood',
      'metric': 'accuracy',
      'value': [0.5, math.nan, 0.3],
  })
  at = comparisons.at(frame, ('model.name', 'task.max_active'))
  assert at('anil', 2).values.to_dict() == {1: 0.5}
  assert at('anil', 2).lost == (2,)
  assert at('maml', 2).cell == {'model.name': 'maml', 'task.max_active': 2}
  assert (at('anil', 2) > at('maml', 2)).values.tolist() == pytest.approx([0.2])
  assert at('maml', 2, split='test').values.empty
  with pytest.raises(ValueError, match='shorter'):
    at('maml')
