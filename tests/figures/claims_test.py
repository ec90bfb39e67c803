"""Verdicts: statistics, what passes, what fails, what is not judged."""

from collections.abc import Sequence
import math
import pathlib
from typing import Any

import numpy as np
import pandas as pd
import pytest

from figures import claims
from figures import registry
from figures.claims import verdicts
from figures.library import data
from figures.library import reference
from figures.plotting import stats
from tests.helpers import made_up


def evaluate_claim(root: pathlib.Path, claim_id: str) -> dict[str, Any]:
  entries = claims.evaluate(data.Library(root, root / 'nothing'))
  return {entry['id']: entry for entry in entries}[claim_id]


def test_estimates_are_those_of_numpy() -> None:
  higher = pd.Series([0.5, 0.7, 0.9, 0.6], index=range(4))
  lower = pd.Series([0.4, 0.45, 0.2], index=range(3))
  error = np.std(higher, ddof=1) / np.sqrt(4)
  assert stats.mean(higher) == pytest.approx((np.mean(higher), error, 4))
  differences = np.array([0.1, 0.25, 0.7])
  assert stats.paired_difference(higher, lower) == pytest.approx(
      (differences.mean(), np.std(differences, ddof=1) / np.sqrt(3), 3)
  )


def test_one_seed_has_no_standard_error() -> None:
  assert math.isnan(stats.mean(pd.Series([0.5])).standard_error)
  assert math.isnan(stats.mean(pd.Series(dtype=float)).value)


# Claims.


@pytest.mark.parametrize('claim_id', ['3B-1', '3B-2', 'TXT-1'])
def test_claims_pass_on_what_the_paper_says(
    tmp_path: pathlib.Path, claim_id: str
) -> None:
  entry = evaluate_claim(
      made_up.write_runs(tmp_path, made_up.AS_CLAIMED), claim_id
  )
  assert entry['verdict'] == 'PASS'
  assert entry['num_seeds'] == 3
  assert entry['preset'] == 'laptop'


@pytest.mark.parametrize(
    'claim_id, effect, standard_error',
    [
        # Linear hypernetwork above MAML, seed by seed: the deviations are
        # opposite, so differences deviate by -0.02, 0 and 0.02.
        ('3B-1', 0.87 - 0.61, 0.02 / math.sqrt(3)),
        ('3B-2', 0.56 - 0.45, 0.02 / math.sqrt(3)),
        # The same runs on two splits: every seed falls by the same amount.
        ('TXT-1', 0.3, 0.0),
    ],
)
def test_effects_are_the_smallest_difference(
    tmp_path: pathlib.Path, claim_id: str, effect: float, standard_error: float
) -> None:
  entry = evaluate_claim(
      made_up.write_runs(tmp_path, made_up.AS_CLAIMED), claim_id
  )
  assert entry['effect'] == pytest.approx(effect)
  assert entry['standard_error'] == pytest.approx(standard_error, abs=1e-9)


@pytest.mark.parametrize(
    'claim_id, cell, accuracy',
    [
        # In the wrong direction; in the right one but within the noise.
        ('3B-1', ('linear_hypernetwork', 'random'), 0.55),
        ('3B-1', ('linear_hypernetwork', 'random'), 0.615),
        ('3B-2', ('nonlinear_hypernetwork', 'non_compositional'), 0.57),
        ('3B-2', ('nonlinear_hypernetwork', 'non_compositional'), 0.555),
    ],
)
def test_claims_fail_if_one_comparison_does(
    tmp_path: pathlib.Path,
    claim_id: str,
    cell: tuple[str, str],
    accuracy: float,
) -> None:
  accuracies = made_up.AS_CLAIMED | {cell: accuracy}
  entry = evaluate_claim(made_up.write_runs(tmp_path, accuracies), claim_id)
  assert entry['verdict'] == 'FAIL'
  assert ' of 4 do not hold' in entry['note']


def test_txt1_fails_if_accuracy_does_not_fall(tmp_path: pathlib.Path) -> None:
  root = made_up.write_runs(tmp_path, made_up.AS_CLAIMED, drop=-0.01)
  assert evaluate_claim(root, 'TXT-1')['verdict'] == 'FAIL'


@pytest.mark.parametrize('claim_id', ['3B-1', '3B-2', 'TXT-1'])
def test_claims_are_not_run_on_one_seed(
    tmp_path: pathlib.Path, claim_id: str
) -> None:
  root = made_up.write_runs(tmp_path, made_up.AS_CLAIMED, seeds=(2020,))
  entry = evaluate_claim(root, claim_id)
  assert entry['verdict'] == 'NOT RUN'
  assert entry['note'].startswith(f'one seed: effect {entry["effect"]:.3f}')
  assert entry['standard_error'] is None
  assert entry['num_seeds'] == 1


@pytest.mark.parametrize('claim_id', ['3B-1', '3B-2', 'TXT-1'])
def test_claims_are_not_run_without_data(
    tmp_path: pathlib.Path, claim_id: str
) -> None:
  entry = evaluate_claim(tmp_path, claim_id)
  assert entry['verdict'] == 'NOT RUN'
  assert entry['note'] == 'no finished run of fig3b'
  assert (entry['effect'], entry['num_seeds'], entry['preset']) == (
      None,
      0,
      None,
  )


@pytest.mark.parametrize(
    'claim_id, support',
    [('3B-1', 'random'), ('3B-2', 'non_compositional'), ('TXT-1', 'random')],
)
def test_claims_name_the_runs_they_miss(
    tmp_path: pathlib.Path, claim_id: str, support: str
) -> None:
  accuracies = dict(made_up.AS_CLAIMED)
  del accuracies['linear_hypernetwork', support]
  entry = evaluate_claim(made_up.write_runs(tmp_path, accuracies), claim_id)
  assert entry['verdict'] == 'NOT RUN'
  assert f'no results for Linear hypernetwork ({support}, ood)' in entry['note']


