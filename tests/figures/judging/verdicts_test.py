"""Verdicts: statistics, what is supported, contradicted, undecided, not run."""

from collections.abc import Callable, Sequence
import dataclasses
import math
import pathlib
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from modular_hyperteacher.configs import fig3b
from modular_hyperteacher.configs import fig3c
from modular_hyperteacher.figures import claims
from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.judging import students
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.plotting import stats
from tests.helpers import made_up
from tests.helpers import results

_NOWHERE = pathlib.Path('nowhere')


def test_estimates_are_those_of_numpy() -> None:
  higher = pd.Series([0.5, 0.7, 0.9, 0.6], index=range(4))
  error = np.std(higher, ddof=1) / np.sqrt(4)
  assert stats.mean(higher) == pytest.approx((np.mean(higher), error, 4))


def test_one_seed_has_no_standard_error() -> None:
  assert math.isnan(stats.mean(pd.Series([0.5])).standard_error)
  assert math.isnan(stats.mean(pd.Series(dtype=float)).value)


# Claims.


@pytest.mark.parametrize('claim_id', ['3B-1', '3B-2'])
def test_what_the_paper_says_is_supported(
    tmp_path: pathlib.Path, claim_id: str
) -> None:
  entry = results.entry(
      made_up.write_runs(tmp_path, made_up.AS_CLAIMED), claim_id
  )
  # That `:workstation` would compare with larger ones, too, is said.
  assert 'not compared with MAML 218 wide' in entry['note']
  assert entry['verdict'] == 'SUPPORTED'
  assert entry['num_seeds'] == 3
  assert entry['preset'] == 'laptop'


@pytest.mark.parametrize(
    'claim_id, effect, standard_error',
    [
        # Linear hypernetwork above MAML, seed by seed: the deviations are
        # opposite, so differences deviate by -0.02, 0 and 0.02.
        ('3B-1', 0.87 - 0.61, 0.02 / math.sqrt(3)),
        ('3B-2', 0.56 - 0.45, 0.02 / math.sqrt(3)),
    ],
)
def test_effects_are_the_smallest_difference(
    tmp_path: pathlib.Path, claim_id: str, effect: float, standard_error: float
) -> None:
  entry = results.entry(
      made_up.write_runs(tmp_path, made_up.AS_CLAIMED), claim_id
  )
  assert entry['effect'] == pytest.approx(effect)
  assert entry['standard_error'] == pytest.approx(standard_error, abs=1e-9)
  t = effect / standard_error
  assert entry['t'] == pytest.approx(t)
  assert entry['p'] == pytest.approx(scipy_stats.t.sf(t, 2))
  half = scipy_stats.t.ppf(0.95, 2) * standard_error
  assert entry['interval'] == pytest.approx((effect - half, effect + half))
  smallest = min(c['t'] or 0.0 for c in entry['comparisons'])
  assert entry['t'] == smallest and len(entry['comparisons']) == 4


@pytest.mark.parametrize(
    'claim_id, cell, accuracy, verdict',
    [
        # Far in the wrong direction; in the right one but within the noise.
        ('3B-1', ('linear_hypernetwork', 'random'), 0.45, 'CONTRADICTED'),
        ('3B-1', ('linear_hypernetwork', 'random'), 0.615, 'UNDECIDED'),
        (
            '3B-2',
            ('nonlinear_hypernetwork', 'non_compositional'),
            0.7,
            'CONTRADICTED',
        ),
        (
            '3B-2',
            ('nonlinear_hypernetwork', 'non_compositional'),
            0.555,
            'UNDECIDED',
        ),
    ],
)
def test_one_comparison_decides_against_a_claim(
    tmp_path: pathlib.Path,
    claim_id: str,
    cell: tuple[str, str],
    accuracy: float,
    verdict: str,
) -> None:
  accuracies = made_up.AS_CLAIMED | {cell: accuracy}
  entry = results.entry(made_up.write_runs(tmp_path, accuracies), claim_id)
  assert entry['verdict'] == verdict
  assert ' of 4 hold' in entry['note']
  assert any(c['reversed'] for c in entry['comparisons']) == (
      verdict == 'CONTRADICTED'
  )


