"""Figures and claims of the theory, on made-up results."""

from collections.abc import Callable
import itertools
import json
import pathlib
import shutil
from typing import Any

import numpy as np
import pandas as pd
import pytest

from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures import claims
from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.extensions import bridges
from modular_hyperteacher.figures.extensions import published_solver
from modular_hyperteacher.figures.extensions import students
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.paper import counterexamples
from modular_hyperteacher.figures.paper import table_a1
from modular_hyperteacher.figures.paper import theory_cells
from tests.helpers import made_up
from tests.helpers import results

FIGURES = (
    *('fig2c', 'fig2d', 'fig_a2', 'table_a1', 'theorem', 'bridges'),
    *('fig2d_grid', 'restarts', 'inference'),
)


def write(
    root: pathlib.Path,
    experiment: str,
    alignment: Callable[[Any], float],
    loss: Callable[[Any, str, int], float] = lambda config, split, seed: 1e-6,
    preset: str = 'laptop',
    **swept: list[Any],
) -> pathlib.Path:
  """Writes an experiment's runs, with results by two rules."""
  preset = sweeps.full_preset(experiment, preset)
  config = plugins.config_of(experiment).get_config(preset)
  config.sweep = tuple({**grid, **swept} for grid in config.sweep)

  def measure(run: sweeps.Run) -> made_up.Summary:
    seeds = run.config['training']['seeds']
    tilt = int(run.run_id[-3:], 16) % 7 + 1
    jitter = [1e-3 * tilt * (-1) ** i * (i + 1) for i in range(len(seeds))]

    def of_split(split: str) -> dict[str, list[float]]:
      aligned = [alignment(run.config) + j for j in jitter]
      return (
          {
              name: aligned
              for name in (
                  'alignment',
                  'alignment_fit_train',
                  'alignment_per_module',
                  'alignment_exact',
                  'latent_r2',
              )
          }
          | {
              name: [1 - a for a in aligned]
              for name in (
                  'identification_residual',
                  'identification_residual_direct',
              )
          }
          | {
              name: [loss(run.config, split, seed) for seed in seeds]
              for name in (
                  'pooled_relative_loss',
                  'support_loss_after',
                  'refit_relative_loss',
                  'refit_relative_loss_max',
                  'inference_excess',
              )
          }
      )

    return {split: of_split(split) for split in ('test', 'ood')}

  return made_up.write_experiment(root, config, measure)


def verdicts_of(root: pathlib.Path) -> dict[str, verdicts.Entry]:
  """Returns the verdicts on claims about experiments that have runs."""
  library = results.library(root)
  return {
      claim.id: verdicts.evaluate(claim, library)
      for claim in claims.known()
      if claim.id == 'TH-2' or (root / claim.experiment).is_dir()
  }


def _connected_is_aligned(config: Any) -> float:
  return (
      0.99 if theory_cells.is_connected(config['task']['task_support']) else 0.6
  )


def _falls(config: Any) -> float:
  large = config['model']['hidden_dim'] > 32
  large |= config['model']['modules_per_teacher_module'] > 2
  return 0.7 if large else 0.95


def _is_best_at_twice(config: Any) -> float:
  return 0.7 if config['model']['hidden_dim'] == 16 else _falls(config)


@pytest.mark.parametrize('name', FIGURES)
def test_can_be_drawn_without_a_run(tmp_path: pathlib.Path, name: str) -> None:
  figure, table = registry.figures()[name].draw(results.library(tmp_path))
  assert isinstance(table, pd.DataFrame)
  if figure is not None:
    assert 'no finished runs' in made_up.texts(figure)


@pytest.mark.parametrize('name', FIGURES)
def test_draws_what_was_run(tmp_path: pathlib.Path, name: str) -> None:
  (experiment,) = registry.figures()[name].experiments
  write(tmp_path, experiment, _connected_is_aligned)
  figure, table = registry.figures()[name].draw(results.library(tmp_path))
  assert len(table)
  if figure is not None:
    assert 'laptop scale' in made_up.texts(figure)
    assert 'not the published scale' in made_up.texts(figure)
    shown = [
        trace.z if 'z' in trace else trace.y for trace in made_up.traces(figure)
    ]
    assert any(pd.Series(np.ravel(values)).notna().any() for values in shown)


