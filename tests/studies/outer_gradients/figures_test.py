"""The figures and claims of the study, on made-up results."""

import pathlib
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures import claims
from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.studies.outer_gradients import costs
from modular_hyperteacher.studies.outer_gradients import fidelity
from modular_hyperteacher.studies.outer_gradients import measures
from modular_hyperteacher.studies.outer_gradients.configs import cr_long
from modular_hyperteacher.studies.outer_gradients.configs import cr_training
from tests.helpers import made_up

# As the claims say: OOD accuracy, and losses of learned strengths, by rule.
_AS_CLAIMED = {
    'unrolled': 0.80,
    'truncated': 0.80,
    'first_order': 0.60,
    'implicit_cg': 0.78,
    'implicit_neumann': 0.78,
    't1_t2': 0.70,
    'contrastive_standard': 0.70,
    'contrastive_symmetric': 0.80,
    'linearised_control': 0.79,
    'rate': 1.0,  # How fast the symmetric rule approaches, relative to others.
}


def _accuracy(values: dict[str, float], fields: dict[str, Any]) -> float:
  return values[fields.get('model.outer.gradient', 'unrolled')]


def _write(
    root: pathlib.Path,
    changes: Any = (),
    experiments: tuple[str, ...] = (measures.TRAINING, measures.LONG),
) -> data.Library:
  values = _AS_CLAIMED | dict(changes)

  def rule(fields: dict[str, Any], split: str, metric: str) -> float:
    del split
    accuracy = _accuracy(values, fields)
    return 1 - accuracy if metric == 'loss' else accuracy

  if measures.TRAINING in experiments:
    made_up.write_by_rule(root, measures.TRAINING, rule)

  def rows(run: sweeps.Run) -> list[made_up.Row]:
    fields = dict(sweeps.flatten(run.config))
    symmetric = 'symmetric' in fields.get('model.outer.gradient', '')
    rate = values['rate'] if symmetric else 1.0
    tilt = int(sweeps.hash_of(run.run_id), 16) % 5 + 1
    return [
        (
            step,
            seed,
            'ood',
            'accuracy',
            _accuracy(values, fields) * (1 - np.exp(-step * rate / 200))
            + 0.001 * tilt * (seed - 2022),
        )
        for step in range(0, 1501, 250)
        for seed in run.config['training']['seeds']
    ]

  if measures.LONG in experiments:
    made_up.write_experiment(
        root,
        plugins.config_of(measures.LONG).get_config('laptop'),
        lambda run: {'valid': {'loss': [0.1] * 5}},
        rows=rows,
    )
  return data.Library(root, root / 'nothing')


@pytest.fixture(scope='module', name='as_claimed')
def fixture_as_claimed(
    tmp_path_factory: pytest.TempPathFactory,
) -> data.Library:
  """Runs in which all claims hold."""
  return _write(tmp_path_factory.mktemp('as_claimed'))


def _judge(number: int, library: data.Library) -> verdicts.Entry:
  (claim,) = [c for c in claims.known() if c.id == f'CR-{number}']
  return verdicts.evaluate(claim, library)


@pytest.mark.parametrize(
    'number, changes, verdict',
    [
        *((number, {}, 'SUPPORTED') for number in range(3, 8)),
        (3, {'t1_t2': 0.85}, 'CONTRADICTED'),
        (3, {'t1_t2': 0.81}, 'SUPPORTED'),  # Within the margin.
        (4, {'contrastive_symmetric': 0.75}, 'CONTRADICTED'),
        (5, {'first_order': 0.85}, 'CONTRADICTED'),
        (6, {'rate': 0.05}, 'CONTRADICTED'),
        (7, {'linearised_control': 0.85}, 'CONTRADICTED'),
        (7, {'contrastive_symmetric': 0.85}, 'CONTRADICTED'),
    ],
)
def test_claims_on_trained_students(
    tmp_path: pathlib.Path,
    as_claimed: data.Library,
    number: int,
    changes: Any,
    verdict: str,
) -> None:
  library = as_claimed
  if changes:
    name = measures.TRAINING if number < 6 else measures.LONG
    library = _write(tmp_path, changes, (name,))
  entry = _judge(number, library)
  assert entry['verdict'] == verdict, entry['note']
  assert entry['num_seeds'] == 5