@pytest.mark.parametrize('claim_id', ['3B-1', '3B-2'])
def test_one_seed_cannot_be_tested(
    tmp_path: pathlib.Path, claim_id: str
) -> None:
  root = made_up.write_runs(tmp_path, made_up.AS_CLAIMED, seeds=(2020,))
  entry = results.entry(root, claim_id)
  assert entry['verdict'] == 'UNDECIDED'
  assert 'one seed cannot be tested' in entry['note']
  assert entry['effect'] is not None
  assert entry['t'] is entry['p'] is entry['interval'] is None
  assert entry['standard_error'] is None
  assert entry['num_seeds'] == 1


@pytest.mark.parametrize('claim_id', ['3B-1', '3B-2'])
def test_claims_are_not_run_without_data(
    tmp_path: pathlib.Path, claim_id: str
) -> None:
  entry = results.entry(tmp_path, claim_id)
  assert entry['verdict'] == 'NOT RUN'
  assert entry['note'] == 'no finished run of fig3b'
  assert (entry['effect'], entry['num_seeds'], entry['preset']) == (
      None,
      0,
      None,
  )


@pytest.mark.parametrize(
    'claim_id, support',
    [('3B-1', 'random'), ('3B-2', 'non_compositional')],
)
def test_claims_name_the_runs_they_miss(
    tmp_path: pathlib.Path, claim_id: str, support: str
) -> None:
  accuracies = dict(made_up.AS_CLAIMED)
  del accuracies['linear_hypernetwork', support]
  entry = results.entry(made_up.write_runs(tmp_path, accuracies), claim_id)
  assert entry['verdict'] == 'NOT RUN'
  assert f'no results for Linear hypernetwork ({support}, ood)' in entry['note']


def test_runs_of_different_scale_are_not_compared(
    tmp_path: pathlib.Path,
) -> None:
  changed = {('anil', 'random'): 0.6}
  kept = dict(made_up.AS_CLAIMED)
  del kept['anil', 'random']
  made_up.write_runs(tmp_path, kept)
  short = {'training.num_outer_steps': 500}
  made_up.write_runs(tmp_path, changed, override=short)
  entry = results.entry(tmp_path, '3B-1')
  assert entry['verdict'] == 'NOT RUN'
  assert 'differ in num_outer_steps' in entry['note']


@pytest.mark.parametrize(
    'num_seeds, preset, verdict',
    [(5, 'desktop', 'CONTRADICTED'), (3, 'laptop', 'SUPPORTED')],
)
def test_the_scale_nearest_to_the_paper_decides_with_five_seeds(
    tmp_path: pathlib.Path, num_seeds: int, preset: str, verdict: str
) -> None:
  """Though the other one has more runs."""
  five = tuple(range(2020, 2025))
  spread = (-0.01, 0.0, 0.01, 0.005, -0.005)
  made_up.write_runs(tmp_path, made_up.AS_CLAIMED, seeds=five, spread=spread)
  upside_down = {
      (model, support): 1 - accuracy
      for (model, support), accuracy in made_up.AS_CLAIMED.items()
      if support == 'random'
  }
  made_up.write_runs(tmp_path, upside_down, 'desktop', five[:num_seeds], spread)
  bundled = data.Library(tmp_path / 'nothing', tmp_path)
  entry = results.judge('3B-1', bundled)
  assert (entry['preset'], entry['verdict']) == (preset, verdict)
  assert entry['scales'] == {'desktop': 'CONTRADICTED', 'laptop': 'SUPPORTED'}
  assert any(
      f'{other} scale: {found}' in entry['note']
      for other, found in entry['scales'].items()
      if other != preset
  )
  # One that desktop cannot decide is decided at laptop scale.
  assert results.judge('3B-2', bundled)['preset'] == 'laptop'
  # A user's own runs decide first: those that figures show.
  own = results.entry(tmp_path, '3B-1')
  assert (own['preset'], own['verdict']) == ('laptop', 'SUPPORTED')


