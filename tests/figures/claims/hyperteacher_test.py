"""Claims on the hyperteacher, on made-up results."""

import math
import pathlib
import shutil
from typing import Any

import numpy as np
import pandas as pd
import pytest

from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures import claims
from modular_hyperteacher.figures.claims import parts
from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.paper import agreement
from modular_hyperteacher.figures.paper import decoding_targets
from modular_hyperteacher.figures.paper import fig3e
from tests.helpers import made_up
from tests.helpers import made_up_rules
from tests.helpers import results

_PAGE = pathlib.Path(__file__).parents[3] / 'docs' / 'results.md'


@pytest.mark.parametrize(
    'claim_id, experiment, rule, verdict',
    [
        (
            '3C',
            'fig3c',
            made_up_rules.by_support(0.6, 0.3, 0.5, 0.5),
            'SUPPORTED',
        ),
        (
            '3C',
            'fig3c',
            made_up_rules.by_support(0.3, 0.6, 0.5, 0.5),
            'CONTRADICTED',
        ),
        (
            '3D',
            'fig3c',
            made_up_rules.by_support(0.5, 0.5, 0.6, 0.3),
            'SUPPORTED',
        ),
        (
            '3D',
            'fig3c',
            made_up_rules.by_support(0.5, 0.5, 0.3, 0.6),
            'CONTRADICTED',
        ),
        ('3E', 'fig3e', made_up_rules.by_k(0.3, 0.8, 0.1, 0.5), 'SUPPORTED'),
        ('3E', 'fig3e', made_up_rules.by_k(0.8, 0.3, 0.1, 0.5), 'CONTRADICTED'),
        ('A6', 'fig3e', made_up_rules.by_k(0.3, 0.8, 0.1, 0.5), 'SUPPORTED'),
        ('A6', 'fig3e', made_up_rules.by_k(0.8, 0.3, 0.1, 0.5), 'CONTRADICTED'),
        ('3F', 'fig3f', made_up_rules.by_size(0.5, 0.8, 0.6), 'SUPPORTED'),
        ('3F', 'fig3f', made_up_rules.growing, 'CONTRADICTED'),
        # The widest with few modules is as good as the largest.
        ('3F', 'fig3f', made_up_rules.by_size(0.5, 0.6, 0.8), 'UNDECIDED'),
        ('A4', 'fig_a4', made_up_rules.by_shots(0.05), 'SUPPORTED'),
        ('A4', 'fig_a4', made_up_rules.by_shots(-0.05), 'CONTRADICTED'),
        ('A5', 'fig_a5', made_up_rules.by_fraction(0.4, 0.1, 0.0), 'SUPPORTED'),
        (
            'A5',
            'fig_a5',
            made_up_rules.by_fraction(0.1, 0.4, 0.0),
            'CONTRADICTED',
        ),
        # Robust, but accuracy on seen combinations falls by 7 points.
        (
            'A5',
            'fig_a5',
            made_up_rules.by_fraction(0.4, 0.1, 0.1),
            'CONTRADICTED',
        ),
    ],
)
def test_claims(
    tmp_path: pathlib.Path,
    claim_id: str,
    experiment: str,
    rule: made_up_rules.Rule,
    verdict: str,
) -> None:
  made_up.write_by_rule(tmp_path, experiment, rule)
  claim = results.claim(claim_id)
  entry = verdicts.evaluate(claim, results.library(tmp_path))
  assert entry['verdict'] == verdict, entry['note']
  assert entry['num_seeds'] == 3
  assert entry['preset'] == 'laptop'


@pytest.mark.parametrize(
    'compositional, verdict', [(0.95, 'SUPPORTED'), (0.8, 'CONTRADICTED')]
)
def test_r2_close_to_one_is_judged_at_the_published_scale(
    tmp_path: pathlib.Path, compositional: float, verdict: str
) -> None:
  rule = made_up_rules.by_support(compositional, 0.3, 0.5, 0.5)
  made_up.write_by_rule(tmp_path, 'fig3c', rule, 'paper')
  claim = results.claim('3C')
  assert (
      verdicts.evaluate(claim, results.library(tmp_path))['verdict'] == verdict
  )


