"""Figures and claims of networks that are given the task, from made-up runs."""

import pathlib
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.studies.given_tasks import figures
from tests.helpers import made_up
from tests.helpers import results

_SCALING = tuple(
    name
    for name, figure in figures.FIGURES.items()
    if figure.experiments == ('scaling',)
)
_IDS = [f'SG-{number}' for number in range(1, 12)]
_NUM_RUNS = {'scaling': 50, 'given_or_inferred': 10}
# As the claims say, by what changes R2.
_AS_CLAIMED = {
    'non_compositional': -0.5,
    'disconnected': -0.3,
    'unpopular': -0.2,
    'popular': 0.0,
    'width': 0.1,
    'depth': 0.05,
    'gap': 0.01,
    # R2 per log of the share of combinations in training.
    'share': 0.1,
    # Change of R2 per log of the number of all combinations.
    'total': 0.02,
    'decoding': 1.0,
    'transformer': 0.05,
    'multitask_mlp': 0.85,
    'anil': 0.6,
    'maml': 0.65,
    'hypernetwork': 0.86,
}


def _write(root: pathlib.Path, changes: Any = ()) -> data.Library:
  values = _AS_CLAIMED | dict(changes)

  def given(fields: dict[str, Any], split: str, metric: str) -> float:
    name = fields['model.name']
    is_modular = name.endswith('hypernetwork')
    return values['hypernetwork' if is_modular else name]

  def ood_r2(fields: dict[str, Any]) -> float:
    cell = {column: fields.get(column) for column in figures.CELL}
    share = 1 - fields['task.fraction_ood']
    r2 = 0.95 + values['share'] * np.log(share)
    r2 += values['total'] * np.log(figures.count_masks(cell) / 92)
    r2 += values.get(fields['task.task_support'], 0.0)
    if fields['model.name'] == 'multitask_transformer':
      return r2 + values['transformer']
    r2 += values['width'] * (np.log2(fields['model.hidden_dim']) - 7) / 7
    return r2 + values['depth'] * (fields['model.num_hidden'] - 3)

  def scaling(fields: dict[str, Any], split: str, metric: str) -> float | None:
    if split not in ('test', 'ood'):
      return None
    r2 = ood_r2(fields) + values['gap'] * (split == 'test')
    if metric == 'variance':
      return 2.0
    if metric == 'loss':
      return 2 * (1 - r2)
    if fields['task.task_support'] == 'non_compositional':
      return -50.0 if metric.startswith('decoding') else r2  # Not shown.
    if metric == 'decoding_r2_last':
      return 0.6 + values['decoding'] * (r2 - 0.9)
    return 0.999 if metric == 'decoding_r2_code' else r2

  more = ('unit_r2', 'decoding_r2', 'decoding_r2_last', 'decoding_r2_code')
  layers = [f'decoding_r2_layer_{i}' for i in range(5)]
  made_up.write_by_rule(
      root, 'scaling', scaling, more_metrics=('variance', *more, *layers)
  )
  made_up.write_by_rule(root, 'given_or_inferred', given)
  return results.library(root)


@pytest.fixture(scope='module', name='as_claimed')
def fixture_as_claimed(
    tmp_path_factory: pytest.TempPathFactory,
) -> data.Library:
  """Runs in which all claims hold."""
  return _write(tmp_path_factory.mktemp('as_claimed'))


def _evaluate(claim_id: str, library: data.Library) -> verdicts.Entry:
  return results.judge(claim_id, library)