def test_all_comparisons_need_five_seeds(tmp_path: pathlib.Path) -> None:
  five = tuple(range(2020, 2025))
  spread = (-0.01, 0.0, 0.01, 0.005, -0.005)
  made_up.write_runs(tmp_path, made_up.AS_CLAIMED, seeds=five, spread=spread)
  for model, support in made_up.AS_CLAIMED:
    seeds = five[: 3 if model == 'maml' else 5]
    one = {(model, support): made_up.AS_CLAIMED[model, support]}
    made_up.write_runs(tmp_path, one, 'desktop', seeds, spread[: len(seeds)])
  bundled = data.Library(tmp_path / 'nothing', tmp_path)
  assert results.judge('3B-1', bundled)['preset'] == 'laptop'


def test_published_values_are_judged_at_the_published_scale_only(
    tmp_path: pathlib.Path,
) -> None:
  accuracies = made_up.AS_CLAIMED | {('anil', 'random'): 0.70}
  paper = results.entry(
      made_up.write_runs(tmp_path / 'a', accuracies, 'paper'), '3B-1'
  )
  assert '3 of 4 published values agree' in paper['note']
  assert 'ANIL (random, ood) is 0.700, published 0.598 (+' in paper['note']
  assert ' published SD)' in paper['note']
  laptop = results.entry(made_up.write_runs(tmp_path / 'b', accuracies), '3B-1')
  assert 'published' not in laptop['note']
  short = {'training.num_outer_steps': 7}
  root = tmp_path / 'c'
  changed = made_up.write_runs(root, accuracies, 'paper', override=short)
  note = results.entry(changed, '3B-1')['note']
  assert 'published values' not in note
  assert 'not the published scale' in note and 'scale' not in paper['note']


# Comparisons.


def _sample(
    values: Sequence[float], name: str = 'a', first_seed: int = 0
) -> comparisons.Sample:
  seeds = range(first_seed, first_seed + len(values))
  runs = pd.DataFrame({
      'run_id': name,
      'seed': seeds,
      'task.num_modules': 4,
      'training.num_outer_steps': 9,
      'preset': 'laptop',
  })
  series = pd.Series(values, index=seeds, dtype=float)
  return comparisons.Sample(name, series, runs, {}, 'ood', 'accuracy')


@pytest.mark.parametrize(
    'bound, verdict',
    [
        (0.9, 'SUPPORTED'),
        (0.94, 'UNDECIDED'),
        (0.96, 'UNDECIDED'),
        (0.99, 'CONTRADICTED'),
    ],
)
def test_a_level_must_exceed_its_bound_significantly(
    bound: float, verdict: str
) -> None:
  judged = verdicts.judge([_sample([0.94, 0.95, 0.96]) > bound])
  assert judged.verdict == verdict
  assert judged.decisive is not None
  assert judged.decisive['effect'] == pytest.approx(0.95)
  t, p = scipy_stats.ttest_1samp(
      [0.94, 0.95, 0.96], bound, alternative='greater'
  )
  assert judged.decisive['t'] == pytest.approx(t)
  assert judged.decisive['p'] == pytest.approx(p)
  low, _ = judged.decisive['interval'] or (0, 0)
  assert (low > bound) == (verdict == 'SUPPORTED')
  assert f'to exceed {bound}' in judged.note


def test_a_fall_within_the_margin_is_no_fall() -> None:
  higher, lower = _sample([0.8, 0.8, 0.8]), _sample([0.77, 0.78, 0.79], 'b')
  fall = lower - higher > -0.05
  assert fall.estimate.value == pytest.approx(-0.02)
  assert verdicts.judge([fall]).verdict == 'SUPPORTED'
  assert verdicts.judge([fall._replace(bound=-0.02)]).verdict == 'UNDECIDED'
  assert verdicts.judge([fall._replace(bound=0.02)]).verdict == 'CONTRADICTED'


