"""The figures and claims of the study, on made-up results."""

from collections.abc import Iterator, Sequence
import pathlib
from typing import Any

import numpy as np
import pytest

from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.studies.learning_dynamics import claims as ours
from modular_hyperteacher.studies.learning_dynamics import measures
from modular_hyperteacher.studies.learning_dynamics import supports
from modular_hyperteacher.studies.learning_dynamics import theory
from tests.helpers import made_up
from tests.helpers import results

_FIGURES = ('ld_linear', 'ld_times', 'ld_order', 'ld_collapse', 'ld_modules')
_STEPS = np.arange(100, 4001, 300)
_AS_CLAIMED = {
    # Sign of the correlation of steps and predicted times, over supports and
    # over the modules of a run.
    'align': 1.0,
    'decode': 1.0,
    # A disconnected support multiplies steps and OOD loss by these.
    'fit_factor': 1.0,
    'ood_factor': 100.0,
    # Whether the end can be told from the beginning.
    'told': 1.0,
    # Exponent of steps over M.
    'exponent': 0.8,
    # Whether there are losses of families, which no claim compares.
    'families': 0.0,
}


def _reach(step: int, scale: float, time: float, sign: float) -> float:
  """Returns what rises to one, in steps that rise or fall with a time."""
  return float(1 - np.exp(-step / (scale * 8 * time**sign * 100 ** (1 - sign))))


def _rows(run: sweeps.Run, values: dict[str, float]) -> Iterator[made_up.Row]:
  """Yields curves that rise or fall exponentially."""
  task = run.config['task']
  for number, seed in enumerate(run.config['training']['seeds']):
    jitter = 1 + 0.02 * ((number + len(run.run_id)) % 5 - 2)
    if run.experiment == 'ld_modules':
      scale = 100 * jitter * task['num_modules'] ** values['exponent']
      for step in np.arange(50, 3001, 50):
        yield int(step), seed, 'test', 'loss', float(np.exp(-step / scale))
      continue
    yield from _student(task, seed, jitter, values)


def _student(
    task: dict[str, Any], seed: int, jitter: float, values: dict[str, float]
) -> Iterator[made_up.Row]:
  kind, name = task['latent_type'], task['task_support']
  joined = supports.is_connected(name)
  slow = 1 / supports.smallest_eigenvalue(kind, name)
  best = end = 0.92 + 0.06 * joined + 0.02 * jitter
  if not values['told']:
    end = float(np.random.default_rng([seed, *name.encode()]).uniform(0.3, 1.0))
  factors = (
      (1.0, 1.0) if joined else (values['fit_factor'], values['ood_factor'])
  )
  for step in map(int, _STEPS):
    loss = 0.4 * np.exp(-step / (400 * jitter * factors[0])) + 1e-6
    ood = (0.4 * np.exp(-step / (400 * jitter)) + 1e-6) * factors[1]
    aligned = best * _reach(step, jitter, slow, values['align'])
    if not values['told'] and step == _STEPS[-1]:
      aligned = end
    yield step, seed, 'ood', 'alignment', aligned
    yield step, seed, 'test', measures.RELATIVE_LOSS, loss
    yield step, seed, 'ood', measures.RELATIVE_LOSS, ood
    for module, time in enumerate(measures.module_times(kind, name)):
      decoded = _reach(step, jitter, time, values['decode'])
      yield step, seed, 'ood', f'decoding_r2_m{module}', decoded
    for split in (
        measures.family_times(kind, name) if values['families'] else ()
    ):
      yield step, seed, split, measures.RELATIVE_LOSS, loss


def _write(
    root: pathlib.Path,
    changes: Any = (),
    experiments: Sequence[str] = (measures.EXPERIMENT, measures.MODULES),
) -> data.Library:
  values = _AS_CLAIMED | dict(changes)
  for name in experiments:
    config = plugins.config_of(name).get_config('laptop')
    made_up.write_experiment(
        root,
        config,
        lambda run: {
            'valid': {'loss': [0.1] * len(run.config['training']['seeds'])}
        },
        rows=lambda run: _rows(run, values),
    )
  return results.library(root)