def test_figure_2c_shows_each_value(tmp_path: pathlib.Path) -> None:
  write(tmp_path, 'fig2c', _connected_is_aligned)
  _, table = registry.figures()['fig2c'].draw(results.library(tmp_path))
  assert len(table) == 14
  connected = table['task_support'].map(theory_cells.is_connected)
  assert (table.loc[connected, 'alignment_mean'] > 0.98).all()
  assert (table.loc[~connected, 'alignment_mean'] < 0.7).all()


def test_the_published_solver_tells_connected_families(
    tmp_path: pathlib.Path,
) -> None:
  """Drawn from measurements that the repository carries."""
  figure, table = published_solver.draw(results.library(tmp_path))
  students = table.set_index(['task_support', 'seed'])
  connected = students.loc['singles_ring']
  disconnected = students.loc['singles_triangles']
  assert len(connected) == len(disconnected) == 3
  assert (table['outer_step'] < table['num_outer_steps']).all()
  assert (connected['alignment'] > disconnected['alignment']).all()
  assert (connected['ood_relative_loss'] < 1e-3).all()
  assert (disconnected['ood_relative_loss'] > 1e-2).all()
  assert 'after 44,232 of 60,000 outer steps' in made_up.texts(figure)
  first = students['alignment'].iloc[0]
  assert f'(connected) {first:.3f}' in made_up.texts(figure)
  # A line per family and seed in either panel, and two in the legend.
  drawn = [t for t in made_up.traces(figure) if len(t.x) > 40 and not t.fill]
  assert len(drawn) == 2 * 2 * 3


def test_the_published_solver_ran_what_the_paper_preset_describes() -> None:
  known = json.loads(published_solver.PATH.with_suffix('.json').read_text())
  described = {
      run.run_id: json.loads(json.dumps(run.config))
      for run in reference.described_runs('fig2c', 'paper')
  }
  assert known['runs'].keys() <= described.keys()
  for run_id, config in known['runs'].items():
    for block in sweeps.DECISIVE:
      assert config[block] == described[run_id][block]


def test_claims_of_figure_2c(tmp_path: pathlib.Path) -> None:
  write(tmp_path, 'fig2c', _connected_is_aligned)
  found = verdicts_of(tmp_path)
  for name in ('2C-c', '2C-d', '2C-c-adam', '2C-d-adam'):
    assert found[name]['verdict'] == 'SUPPORTED'
    assert found[name]['effect'] == pytest.approx(0.39, abs=0.02)
    assert found[name]['num_seeds'] == 5
  write(tmp_path / 'other', 'fig2c', lambda config: 0.9)
  found = verdicts_of(tmp_path / 'other')
  assert found['2C-c']['verdict'] == found['2C-d']['verdict'] == 'UNDECIDED'


def test_claims_are_about_one_solver(tmp_path: pathlib.Path) -> None:
  def only_converged(config: Any) -> float:
    if config['model']['inner']['solver'] == 'levenberg_marquardt':
      return _connected_is_aligned(config)
    return 0.6

  write(tmp_path, 'fig2c', only_converged)
  found = verdicts_of(tmp_path)
  assert found['2C-c']['verdict'] == 'SUPPORTED'
  assert found['2C-c-adam']['verdict'] == 'UNDECIDED'


def test_adam_alone_decides_nothing_about_converged_inference(
    tmp_path: pathlib.Path,
) -> None:
  write(tmp_path, 'fig2c', _connected_is_aligned)
  for path in tmp_path.glob('fig2c/laptop/*/config.json'):
    if json.loads(path.read_text())['model']['inner']['solver'] != 'adamw':
      shutil.rmtree(path.parent)
  found = verdicts_of(tmp_path)
  assert found['2C-c']['verdict'] == found['2C-d']['verdict'] == 'NOT RUN'
  assert found['2C-c-adam']['verdict'] == 'SUPPORTED'


def test_one_size_is_not_compared_with_itself(tmp_path: pathlib.Path) -> None:
  write(tmp_path, 'fig2d', _falls)
  for path in tmp_path.glob('fig2d/laptop/*/config.json'):
    model = json.loads(path.read_text())['model']
    if model['modules_per_teacher_module'] > 2:
      shutil.rmtree(path.parent)
  found = verdicts_of(tmp_path)
  assert {found[id_]['verdict'] for id_ in ('2D-c', '2D-d')} == {'NOT RUN'}