def test_below_is_a_level_upside_down() -> None:
  low = _sample([0.1, 0.11, 0.12]) < 0.2
  assert verdicts.judge([low]).verdict == 'SUPPORTED'
  assert verdicts.judge([low._replace(bound=-0.05)]).verdict == 'CONTRADICTED'


def test_slopes_are_those_of_numpy() -> None:
  at = [4, 6, 8]
  samples = [
      _sample(values, name)
      for name, values in zip('abc', ([1.0, 2.0], [1.5, 2.0], [3.0, 1.0]))
  ]
  slope = comparisons.slope('slope', samples, at)
  expected = [
      np.polyfit(at, [s.values[seed] for s in samples], 1)[0] for seed in (0, 1)
  ]
  assert slope.values.tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    'others, verdict',
    [
        # A smaller t (2.2), but it holds, as there are more seeds.
        ([[1.0, -0.2] * 6 + [0.0]], 'UNDECIDED'),
        ([[0.5, 0.6, 0.7], [-0.9, -1.0, -1.1]], 'CONTRADICTED'),
    ],
)
def test_what_decides_has_the_largest_p(
    others: list[list[float]], verdict: str
) -> None:
  samples = [_sample([0.1, 0.3, 0.5])]  # t = 2.6, p = 0.06.
  samples += [_sample(values, f'b{i}') for i, values in enumerate(others)]
  judged = verdicts.judge([s > 0 for s in samples])
  assert judged.verdict == verdict and judged.decisive is not None
  t, p = ([c[name] or 0.0 for c in judged.tested] for name in ('t', 'p'))
  assert judged.decisive['p'] == max(p)
  if verdict == 'UNDECIDED':
    assert judged.decisive['t'] == max(t)


def test_what_is_reversed_decides_though_another_seed_is_lost() -> None:
  lost = dataclasses.replace(_sample([1.0, 1.1, 1.2]), lost=(7,))
  low = _sample([-0.9, -1.0, -1.1], 'b')
  judged = verdicts.judge([s > 0 for s in (lost, low)])
  assert judged.verdict == 'CONTRADICTED'
  assert judged.decisive is not None and judged.decisive['name'] == 'b'


def test_nothing_is_compared_with_itself() -> None:
  found = _sample([0.1, 0.2]) - _sample([0.1, 0.2]) > 0.1
  judged = verdicts.judge([found])
  assert judged.verdict == 'NOT RUN'
  assert judged.note == 'only one side was trained: a - a'


def test_the_largest_p_decides_whatever_the_units() -> None:
  # The margin of the first is smaller, but it is the more certain.
  certain = _sample([0.010, 0.011, 0.012]) > 0
  noisy = _sample([0.2, 0.9, 1.6], 'b') > 0
  judged = verdicts.judge([certain, noisy])
  assert judged.verdict == 'UNDECIDED'
  assert judged.decisive is not None and judged.decisive['name'] == 'b'
  assert [tested['holds'] for tested in judged.tested] == [True, False]


def test_only_shared_seeds_are_compared() -> None:
  many = _sample([0.9, 0.5, 0.6, 0.7])
  few = _sample([0.1, 0.3, 0.2], 'b', first_seed=1)
  difference = many > few
  assert difference.values.to_dict() == pytest.approx({1: 0.4, 2: 0.3, 3: 0.5})
  alone = many > _sample([0.1, 0.2], 'b', first_seed=9)
  judged = verdicts.judge([alone])
  assert judged.verdict == 'NOT RUN'
  assert judged.note == 'no seed was measured on both sides'


def test_a_seed_that_one_side_alone_has_cannot_be_lost() -> None:
  both = _sample([0.9, 0.8, 0.85]), _sample([0.1, 0.2, 0.15], 'b')
  unpaired = dataclasses.replace(both[0], lost=(7,))
  found = unpaired > both[1]
  assert verdicts.judge([found]).verdict == 'SUPPORTED'
  paired = dataclasses.replace(both[1], lost=(7,))
  found = unpaired > paired
  assert verdicts.judge([found]).verdict == 'UNDECIDED'


