"""Scaling laws and the grid over shots and tasks, on made-up curves."""

from collections.abc import Callable, Mapping, Sequence
import math
import pathlib
from typing import Any

import numpy as np
import pandas as pd
import pytest

from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.extensions import scaling_law
from modular_hyperteacher.runs import records
from modular_hyperteacher.runs import run_folder
from tests.helpers import made_up
from tests.helpers import results

_SIZES = (4, 6, 8, 10)


def _bounds(
    function: Callable[[float], float],
    sizes: Sequence[int] = _SIZES,
    seeds: int = 3,
    noise: float = 0.05,
    width: float = 1.0,
) -> pd.DataFrame:
  """Measurements of `function`, times noise, known up to a factor."""
  rng = np.random.default_rng(1)
  rows = []
  for x in sizes:
    for seed in range(seeds):
      y = function(x) * math.exp(noise * rng.normal())
      rows.append((x, seed, y / math.sqrt(width), y * math.sqrt(width)))
  return pd.DataFrame(rows, columns=['M', 'seed', *scaling_law.BOUNDS])


# The fit.


def test_a_power_law_is_found() -> None:
  law = scaling_law.fit_power_law(_bounds(lambda m: 500 * m**1.7))
  assert law.exponent == pytest.approx(1.7, abs=0.1)
  assert law.low < 1.7 < law.high and law.high - law.low < 0.4
  at = law.curve.iloc[[0, -1]]
  np.testing.assert_allclose(at['fit'], [500 * 4**1.7, 500 * 10**1.7], rtol=0.1)
  assert (law.curve['low'] <= law.curve['fit']).all()
  assert (law.curve['fit'] <= law.curve['high']).all()


def test_without_noise_it_is_exact() -> None:
  law = scaling_law.fit_power_law(_bounds(lambda m: 3 * m**2, noise=0.0))
  assert law.exponent == pytest.approx(2.0, abs=1e-6)
  assert law.low == pytest.approx(2.0, abs=1e-6) == law.high
  assert law.power_law_fits_better == 1.0 and law.told_apart


def test_an_exponential_is_told_apart_only_if_data_do() -> None:
  sizes = (2, 4, 8, 16)
  clear = scaling_law.fit_power_law(_bounds(lambda m: 2.0**m, sizes, noise=0.1))
  assert clear.told_apart and clear.power_law_fits_better < 0.05
  noisy = scaling_law.fit_power_law(_bounds(lambda m: m**2, noise=0.5))
  assert not noisy.told_apart


def test_what_is_known_up_to_bounds_widens_the_band() -> None:
  narrow, wide = (
      scaling_law.fit_power_law(_bounds(lambda m: m**2, width=width))
      for width in (1.0, 2.0)
  )
  assert wide.high - wide.low > 1.2 * (narrow.high - narrow.low)


@pytest.mark.parametrize(
    'sizes, seeds', [((4, 6), 3), (_SIZES, 1)], ids=['sizes', 'seeds']
)
def test_too_few_measurements_determine_nothing(
    sizes: Sequence[int], seeds: int
) -> None:
  assert scaling_law.is_determined(_bounds(lambda m: m**2))
  bounds = _bounds(lambda m: m**2, sizes, seeds)
  assert not scaling_law.is_determined(bounds)
  with pytest.raises(ValueError, match='do not determine'):
    scaling_law.fit_power_law(bounds)


def test_intervals_cover_about_as_often_as_they_say() -> None:
  """Over many data sets of three seeds: most, if not quite 95%."""
  rng, covered = np.random.default_rng(2), 0
  for _ in range(20):
    bounds = _bounds(lambda m: m**2.0, noise=0.0, seeds=4)
    factors = np.exp(0.2 * rng.normal(size=len(bounds)))
    bounds[scaling_law.BOUNDS] = bounds[scaling_law.BOUNDS].mul(factors, axis=0)
    law = scaling_law.fit_power_law(bounds)
    covered += law.low <= 2.0 <= law.high
  assert 14 <= covered <= 20


# Levels.


def _table(tasks: Mapping[int, Sequence[float]]) -> pd.DataFrame:
  """Rows of one model: {M: [tasks of each seed]} to the level 0.7."""
  rows = [
      {'M': m, 'level': 0.7, 'seed': i, 'tasks': t, 'tasks_before': t / 2}
      for m, of_seeds in tasks.items()
      for i, t in enumerate(of_seeds)
  ]
  return pd.DataFrame(rows)


def test_sizes_at_which_a_seed_fails_are_left_out_as_a_whole() -> None:
  tasks = {4: [8, 8], 6: [16, 32], 8: [32, math.nan], 10: [64, 64]}
  level, bounds = scaling_law.choose_level(_table(tasks))
  assert level == 0.7
  assert set(bounds['M']) == {4, 6, 10}
  level, bounds = scaling_law.choose_level(_table(tasks | {6: [math.nan, 1]}))
  assert level is None and bounds.empty


def test_reached_at_the_first_evaluation_bounds_from_one_side_only() -> None:
  table = _table({4: [8, 8], 6: [16, 16], 8: [32, 32]})
  table.loc[table['M'] == 4, 'tasks_before'] = 0
  assert scaling_law.choose_level(table)[0] is None


# Figures and claims.