@pytest.mark.parametrize(
    'claim_id, changes, verdict',
    [
        *((claim_id, {}, 'SUPPORTED') for claim_id in _IDS),
        ('SG-1', {'share': -0.1}, 'CONTRADICTED'),
        # With more modules, a larger share of the combinations is needed.
        ('SG-2', {'total': -0.03}, 'CONTRADICTED'),
        # With twelve modules, no share is enough.
        ('SG-2', {'total': -0.3}, 'UNDECIDED'),
        ('SG-3', {'depth': -0.05}, 'CONTRADICTED'),
        ('SG-3', {'width': -0.1}, 'CONTRADICTED'),
        ('SG-4', {'gap': 0.1}, 'CONTRADICTED'),
        ('SG-5', {'non_compositional': 0.1}, 'CONTRADICTED'),
        ('SG-6', {'disconnected': 0.1}, 'CONTRADICTED'),
        ('SG-7', {'unpopular': 0.1}, 'CONTRADICTED'),
        ('SG-7', {'popular': -0.1}, 'CONTRADICTED'),
        ('SG-7', {'popular': -0.02}, 'SUPPORTED'),
        ('SG-8', {'decoding': -1.0}, 'CONTRADICTED'),
        ('SG-9', {'decoding': -1.0}, 'CONTRADICTED'),
        ('SG-10', {'transformer': -0.05}, 'CONTRADICTED'),
        # Only the MLP reaches the level.
        ('SG-10', {'transformer': -0.3}, 'CONTRADICTED'),
        # Neither does with twelve modules.
        ('SG-10', {'total': -0.3}, 'UNDECIDED'),
        ('SG-11', {'maml': 0.9}, 'CONTRADICTED'),
        ('SG-11', {'multitask_mlp': 0.8}, 'CONTRADICTED'),
    ],
)
def test_claims(
    tmp_path: pathlib.Path,
    as_claimed: data.Library,
    claim_id: str,
    changes: Any,
    verdict: str,
) -> None:
  library = _write(tmp_path, changes) if changes else as_claimed
  entry = _evaluate(claim_id, library)
  assert entry['verdict'] == verdict, entry['note']
  if entry['comparisons']:
    assert entry['num_seeds'] == (3 if claim_id == 'SG-11' else 5)
  starts = 'Analogue at a small scale', "Ours, not the paper's: "
  assert entry['sentence'].startswith(starts)


@pytest.mark.parametrize('claim_id', _IDS)
def test_without_runs_nothing_is_claimed(
    tmp_path: pathlib.Path, claim_id: str
) -> None:
  library = results.library(tmp_path)
  assert _evaluate(claim_id, library)['verdict'] == 'NOT RUN'


def test_needed_combinations_are_interpolated_by_their_log(
    as_claimed: data.Library,
) -> None:
  """R2 grows by 0.1 with the log, so 0.05 more of it saves 0.5."""
  comparison = _evaluate('SG-10', as_claimed)['comparisons'][-1]
  assert comparison['effect'] == pytest.approx(0.5, abs=1e-3)


def test_r2_is_of_all_tasks_together() -> None:
  point = {'run_id': 'a', 'kind': 'last', 'split': 'ood'}
  frame = pd.DataFrame([
      {**point, 'seed': seed, 'metric': metric, 'value': value}
      for seed, loss in ((0, 0.5), (1, 0.2))
      for metric, value in (('loss', loss), ('variance', 2.0))
  ])
  added = figures.with_r2(frame)
  rows = added[added['metric'] == figures.R2].set_index('seed')['value']
  assert rows.to_dict() == {0: 0.75, 1: 0.9}
  assert len(added) == 6


def test_training_combinations_are_counted() -> None:
  cell = {'task.num_modules': 16, 'task.max_active': 3}
  assert figures.count_masks(cell) == 696
  assert figures.count_training(cell | {'task.fraction_ood': 0.25}) == 522


@pytest.mark.parametrize('name', [*_SCALING, 'sg_given_or_inferred'])
def test_figures_show_all_runs(as_claimed: data.Library, name: str) -> None:
  figure, table = registry.figures()[name].draw(as_claimed)
  texts = made_up.texts(figure)
  assert 'no run' not in texts and 'no finished run' not in texts
  assert 'laptop scale' in texts
  scaling = name in _SCALING
  assert len(table) == _NUM_RUNS['scaling' if scaling else 'given_or_inferred']
  measure = 'ood_r2_mean' if scaling else 'ood_mean'
  assert table[measure].notna().all()


def test_bars_are_means(as_claimed: data.Library) -> None:
  figure, _ = figures.FIGURES['sg_support'].draw(as_claimed)
  bars = [trace.y[0] for trace in made_up.traces(figure) if trace.type == 'bar']
  quarter, most = 0.95 + 0.1 * np.log(0.75), 0.95 + 0.1 * np.log(0.3)
  falls = [0, 0, -0.5, 0, -0.2]
  expected = [quarter + fall for fall in falls] + [most, most - 0.3]
  assert bars == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize('name', [*_SCALING, 'sg_given_or_inferred'])
def test_without_runs_they_say_so(tmp_path: pathlib.Path, name: str) -> None:
  figure, _ = registry.figures()[name].draw(results.library(tmp_path))
  assert re.search('no (finished )?run', made_up.texts(figure))