def test_a_model_whose_seeds_all_diverged_was_run() -> None:
  none = _sample([], 'b')
  diverged = dataclasses.replace(none, lost=(0, 1))
  found = [_sample([0.9, 0.8]) > s for s in (none, diverged)]
  judged = [verdicts.judge([comparison]) for comparison in found]
  assert [j.verdict for j in judged] == ['NOT RUN', 'UNDECIDED']
  assert judged[1].note.startswith('no finite value of seed 0, 1')


def test_a_single_seed_chooses_by_itself_and_is_not_tested() -> None:
  one = pd.DataFrame({'small': [0.3], 'large': [0.6]}, index=[2020])
  assert comparisons.pick_on_other_seeds(one).tolist() == [0.6]
  assert comparisons.spread_on_other_seeds(one).tolist() == [pytest.approx(0.3)]


@pytest.mark.parametrize(
    'values, bound, verdict',
    [
        ([1.0, 1.0, 1.0], 0.95, 'SUPPORTED'),
        ([1.0, 1.0, 1.0], 1.0, 'UNDECIDED'),
        ([0.9, 0.9, 0.9], 0.95, 'CONTRADICTED'),
        # Differs by rounding alone.
        ([0.3 - 0.1, 0.4 - 0.2, 0.5 - 0.3], 0.2, 'UNDECIDED'),
    ],
)
def test_seeds_that_agree_exactly(
    values: list[float], bound: float, verdict: str
) -> None:
  judged = verdicts.judge([_sample(values) > bound])
  assert judged.verdict == verdict
  assert judged.decisive is not None and judged.decisive['t'] is not None


@pytest.mark.parametrize('value', [math.nan, math.inf, -math.inf])
def test_a_seed_that_diverged_is_not_left_out(
    tmp_path: pathlib.Path, value: float
) -> None:
  """Without it the claim would hold."""

  def rule(fields: dict[str, Any], split: str, metric: str) -> float:
    del split, metric
    return 0.9 if 'hypernetwork' in fields['model.name'] else 0.6

  made_up.write_by_rule(tmp_path, 'fig3b', rule)
  frame = results.library(tmp_path).values('fig3b')
  claim = results.claim('3B-1')
  assert verdicts.judge(claim.compare(frame), claim.cell).verdict == 'SUPPORTED'
  lost = (frame['seed'] == 2021) & (
      frame['model.name'] == 'linear_hypernetwork'
  )
  frame.loc[lost & (frame['split'] == 'ood'), 'value'] = value
  judged = verdicts.judge(claim.compare(frame), claim.cell)
  assert judged.verdict == 'UNDECIDED'
  assert judged.note.startswith('no finite value of seed 2021')


def test_models_are_compared_at_every_width(tmp_path: pathlib.Path) -> None:
  def rule(width: int) -> Callable[..., float]:
    high = 0.5 if width == 64 else 0.95
    return lambda fields, split, metric: (
        0.9 if 'hypernetwork' in fields['model.name'] else high
    )

  made_up.write_by_rule(tmp_path, 'fig3b', rule(64))
  entry = results.entry(tmp_path, '3B-1')
  assert entry['verdict'] == 'SUPPORTED'
  assert 'not compared' not in entry['note']
  config = fig3b.get_config()
  config.models.maml.hidden_dim = 300
  measured = {
      split: {'accuracy': [0.95, 0.951, 0.949], 'loss': [1.0] * 3}
      for split in ('valid', 'test', 'ood')
  }
  made_up.write_experiment(
      tmp_path,
      config,
      lambda run: measured if run.config['model']['name'] == 'maml' else None,
  )
  entry = results.entry(tmp_path, '3B-1')
  assert entry['verdict'] == 'CONTRADICTED'
  assert len(entry['comparisons']) == 10
  assert any('width = 300' in c['name'] for c in entry['comparisons'])