def test_inference_is_drawn_for_any_number_of_modules(
    tmp_path: pathlib.Path,
) -> None:
  write(
      tmp_path,
      'inference',
      lambda config: 0.9,
      modules_per_teacher_module=[3],
  )
  figure, table = registry.figures()['inference'].draw(
      results.library(tmp_path)
  )
  assert set(table['modules_per_teacher_module']) == {3}
  names = {trace.name for trace in made_up.traces(figure)}
  assert names == {'Levenberg-Marquardt, 3 times', 'Adam, 3 times'}


def test_claims_of_figure_2d(tmp_path: pathlib.Path) -> None:
  write(tmp_path, 'fig2d', _is_best_at_twice)
  found = verdicts_of(tmp_path)
  assert found['2D-d']['verdict'] == 'SUPPORTED'
  assert found['2D-c']['verdict'] == 'CONTRADICTED'
  # A fall that is not noticed, as in 2D-c.
  write(tmp_path / 'other', 'fig2d', lambda config: 0.88 + _falls(config) / 10)
  found = verdicts_of(tmp_path / 'other')
  assert found['2D-d']['verdict'] == 'CONTRADICTED'
  assert found['2D-c']['verdict'] == 'SUPPORTED'


def test_a_little_larger_than_the_teacher_must_be_better(
    tmp_path: pathlib.Path,
) -> None:
  write(tmp_path, 'fig2d', _falls)
  assert verdicts_of(tmp_path)['2D-d']['verdict'] == 'UNDECIDED'


@pytest.mark.parametrize(
    'without, of_decay, verdict',
    [
        (0.7, 0.0, 'SUPPORTED'),
        (0.7, 0.2, 'CONTRADICTED'),
        (0.98, 0.0, 'UNDECIDED'),
    ],
    ids=['no help', 'help', 'nothing to help'],
)
def test_claim_of_table_a1(
    tmp_path: pathlib.Path, without: float, of_decay: float, verdict: str
) -> None:
  def alignment(config: Any) -> float:
    decay = config['model']['outer']['weight_decay']
    return without + of_decay * (decay > 0)

  write(tmp_path, 'table_a1', alignment)
  found = verdicts_of(tmp_path)['A1']
  assert found['verdict'] == verdict
  assert ('nothing to raise' in found['note']) == (verdict == 'UNDECIDED')


def test_sizes_of_another_preset_are_not_ranked_for_table_a1(
    tmp_path: pathlib.Path,
) -> None:
  write(tmp_path, 'table_a1', lambda config: 0.8, preset='paper')
  write(tmp_path, 'fig2d', lambda config: 0.2)
  _, table = table_a1.draw(results.library(tmp_path))
  closest = table.dropna(subset='closest')
  assert set(closest['preset']) == {'paper'}
  assert set(closest['num_sizes']) == {25}


def test_without_a_run_to_compare_table_a1_is_not_run(
    tmp_path: pathlib.Path,
) -> None:
  """And students of an alignment near one do not hide the others."""

  def alignment(config: Any) -> float:
    return 0.99 if config['model']['hidden_dim'] == 32 else 0.5

  write(tmp_path, 'table_a1', alignment)
  entry = verdicts_of(tmp_path)['A1']
  assert (entry['verdict'], len(entry['comparisons'])) == ('SUPPORTED', 1)
  for path in tmp_path.glob('table_a1/laptop/adam-*-0.01*'):
    shutil.rmtree(path)
  assert verdicts_of(tmp_path)['A1-adam']['verdict'] == 'NOT RUN'


def _theorem_loss(of_connected: float) -> Callable[[Any, str, int], float]:
  """Half of the starts reach zero; disconnected ones fail on OOD tasks."""

  def loss(config: Any, split: str, seed: int) -> float:
    if seed % 2:
      return 1e-2
    if split == 'test':
      return 1e-8
    connected = theory_cells.is_connected(config['task']['task_support'])
    return of_connected if connected else 0.2

  return loss