@pytest.mark.parametrize(
    'claim_id, largest_num_modules',
    [('A3', 10), ('A3, two layers', 8), ('A3, equal students', 10)],
)
@pytest.mark.parametrize(
    'steps_per_module, verdict',
    [(1, 'SUPPORTED'), (-1, 'CONTRADICTED'), (0, 'UNDECIDED')],
)
def test_claim_a3_reads_the_curves(
    tmp_path: pathlib.Path,
    claim_id: str,
    largest_num_modules: int,
    steps_per_module: int,
    verdict: str,
) -> None:
  def curve(run: sweeps.Run, step: int) -> float:
    """Reaches 0.6 at the second evaluation; if M is large, at the third."""
    late = steps_per_module * (run.config['task']['num_modules'] - 7) > 0
    return 0.65 if step and not late else 0.1

  all_claims = (*claims.known(), *parts.CLAIMS)
  claim = next(claim for claim in all_claims if claim.id == claim_id)
  experiment = claim.experiment
  made_up.write_by_rule(
      tmp_path, experiment, made_up_rules.constant, curve=curve
  )
  frame = results.library(tmp_path).curves(experiment)
  frame.loc[frame['step'] == 0, 'step'] = 250  # No run is evaluated untrained.
  third = frame[frame['step'] == 500].assign(step=750, value=0.65)
  curves = pd.concat([frame, third], ignore_index=True)
  found = list(claim.compare(pick.select_conditions(curves, claim.cell)[0]))
  assert len(found) == 2
  assert verdicts.judge(found, claim.cell).verdict == verdict
  # A seed that diverged has not merely missed the level.
  diverged = curves.copy()
  diverged.loc[
      (curves['step'] == 750)
      & (curves['seed'] == 2021)
      & (curves['split'] == 'valid'),
      'value',
  ] = math.nan
  judged = verdicts.judge(claim.compare(diverged), claim.cell)
  assert judged.verdict == 'UNDECIDED'
  assert judged.note.startswith('no finite value of seed 2021')
  # Seeds that miss the level count with all of their tasks, 750 steps of 32.
  largest = curves['task.num_modules'] == largest_num_modules
  missed = largest & (curves['seed'] == 2020)
  curves.loc[missed, 'value'] = 0.1
  for comparison in claim.compare(curves):
    tasks = comparison.samples[-1].values
    assert tasks[2020] == pytest.approx(math.log2(750 * 32))
    assert tasks[2020] > tasks[2021]
  # What every curve has reached by the first evaluation says nothing.
  curves['value'] = 0.65
  assert not list(claim.compare(pick.select_conditions(curves, claim.cell)[0]))


@pytest.mark.parametrize(
    'single, combined, verdict',
    [
        (0.2, 0.8, 'SUPPORTED'),
        (0.6, 0.8, 'CONTRADICTED'),
        (0.1, 0.4, 'CONTRADICTED'),
    ],
)
def test_3e_judges_levels_at_the_published_scale(
    tmp_path: pathlib.Path, single: float, combined: float, verdict: str
) -> None:
  rule = made_up_rules.by_k(single, combined, 0.1, 0.5)
  made_up.write_by_rule(tmp_path, 'fig3e', rule, preset='paper')
  claim = results.claim('3E')
  entry = verdicts.evaluate(claim, results.library(tmp_path))
  assert entry['verdict'] == verdict


@pytest.mark.parametrize(
    'claim_id, only',
    [
        ('3E', {'num_modules': 8}),
        ('A4', {'num_support': 8}),
        ('A5', {'num_modules': 6}),
        ('A5', {'fraction_ood': 0.1}),
        ('A6', {'num_modules': 8}),
    ],
)
def test_a_part_of_a_grid_decides_nothing(
    tmp_path: pathlib.Path, claim_id: str, only: dict[str, Any]
) -> None:
  claim = results.claim(claim_id)
  made_up.write_by_rule(
      tmp_path, claim.experiment, made_up_rules.constant, **only
  )
  entry = verdicts.evaluate(claim, results.library(tmp_path))
  assert entry['verdict'] == 'NOT RUN'
  assert entry['note'].startswith('no results for ')


