"""Verdicts err as often as they may, and no more."""

import pathlib

import numpy as np
import pytest
from scipy import stats

from modular_hyperteacher.figures.judging import calibration
from modular_hyperteacher.figures.judging import paired_t
from modular_hyperteacher.figures.plotting import tables

_PAGE = pathlib.Path(__file__).parents[3] / 'docs' / 'verdicts.md'
# Three deviations of a rate of 5% over 20,000 claims.
_NOISE = 0.005


@pytest.mark.parametrize('num_seeds', calibration.SEEDS)
@pytest.mark.parametrize(
    'effects',
    [
        [0.0],
        [-0.3],
        [0.0] * 4,
        [9.0, 9.0, 9.0, 0.0],  # The worst case: one comparison decides.
        [9.0, 9.0, -0.3, -0.3],
    ],
)
def test_a_claim_that_is_false_is_rarely_supported(
    effects: list[float], num_seeds: int
) -> None:
  assert calibration.simulate(effects, num_seeds).supported < 0.05 + _NOISE


@pytest.mark.parametrize('num_seeds', calibration.SEEDS)
@pytest.mark.parametrize(
    'effects',
    [
        [0.0],
        [0.3],
        [0.0] * 2,  # All at their bounds: the worst case.
        [0.0] * 4,
        [0.0] * 24,
        [2.0, 2.0, 0.0, 0.0],
    ],
)
def test_a_claim_that_is_true_is_rarely_contradicted(
    effects: list[float], num_seeds: int
) -> None:
  assert calibration.simulate(effects, num_seeds).contradicted < 0.05 + _NOISE


def test_more_seeds_see_more() -> None:
  for effects in ([1.0], [1.0] * 4):
    rates = [calibration.simulate(effects, n) for n in calibration.SEEDS]
    supported = [rate.supported for rate in rates]
    assert supported == sorted(supported) and supported[-1] > 0.6
  clear = calibration.simulate([-4.0] * 4, 5)
  assert clear.contradicted > 0.95 and clear.supported == 0


def test_seeds_that_are_added_raise_the_error_rate() -> None:
  """A second look at independent seeds would add 5% of what was undecided."""
  once = calibration.simulate([0.0], 5)
  twice = calibration.simulate([0.0], 5, 500)
  for before, after in zip(once, twice):
    assert after == pytest.approx(before + 0.05 * (1 - sum(once)), abs=_NOISE)


def test_a_single_choice_is_no_choice() -> None:
  rates = calibration.simulate_choice(1, 5)
  assert rates == pytest.approx((0.05, 0.05), abs=3 * _NOISE)


def test_p_values_are_those_of_scipy() -> None:
  values = np.random.default_rng(0).normal(0.4, 1.0, 7)
  t = values.mean() / (values.std(ddof=1) / 7**0.5)
  _, expected = stats.ttest_1samp(values, 0.0, alternative='greater')
  assert paired_t.p_value(t, 7) == pytest.approx(expected)
  assert paired_t.quantile(7) == pytest.approx(stats.t.ppf(0.95, 6))
  assert np.isnan(paired_t.p_value(3.0, 1))


def test_holm_by_hand() -> None:
  # 0.012 < 0.05 / 4 and 0.016 < 0.05 / 3, but 0.03 > 0.05 / 2.
  p = np.array([0.03, 0.012, 0.6, 0.016])
  t = -stats.t.isf(p, 4)
  found = paired_t.is_reversed(t, 5)
  assert found.tolist() == [False, True, False, True]
  # The smallest is not small enough, so none is.
  assert not paired_t.is_reversed(-stats.t.isf(p[:1] * [1, 1], 4), 5).any()


def test_the_page_shows_what_is_measured() -> None:
  """If this fails: python -m figures.judging.calibration."""
  page = _PAGE.read_text()
  assert tables.to_markdown(calibration.make_table()) in page
  assert tables.to_markdown(calibration.make_added_table()) in page
  assert tables.to_markdown(calibration.make_choice_table()) in page