@pytest.mark.parametrize(
    'ood_loss, verdict', [(1e-6, 'SUPPORTED'), (0.1, 'CONTRADICTED')]
)
def test_claim_of_theorem_1(
    tmp_path: pathlib.Path, ood_loss: float, verdict: str
) -> None:
  write(tmp_path, 'theorem', lambda c: 0.999, _theorem_loss(ood_loss))
  entry = verdicts_of(tmp_path)['TH-1']
  assert entry['verdict'] == verdict
  # Without error in training, of 12 and of 32.
  assert {c['num_seeds'] for c in entry['comparisons']} == {6, 16}


@pytest.mark.parametrize(
    'of_disconnected, verdict', [(0.2, 'SUPPORTED'), (1e-6, 'UNDECIDED')]
)
def test_claim_that_disconnected_students_need_not_fit(
    tmp_path: pathlib.Path, of_disconnected: float, verdict: str
) -> None:
  def loss(config: Any, split: str, seed: int) -> float:
    if split == 'test':
      return 1e-8
    if theory_cells.is_connected(config['task']['task_support']) or seed % 2:
      return 1e-7
    return of_disconnected

  write(tmp_path, 'theorem', lambda c: 0.999, loss)
  entry = verdicts_of(tmp_path)['TH-1-d']
  assert entry['verdict'] == verdict
  assert entry['effect'] == (0.5 if verdict == 'SUPPORTED' else 0.0)


def test_theorem_1_needs_students_without_error(tmp_path: pathlib.Path) -> None:
  write(tmp_path, 'theorem', lambda c: 0.9, lambda *_: 1e-2)
  assert verdicts_of(tmp_path)['TH-1']['verdict'] == 'UNDECIDED'


def test_counterexamples_pass_and_are_what_the_code_measures(
    tmp_path: pathlib.Path,
) -> None:
  assert verdicts_of(tmp_path)['TH-2']['verdict'] == 'SUPPORTED'
  stored = counterexamples.MEASURED.load()
  stored = stored[stored['seed'] == counterexamples.SEEDS[0]]
  again = counterexamples.measure('disconnected_tasks', 0)[0]
  row = stored[stored['counterexample'] == 'disconnected_tasks'].iloc[0]
  assert again['best_ood_error'] == pytest.approx(row['best_ood_error'], 1e-2)


def test_bridges_count_pairs_and_families() -> None:
  found = {
      name: (bridges.num_bridges(name), bridges.num_pairs(name))
      for name in (
          'triangles',
          'triangles_3_bridges',
          'singles_triangles_9_bridges',
          'triangles_bridge_of_2_pairs',
          'singles_triangles_bridge_of_9_pairs',
      )
  }
  assert list(found.values()) == [(0, 0), (3, 3), (9, 9), (1, 2), (1, 9)]


@pytest.mark.parametrize('number', [1, 2, 4])
def test_best_of_some_starts_by_enumeration(number: int) -> None:
  values = np.array([0.9, 0.2, 0.5, 0.7])  # The best first.
  chosen = [
      values[min(indices)]
      for indices in itertools.combinations(range(4), number)
  ]
  assert students.best_of(values, number) == pytest.approx(np.mean(chosen))


def test_published_grids() -> None:
  """Sections 3.5 and 11 of the experiments, counted by hand."""
  runs = {
      name: reference.described_runs(name, 'paper')
      for name in ('fig2c', 'fig2d', 'table_a1')
  }
  sizes = (2, 4, 8, 16, 32)
  found = {
      (
          run.config['task']['latent_type'],
          run.config['model']['hidden_dim'] // 16,
          run.config['model']['modules_per_teacher_module'],
      )
      for run in runs['fig2d']
  }
  kinds = ('discrete', 'continuous')
  assert found == set(itertools.product(kinds, sizes, sizes))
  assert len(runs['fig2d']) == 50 and len(runs['fig2c']) == 7
  outers = [run.config['model']['outer'] for run in runs['table_a1']]
  assert {outer['weight_decay'] for outer in outers} == {0.0, 1e-5, 1e-4, 1e-3}
  for run in (*runs['fig2c'], *runs['fig2d'], *runs['table_a1']):
    inner, outer = run.config['model']['inner'], run.config['model']['outer']
    assert (inner['solver'], inner['num_steps']) == ('adamw', 300)
    assert (inner['learning_rate'], outer['learning_rate']) == (0.003, 0.001)
    assert run.config['training']['num_outer_steps'] == 60_000
    assert run.config['training']['meta_batch_size'] == 64
    assert run.config['task']['num_support'] == 256