@pytest.fixture(scope='module', name='as_claimed')
def fixture_as_claimed(
    tmp_path_factory: pytest.TempPathFactory,
) -> data.Library:
  """Runs in which all claims hold."""
  return _write(tmp_path_factory.mktemp('as_claimed'), {'families': 1.0})


@pytest.mark.parametrize(
    'claim_id, changes, verdict',
    [
        *((f'LD-{number}', {}, 'SUPPORTED') for number in range(1, 7)),
        ('LD-2', {'align': -1}, 'CONTRADICTED'),
        ('LD-3', {'fit_factor': 2.0}, 'CONTRADICTED'),
        ('LD-3', {'fit_factor': 0.5}, 'SUPPORTED'),  # Faster is as fast.
        ('LD-3', {'ood_factor': 5.0}, 'CONTRADICTED'),
        ('LD-4', {'decode': -1}, 'CONTRADICTED'),
        ('LD-5', {'told': 0}, 'CONTRADICTED'),
        ('LD-6', {'exponent': 1.3}, 'CONTRADICTED'),
        ('LD-6', {'exponent': 0.3}, 'CONTRADICTED'),
    ],
)
def test_claims(
    tmp_path: pathlib.Path,
    as_claimed: data.Library,
    claim_id: str,
    changes: Any,
    verdict: str,
) -> None:
  claim = results.claim(claim_id)
  library = as_claimed
  if changes:
    library = _write(tmp_path, changes, (claim.experiment,))
  entry = verdicts.evaluate(claim, library)
  assert entry['verdict'] == verdict, entry['note']
  assert entry['num_seeds'] == 5


@pytest.mark.parametrize('name', _FIGURES)
def test_figures_show_all_runs(as_claimed: data.Library, name: str) -> None:
  figure, table = registry.figures()[name].draw(as_claimed)
  texts = made_up.texts(figure)
  assert 'no finished run' not in texts and 'missing' not in texts
  number = {'ld_linear': 20, 'ld_modules': 5}.get(name, len(supports.RUNS))
  assert len(table) >= number if name == 'ld_order' else len(table) == number
  assert table.notna().to_numpy().all()


@pytest.mark.parametrize('name', _FIGURES[1:])
def test_without_runs_they_say_so(tmp_path: pathlib.Path, name: str) -> None:
  library = results.library(tmp_path)
  figure, _ = registry.figures()[name].draw(library)
  assert 'no finished run' in made_up.texts(figure)


@pytest.mark.parametrize('number', range(2, 7))
def test_without_runs_claims_are_not_run(
    tmp_path: pathlib.Path, number: int
) -> None:
  library = results.library(tmp_path)
  assert results.judge(f'LD-{number}', library)['verdict'] == 'NOT RUN'


def test_forecasts_know_neither_the_seed_nor_the_run() -> None:
  """What is left out may be anything, and its forecast stays the same."""
  draw = np.random.default_rng(0)
  features, noise = draw.normal(size=(5, 4, 3)), draw.normal(size=(5, 4))
  targets = features @ [1.0, -2.0, 0.5] + 0.1 * noise
  forecast = ours.predict_left_out(features, targets)
  assert np.corrcoef(forecast.ravel(), targets.ravel())[0, 1] > 0.9
  changed = targets.copy()
  changed[2], changed[:, 1] = 100.0, -100.0
  again = ours.predict_left_out(features, changed)
  assert again[2, 1] == pytest.approx(forecast[2, 1])
  assert (np.abs(np.delete(np.delete(again - forecast, 2, 0), 1, 1)) > 1).all()


def test_the_predicted_exponent_is_below_one_for_few_modules() -> None:
  """It is one in the limit of many."""
  few = ours.predicted_exponent([4, 6, 8, 10, 12], 3)
  assert few == pytest.approx(0.78, abs=0.01)
  assert ours.predicted_exponent([200, 400], 3) == pytest.approx(1, abs=0.02)
  assert theory.smallest_eigenvalue(4, 3) == pytest.approx(1 / 6)


def test_seeds_that_never_arrive_count_with_all_steps(
    as_claimed: data.Library,
) -> None:
  curves = as_claimed.curves(measures.EXPERIMENT)
  where = measures.cell('continuous', 'ring')
  steps = measures.steps_to(curves, where, 'ood', 'alignment', 1.5)
  assert (steps == _STEPS[-1]).all() and len(steps) == 5