def _write_curves(
    root: pathlib.Path,
    experiment: str,
    accuracy: Callable[[sweeps.Run, int, int], float],
    diverged: int | None = None,
) -> None:
  """Finished runs with OOD accuracies `accuracy(run, seed, step)`.

  The seed `diverged`, if any, ends with a loss that is not finite.
  """
  made_up.write_by_rule(root, experiment, lambda *_: 0.5)
  for path in root.glob(f'{experiment}/laptop/*/config.json'):
    folder = run_folder.RunFolder(path.parent)
    config: Any = folder.read('config.json', records.Config)
    assert config is not None
    run = sweeps.Run(experiment, 'laptop', config, path.parent.name)
    every = config['training']['evaluate_every']
    last = config['training']['num_outer_steps']
    seeds = config['training']['seeds']
    accuracies = [
        (step, seed, split, 'accuracy', accuracy(run, seed, step))
        for step in range(every, last + 1, every)
        for seed in seeds
        for split in ('test', 'ood')
    ]
    losses = [
        (last, seed, 'valid', 'loss', math.nan if seed == diverged else 0.5)
        for seed in seeds
    ]
    folder.write_metrics(accuracies + losses)


def _grows(power: float) -> Callable[[sweeps.Run, int, int], float]:
  """Reaches 0.6 after 300 (M / 4)^power steps, but for the seed."""

  def accuracy(run: sweeps.Run, seed: int, step: int) -> float:
    size = run.config['task']['num_modules'] / 4
    needed = 300 * size**power * (1 + 0.1 * (seed - 2021))
    return 0.65 if step >= needed else 0.3

  return accuracy


def test_the_law_is_drawn_and_said(tmp_path: pathlib.Path) -> None:
  _write_curves(tmp_path, 'fig_a3', _grows(1.5))
  figure, table = registry.figures()['scaling_law'].draw(
      results.library(tmp_path)
  )
  assert len(table) == 2 and set(table['level']) == {0.6}
  for _, row in table.iterrows():
    assert row['exponent_low'] < 1.5 < row['exponent_high']
    assert row['num_seeds'] == 3 and row['M'] == '4, 6, 8, 10'
  texts = made_up.texts(figure)
  assert 'tasks ∝ M^' in texts and 'Not in the paper' in texts
  # Points and a fit in either panel.
  assert (
      sum(
          t.line.dash == 'dash' and len(t.x) > 9 for t in made_up.traces(figure)
      )
      == 2
  )


def test_without_enough_sizes_the_figure_says_so(
    tmp_path: pathlib.Path,
) -> None:
  _write_curves(tmp_path, 'fig_a3', lambda run, seed, step: 0.3)
  figure, table = registry.figures()['scaling_law'].draw(
      results.library(tmp_path)
  )
  assert 'not determined' in made_up.texts(figure)
  assert table['law'].str.contains('not determined').all()
  assert results.entry(tmp_path, 'SC-1')['verdict'] == 'UNDECIDED'


# Combinations of up to three of 4, 8 and 10 modules: 14, 92 and 175, or about
# M to the power of 2.7. The steepest law leaves M = 10 no time.
@pytest.mark.parametrize(
    'power, largest, combinations, verdict',
    [(1.0, 10, 175, 'SUPPORTED'), (3.0, 8, 92, 'UNDECIDED')],
)
def test_claim_on_the_power(
    tmp_path: pathlib.Path,
    power: float,
    largest: int,
    combinations: int,
    verdict: str,
) -> None:
  _write_curves(tmp_path, 'fig_a3', _grows(power))
  entry = results.entry(tmp_path, 'SC-1')
  assert entry['verdict'] == verdict, entry['note']
  assert entry['num_seeds'] == 3
  expected = math.log(combinations / 14) / math.log(largest / 4) - power
  assert entry['effect'] == pytest.approx(expected, abs=0.4)


@pytest.mark.parametrize(
    'of_shots, of_tasks, verdict',
    [(0.1, 0.05, 'SUPPORTED'), (0.05, 0.1, 'CONTRADICTED')],
)
def test_claim_on_budgets(
    tmp_path: pathlib.Path, of_shots: float, of_tasks: float, verdict: str
) -> None:
  """Accuracy gains so much per doubling of shots, and of tasks."""

  def accuracy(run: sweeps.Run, seed: int, step: int) -> float:
    shots = run.config['task']['num_support']
    gained = of_shots * math.log2(shots / 4) + of_tasks * math.log2(step / 500)
    return 0.2 + gained + 0.001 * (seed - 2020)

  _write_curves(tmp_path, 'sample_complexity', accuracy)
  entry = results.entry(tmp_path, 'SC-2')
  assert entry['verdict'] == verdict
  assert entry['effect'] == pytest.approx(of_shots - of_tasks, abs=1e-6)
  figure, table = registry.figures()['sample_complexity'].draw(
      results.library(tmp_path)
  )
  grid = made_up.traces(figure)[0]
  assert np.shape(grid.z) == (5, 6)  # Shots, tasks.
  np.testing.assert_allclose(np.diff(grid.z, axis=0), of_shots, atol=1e-6)
  assert list(made_up.layout(figure).xaxis.ticktext)[-1] == '96000'
  assert len(table) == 2 * 5 * 6


def test_a_seed_that_diverged_leaves_budgets_undecided(
    tmp_path: pathlib.Path,
) -> None:
  _write_curves(
      tmp_path,
      'sample_complexity',
      lambda run, seed, _: run.config['task']['num_support'] / 100 + seed % 3,
      diverged=2021,
  )
  assert results.entry(tmp_path, 'SC-2')['verdict'] == 'UNDECIDED'