def test_a6_names_the_targets_that_do_not_vary(tmp_path: pathlib.Path) -> None:
  made_up.write_by_rule(
      tmp_path, 'fig3e', made_up_rules.by_k(0.4, 0.7, 0.1, 0.5)
  )
  frame = results.library(tmp_path).values('fig3e')
  frame = frame[(frame['task.num_modules'] == 4) & (frame['split'] == 'ood')]
  runs = frame[(frame['kind'] == 'last') & (frame['metric'] == 'r2')]
  targets = decoding_targets.of(runs)
  assert len(targets) == 8  # Two generated layers.
  rows = [runs.assign(metric=target) for target in targets]
  single = rows[-1]['task.max_active'] == 1
  rows[-1] = rows[-1][~(single & (rows[-1]['seed'] == 2020))]
  found = cells.select('fig3e', pd.concat(rows), fig3e.CELL)
  (line,) = [' '.join(fig3e._undefined(found))]
  assert line.endswith('in how many seeds): 4/1 layer 1, module 3 (1).')


@pytest.mark.parametrize(
    'claim_id, experiment, rule',
    [
        ('A4', 'fig_a4', made_up_rules.by_shots(0.05)),
        ('A5', 'fig_a5', made_up_rules.by_fraction(0.4, 0.1, 0.0)),
        ('3E', 'fig3e', made_up_rules.by_k(0.4, 0.7, 0.1, 0.5)),
        ('A6', 'fig3e', made_up_rules.by_k(0.4, 0.7, 0.1, 0.5)),
        ('3F', 'fig3f', made_up_rules.by_size(0.5, 0.8, 0.6)),
    ],
)
def test_one_hypernetwork_does_not_speak_for_both(
    tmp_path: pathlib.Path,
    claim_id: str,
    experiment: str,
    rule: made_up_rules.Rule,
) -> None:
  made_up.write_by_rule(tmp_path, experiment, rule)
  claim = results.claim(claim_id)
  assert (
      verdicts.evaluate(claim, results.library(tmp_path))['verdict']
      == 'SUPPORTED'
  )
  for folder in tmp_path.glob('*/*/*-nonlinear_hypernetwork-*'):
    shutil.rmtree(folder)
  entry = verdicts.evaluate(claim, results.library(tmp_path))
  assert entry['verdict'] == 'NOT RUN'
  assert 'Nonlinear hypernetwork' in entry['note']


def test_published_accuracies_are_compared_at_their_scale(
    tmp_path: pathlib.Path,
) -> None:
  def as_published(fields: dict[str, Any], split: str, metric: str) -> float:
    if metric != 'accuracy':
      return 0.5
    cell = {
        path: fields[path]
        for path in ('model.name', 'task.num_modules', 'task.max_active')
    }
    found = reference.published_accuracy('fig3e', cell, split)
    return found[0] + 0.015 if found else 0.5

  def summarise(name: str) -> str:
    return '\n'.join(agreement.summarise(results.library(tmp_path / name)))

  options = {'preset': 'paper', 'num_modules': 4}
  made_up.write_by_rule(tmp_path / 'a', 'fig3e', as_published, **options)
  # Tables A2 to A4 but for OOD(K=2), which is not made up.
  assert summarise('a').startswith('60 of 60 values agree; a perfect')
  assert 'Apart' not in summarise('a')
  _, _, missing = summarise('a').partition('Without a finished run: ')
  assert len(missing.split('; ')) == 16 and 'ANIL, M = 8, K = 4' in missing
  # Longer runs of the same cells do not hide those at the published scale.
  frame = results.library(tmp_path / 'a').every_preset('fig3e')
  longer_runs = frame.assign(
      published_scale=False,
      condition='longer',
      run_id='longer',
      **{'training.num_outer_steps': 10**6},
  )
  both = pd.concat([frame, longer_runs], ignore_index=True)
  ours = [value.ours for value in agreement.compare(both, 'fig3e')]
  assert sorted(mean.num_seeds for mean in ours) == [0] * 124 + [3] * 60
  made_up.write_by_rule(
      tmp_path / 'b', 'fig3e', made_up_rules.constant, **options
  )
  assert 'ANIL, M = 4, K = 1, OOD: 0.500, published 0.465' in summarise('b')
  made_up.write_by_rule(tmp_path / 'c', 'fig3e', as_published, num_modules=4)
  told = ['NOT RUN', 'Without a finished run: all 28 cells']
  assert summarise('c').split('\n') == told


def _published(folder: pathlib.Path) -> list[agreement.Value]:
  frame = results.library(folder).every_preset('fig3e')
  return list(agreement.compare(frame, 'fig3e'))