def _measured(changes: Any) -> pd.DataFrame:
  """Returns fidelity as claimed: the best beta is 0.1 for N = 10, then less."""
  values = {'best': -1.0, 'symmetric': 0.5, 'away': -0.5} | changes
  rows = []
  for seed in range(5):
    for rule in (
        'contrastive_standard',
        'contrastive_symmetric',
        'contrastive_control',
    ):
      for num_free in fidelity.FREE:
        for last in fidelity.LAST:
          for beta in fidelity.BETAS:
            for step in fidelity.STEPS:
              standard = rule == 'contrastive_standard'
              best = values['best'] if num_free == 10 else -2.0
              error = 0.6 + abs(np.log10(beta) - best) + 0.01 * seed
              if not standard:
                error = values['symmetric'] + 0.02 * seed
              cosine = values['away'] if standard else 0.9 + 0.01 * seed
              where = rule, num_free, last, beta, step, False
              rows.append((seed, *where, error, 0.0, 0.0, cosine + 0.01 * seed))
  columns = ['seed', *fidelity.CELL, *fidelity.METRICS]
  return pd.DataFrame(rows, columns=columns)


@pytest.mark.parametrize(
    'number, changes, verdict',
    [
        *((number, {}, 'SUPPORTED') for number in (1, 2, 8)),
        (1, {'best': -2.5}, 'CONTRADICTED'),
        (1, {'best': 1.0}, 'CONTRADICTED'),  # At the end, not inside.
        (2, {'symmetric': 3.0}, 'CONTRADICTED'),
        (8, {'away': 0.5}, 'CONTRADICTED'),
    ],
)
def test_claims_on_gradients(
    tmp_path: pathlib.Path, number: int, changes: Any, verdict: str
) -> None:
  (claim,) = [c for c in claims.known() if c.id == f'CR-{number}']
  made = fidelity.MEASURED._replace(path=tmp_path / 'fidelity.csv.gz')
  made.write(_measured(changes))
  runs = made.read(data.Library(tmp_path, tmp_path), claim.experiment)
  found = list(claim.compare(runs))
  judged = verdicts.judge(found, fidelity.CELL)
  assert judged.verdict == verdict, judged.note


def test_without_runs_claims_are_not_run(tmp_path: pathlib.Path) -> None:
  library = data.Library(tmp_path, tmp_path / 'nothing')
  for number in (3, 4, 5, 6, 7, 9):
    assert _judge(number, library)['verdict'] == 'NOT RUN'
  for name in ('cr_training', 'cr_long'):
    figure, _ = registry.figures()[name].draw(library)
    assert 'no finished run' in made_up.texts(
        figure
    ) or 'no run' in made_up.texts(figure)


@pytest.mark.parametrize(
    'name', ['cr_toy', 'cr_fidelity', 'cr_costs', 'cr_training', 'cr_long']
)
def test_figures_show_all(as_claimed: data.Library, name: str) -> None:
  figure, table = registry.figures()[name].draw(as_claimed)
  assert 'no finished run' not in made_up.texts(figure)
  assert 'missing' not in made_up.texts(figure)
  assert len(table) > 8


def test_every_run_of_fifty_steps_has_its_costs() -> None:
  for rule, last in cr_long.RULES:
    row = costs.find(rule, num_steps=cr_long.NUM_STEPS, num_last_steps=last)
    assert row['cpu_ms'] > 0 and row['memory_mib'] > 0


@pytest.mark.parametrize(
    'rule, products',
    [
        (('unrolled', 10, None), 93),
        (('first_order', 10, None), 33),
        (('truncated', 10, 5), 63),
        (('contrastive_standard', 10, 10), 99),
        (('contrastive_symmetric', 10, 10), 159),
        (('linearised_control', 100, 25), 459),
    ],
)
def test_products_are_those_of_the_specification(
    rule: tuple[Any, ...], products: int
) -> None:
  assert costs.products(costs.Case(*rule)) == products


@pytest.mark.parametrize('rule', cr_training.ALL)
def test_the_page_has_the_accuracies_of_the_bundled_runs(rule: str) -> None:
  frame = data.Library(data.BUNDLED / 'nothing').values(measures.TRAINING)
  shown = []
  for model, support in (
      ('linear_hypernetwork', 'random'),
      ('linear_hypernetwork', 'non_compositional'),
      ('nonlinear_hypernetwork', 'random'),
      ('maml', 'random'),
      ('anil', 'random'),
  ):
    cell = measures.cell(model, rule, task_support=support)
    seeds = pick.values(frame, cell, 'ood')
    assert len(seeds) in (0, 5)
    text = f'{seeds.mean():.3f} \N{PLUS-MINUS SIGN} {seeds.sem():.3f}'
    shown.append(text if len(seeds) else '')
  page = (pathlib.Path(measures.__file__).parent / 'README.md').read_text()
  (row,) = re.findall(rf'^\| `{rule}`[^|]*\|(.*)\|$', page, re.MULTILINE)[:1]
  assert [cell.strip() for cell in row.split('|')] == shown