def test_txt1_needs_combinations_beyond_training(
    tmp_path: pathlib.Path,
) -> None:
  override = {'task.max_active': 8}
  root = made_up.write_runs(tmp_path, made_up.AS_CLAIMED, override=override)
  assert evaluate_claim(root, 'TXT-1')['verdict'] == 'NOT RUN'


def test_runs_of_different_scale_are_not_compared(
    tmp_path: pathlib.Path,
) -> None:
  changed = {('anil', 'random'): 0.6}
  kept = dict(made_up.AS_CLAIMED)
  del kept['anil', 'random']
  made_up.write_runs(tmp_path, kept)
  short = {'training.num_outer_steps': 500}
  made_up.write_runs(tmp_path, changed, override=short)
  entry = evaluate_claim(tmp_path, '3B-1')
  assert entry['verdict'] == 'NOT RUN'
  assert 'differ in num_outer_steps' in entry['note']


def test_published_values_are_judged_at_the_published_scale_only(
    tmp_path: pathlib.Path,
) -> None:
  accuracies = made_up.AS_CLAIMED | {('anil', 'random'): 0.70}
  paper = evaluate_claim(
      made_up.write_runs(tmp_path / 'a', accuracies, 'paper'), '3B-1'
  )
  assert '3 of 4 published values agree' in paper['note']
  assert 'ANIL (random, ood) is 0.700, published 0.598 (+' in paper['note']
  assert ' published SD apart' in paper['note']
  laptop = evaluate_claim(
      made_up.write_runs(tmp_path / 'b', accuracies), '3B-1'
  )
  assert 'published' not in laptop['note']
  short = {'training.num_outer_steps': 7}
  root = tmp_path / 'c'
  changed = made_up.write_runs(root, accuracies, 'paper', override=short)
  note = evaluate_claim(changed, '3B-1')['note']
  assert 'published values' not in note
  assert 'not the published scale' in note and 'scale' not in paper['note']


# Effects of other shapes.


def _sample(
    values: Sequence[float], name: str = 'a', split: str = 'ood'
) -> verdicts.Sample:
  runs = pd.DataFrame({
      'seed': range(len(values)),
      'task.num_modules': 4,
      'training.num_outer_steps': 9,
      'preset': 'laptop',
  })
  series = pd.Series(values, index=range(len(values)), dtype=float)
  return verdicts.Sample(name, series, runs, {}, split, 'accuracy')


@pytest.mark.parametrize(
    'bound, verdict', [(0.9, 'PASS'), (0.947, 'FAIL'), (0.96, 'FAIL')]
)
def test_a_level_must_exceed_its_bound_by_two_errors(
    bound: float, verdict: str
) -> None:
  effect = verdicts.level(_sample([0.94, 0.95, 0.96]), bound)
  assert effect.estimate == pytest.approx((0.95, 0.01 / math.sqrt(3), 3))
  judged, estimate, note = verdicts.judge([effect])
  assert judged == verdict
  assert estimate.value == pytest.approx(0.95)
  assert f'to exceed {bound}' in note


def test_a_fall_within_the_margin_is_no_fall() -> None:
  higher, lower = _sample([0.8, 0.8, 0.8]), _sample([0.77, 0.78, 0.79], 'b')
  fall = verdicts.difference(lower, higher, bound=-0.05)
  assert fall.estimate.value == pytest.approx(-0.02)
  assert verdicts.judge([fall])[0] == 'PASS'
  assert verdicts.judge([fall._replace(bound=-0.02)])[0] == 'FAIL'


def test_slopes_are_those_of_numpy() -> None:
  at = [4, 6, 8]
  samples = [
      _sample(values, name)
      for name, values in zip('abc', ([1.0, 2.0], [1.5, 2.0], [3.0, 1.0]))
  ]
  effect = verdicts.slope('slope', samples, at)
  expected = [
      np.polyfit(at, [s.values[seed] for s in samples], 1)[0] for seed in (0, 1)
  ]
  assert effect.estimate.value == pytest.approx(np.mean(expected))
  falling = verdicts.slope('slope', samples, at, sign=-1)
  assert falling.estimate.value == pytest.approx(-np.mean(expected))


def test_the_weakest_effect_is_the_closest_to_its_bound() -> None:
  strong = verdicts.level(_sample([0.5, 0.5, 0.51]), 0.1)
  weak = verdicts.level(_sample([0.94, 0.95, 0.96], 'b'), 0.9)
  verdict, estimate, note = verdicts.judge([strong, weak])
  assert (verdict, estimate.value) == ('PASS', pytest.approx(0.95))
  assert 'smallest: b' in note


def test_runs_may_differ_in_the_fields_of_the_cell_alone() -> None:
  other = _sample([0.7, 0.8], 'b')
  other.runs['task.num_modules'] = 8
  effect = verdicts.difference(other, _sample([0.1, 0.1]))
  assert verdicts.judge([effect])[2] == 'the runs differ in num_modules'
  assert verdicts.judge([effect], ('task.num_modules',))[0] == 'PASS'


def test_every_claim_names_a_figure_and_an_experiment_with_a_config() -> None:
  ids = [claim.id for claim in claims.CLAIMS]
  assert len(set(ids)) == len(ids)
  for claim in claims.CLAIMS:
    assert claim.figure in registry.FIGURES
    experiments = registry.FIGURES[claim.figure].experiments
    if experiments:  # Else it is constructed, not trained.
      assert claim.experiment in experiments
      assert reference.described_runs(claim.experiment, 'laptop')