def test_a_perfect_reproduction_misses_some(tmp_path: pathlib.Path) -> None:
  values = _published(tmp_path)
  assert len(values) == 184
  low, high = agreement.misses_by_chance(values, 3)
  assert 0 <= low < 10 < high < 40
  assert agreement.misses_by_chance(values, 100)[1] < high
  assert agreement.misses_by_chance(values[:28], 3)[1] < 28
  assert f'misses {low} to {high}' in _PAGE.read_text()


def test_tasks_of_all_modules_are_evaluated_though_trained_on(
    tmp_path: pathlib.Path,
) -> None:
  """Else Tables A4 and A8 have eight values without any of ours."""
  columns = fig3e.CELL[1:]
  last_rows = [
      {column: value.fields[column] for column in fig3e.CELL}
      for value in _published(tmp_path)
      if value.split == f'ood_k{value.fields[columns[0]]}'
      and len({value.fields[column] for column in columns}) == 1
  ]
  assert len(last_rows) == 8
  repeated = [
      {column: fields[column] for column in fig3e.CELL}
      for run in reference.described_runs('fig3e', 'paper')
      for fields in [dict(sweeps.flatten(run.config))]
      if fields.get('task.repeat_ood')
  ]
  assert all(cell in repeated for cell in last_rows)
  assert all(cell[columns[0]] == cell[columns[1]] for cell in repeated)


@pytest.mark.parametrize(
    'fall, at_four, of_control, of_control_at_two, verdict',
    [
        (0.3, 0.3, 0.1, 0.0, 'SUPPORTED'),
        (0.3, 0.3, 0.3, 0.0, 'UNDECIDED'),
        # The same as the control, of which four modules are held out, too.
        (0.3, 0.1, 0.1, 0.0, 'UNDECIDED'),
        (0.1, 0.1, 0.3, 0.0, 'CONTRADICTED'),
        # The control falls less, but only because it is worse on two modules.
        (0.3, 0.3, 0.3, 0.2, 'UNDECIDED'),
    ],
)
def test_txt1_is_a_difference_from_a_control(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    fall: float,
    at_four: float,
    of_control: float,
    of_control_at_two: float,
    verdict: str,
) -> None:
  monkeypatch.setattr(made_up, 'SPLITS', (*made_up.SPLITS, 'ood_k2'))

  def rule(fields: dict[str, Any], split: str, metric: str) -> float:
    if fields['task.max_active'] == 8:
      falls = {'ood_k4': of_control, 'ood_k8': of_control}
      falls['ood_k2'] = of_control_at_two
    else:
      falls = {'ood_k4': at_four, 'ood_k8': fall}
    return 0.9 - falls.get(split, 0.0)

  made_up.write_by_rule(tmp_path, 'more_modules', rule)
  claim = results.claim('TXT-1')
  entry = verdicts.evaluate(claim, results.library(tmp_path))
  assert entry['verdict'] == verdict, entry['note']
  assert len(entry['comparisons']) == 8
  for folder in tmp_path.glob('*/*/8-linear_hypernetwork-*'):
    shutil.rmtree(folder)
  entry = verdicts.evaluate(claim, results.library(tmp_path))
  assert entry['verdict'] == 'NOT RUN'


def test_3f_picks_the_peak_on_other_seeds() -> None:
  """Noise alone makes no peak."""
  rng = np.random.default_rng(0)
  effects = []
  for _ in range(300):
    noise = pd.DataFrame(rng.normal(size=(5, 9)))
    picked = comparisons.pick_on_other_seeds(noise)
    effects.append(picked.mean())
  assert abs(np.mean(effects)) < 4 * np.std(effects) / 300**0.5
  clear = pd.DataFrame([[0.0, 1.0], [0.1, 0.9], [2.0, 1.0]])
  # The third seed alone prefers the first size.
  assert comparisons.pick_on_other_seeds(clear).tolist() == [0.0, 0.1, 1.0]


def test_noise_alone_has_no_spread() -> None:
  rng = np.random.default_rng(1)
  spreads = [
      comparisons.spread_on_other_seeds(
          pd.DataFrame(rng.normal(size=(5, 4)) + [0, 0, 0, shift])
      ).mean()
      for shift in (0, 100)
      for _ in range(300)
  ]
  noise, shifted = spreads[:300], spreads[300:]
  assert abs(np.mean(noise)) < 4 * np.std(noise) / 300**0.5
  assert abs(np.mean(shifted) - 100) < 0.2