@pytest.mark.parametrize('supports', [('random', 'non_compositional'), ()])
def test_a_second_width_is_another_comparison_not_more_seeds(
    tmp_path: pathlib.Path, supports: tuple[str, ...]
) -> None:
  """Unless it was not trained with both supports."""

  def rule(fields: dict[str, Any], split: str, metric: str) -> float:
    del split, metric
    return 0.8 if fields['task.task_support'] == 'random' else 0.2

  made_up.write_by_rule(tmp_path, 'fig3c', rule)
  config = fig3c.get_config()
  config.models.linear_hypernetwork.hidden_dim = 48
  half = {'ood': {'r2': [0.5, 0.5, 0.5], 'loss': [1.0] * 3}}
  half['valid'] = half['ood']
  made_up.write_experiment(
      tmp_path,
      config,
      lambda run: half
      if run.config['model']['name'] == 'linear_hypernetwork'
      and run.config['task']['task_support'] in (supports or ('random',))
      else None,
  )
  entry = results.entry(tmp_path, '3C')
  assert len(entry['comparisons']) == 2 + bool(supports)
  assert {c['num_seeds'] for c in entry['comparisons']} == {3}
  assert entry['verdict'] == ('UNDECIDED' if supports else 'SUPPORTED')


def test_runs_may_differ_in_the_fields_of_the_cell_alone() -> None:
  other = _sample([0.7, 0.8], 'b')
  other.frame['task.num_modules'] = 8
  found = other > _sample([0.1, 0.1])
  assert verdicts.judge([found]).note == 'the runs differ in num_modules'
  assert verdicts.judge([found], ('task.num_modules',)).verdict == 'SUPPORTED'
  wide, narrow = _sample([0.7, 0.8], 'b'), _sample([0.1, 0.1])
  wide.frame['model.hidden_dim'] = 16
  narrow.frame['model.hidden_dim'] = 8
  found = wide > narrow
  assert verdicts.judge([found]).note == 'the runs differ in hidden_dim'
  wide, narrow = (
      dataclasses.replace(s, cell={'model.name': s.name})
      for s in (wide, narrow)
  )
  found = wide > narrow
  assert verdicts.judge([found]).verdict == 'SUPPORTED'
  # Two models, each with another width on either side.
  four = [
      dataclasses.replace(
          s,
          name=f'{s.name} {model}',
          cell={'model.name': model},
          frame=s.frame.assign(**{'model.name': model}),
      )
      for model in ('anil', 'maml')
      for s in (wide, narrow)
  ]
  found = four[0] + four[2] - four[3] > 0
  assert verdicts.judge([found]).note == 'the runs differ in hidden_dim'


def test_without_a_common_width_what_is_missing_is_named() -> None:
  runs = pd.DataFrame({
      comparisons.MODEL: 'maml',
      students.WIDTH: [64, 480],
      students.SUPPORT: ['non_compositional', 'random'],
  })
  supports = ('random', 'non_compositional')
  both = students.widths(runs, 'maml', supports=supports)
  assert [cell[students.WIDTH] for cell in both] == [64, 480]
  more = pd.concat([runs, runs.assign(**{students.SUPPORT: 'random'})])
  (common,) = students.widths(more, 'maml', supports=supports)
  assert common[students.WIDTH] == 64


def test_every_claim_names_a_figure_and_an_experiment_with_a_config() -> None:
  ids = [claim.id for claim in claims.known()]
  assert len(set(ids)) == len(ids)
  for claim in claims.known():
    assert claim.figure in registry.figures()
    experiments = registry.figures()[claim.figure].experiments
    if claim.id == 'CR-9':  # Out of scope, and said so.
      entry = verdicts.evaluate(claim, data.Library(_NOWHERE))
      assert entry['verdict'] == 'NOT RUN'
    elif claim.experiment in ('identities', 'sraven_ambiguity'):
      assert claim.read is not None  # Measured, not trained.
      library = data.Library(_NOWHERE, _NOWHERE)
      assert len(claim.read(library, claim.experiment))
    elif experiments:  # Else it is constructed, not trained.
      assert claim.experiment in experiments
      assert reference.described_runs(claim.experiment, 'laptop')
