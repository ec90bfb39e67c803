"""From finished runs on disk to figures, tables and verdicts.

Runs are made up, with the configs of `configs/fig3b.py` and known accuracies.
"""

import json
import math
import os
import pathlib
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # The folders beside the package.

# pylint: disable=g-import-not-at-top,wrong-import-position
from configs import fig3b as fig3b_config
from figures import claims
from figures import data
from figures import fig3b
from figures import reference
from figures import stats
from figures import storage
from figures import style
from figures import tables
from modular_hyperteacher import errors
from modular_hyperteacher import results
from modular_hyperteacher import sweeps

SEEDS = (2020, 2021, 2022)
SPREAD = (-0.01, 0.0, 0.01)
# What the paper claims, with room to spare: (model, support) -> OOD accuracy.
AS_CLAIMED = {
    ('anil', 'random'): 0.60,
    ('maml', 'random'): 0.61,
    ('linear_hypernetwork', 'random'): 0.87,
    ('nonlinear_hypernetwork', 'random'): 0.96,
    ('anil', 'non_compositional'): 0.56,
    ('maml', 'non_compositional'): 0.58,
    ('linear_hypernetwork', 'non_compositional'): 0.40,
    ('nonlinear_hypernetwork', 'non_compositional'): 0.45,
}


def write_runs(
    root,
    accuracies,
    preset='laptop',
    seeds=SEEDS,
    spread=SPREAD,
    drop=0.3,
    override=None,
):
  """Writes a finished run per entry; accuracy on ood_k8 is lower by `drop`."""
  config = fig3b_config.get_config(preset)
  config.training.seeds = seeds
  for path, value in (override or {}).items():
    config.update_from_flattened_dict({path: value})
  for run in sweeps.expand(config):
    cell = run.config['model']['name'], run.config['task']['task_support']
    if cell in accuracies:
      deviations = spread[: len(seeds)]
      if cell[0] in style.MONOLITHIC:  # So that differences vary over seeds.
        deviations = deviations[::-1]
      _write_run(root, run, accuracies[cell], deviations, drop)
  return root


def _write_run(root, run, accuracy, spread, drop):
  folder = results.RunFolder(root / run.experiment / run.preset / run.run_id)
  folder.open(run.config)
  means = {'test': accuracy + 0.01, 'ood': accuracy, 'ood_k1': accuracy}
  means['ood_k8'] = accuracy - drop
  loss = [1.0] * len(spread)
  last = {
      split: {'accuracy': [mean + s for s in spread], 'loss': loss}
      for split, mean in means.items()
  }
  last['ood_k2'] = {'accuracy': [math.nan] * len(spread)}  # An empty split.
  folder.write_metrics(
      (step, seed, split, metric, 0.5)
      for step in (0, 500)
      for seed in run.config['training']['seeds']
      for split in ('train', 'valid', 'test', 'ood')
      for metric in ('loss', 'accuracy', 'support_loss_after')
  )
  folder.write('provenance.json', {'sessions': [{'commit': 'abc'}]})
  folder.write('summary.json', {
      'run_id': run.run_id,
      'seeds': run.config['training']['seeds'],
      'last': last,
      'best_validation': last,
  })


def judge(root, claim_id):
  entries = claims.evaluate(data.load(root, root / 'nothing'))
  return {entry['id']: entry for entry in entries}[claim_id]


def texts(figure):
  return ' '.join(a.text for a in figure.layout.annotations)


# Statistics.


def test_estimates_are_those_of_numpy():
  higher = pd.Series([0.5, 0.7, 0.9, 0.6], index=range(4))
  lower = pd.Series([0.4, 0.45, 0.2], index=range(3))
  error = np.std(higher, ddof=1) / np.sqrt(4)
  assert stats.mean(higher) == pytest.approx((np.mean(higher), error, 4))
  differences = np.array([0.1, 0.25, 0.7])
  assert stats.paired_difference(higher, lower) == pytest.approx(
      (differences.mean(), np.std(differences, ddof=1) / np.sqrt(3), 3)
  )


def test_one_seed_has_no_standard_error():
  assert math.isnan(stats.mean(pd.Series([0.5])).standard_error)
  assert math.isnan(stats.mean(pd.Series(dtype=float)).value)


# Claims.


@pytest.mark.parametrize('claim_id', ['3B-1', '3B-2', 'TXT-1'])
def test_claims_pass_on_what_the_paper_says(tmp_path, claim_id):
  entry = judge(write_runs(tmp_path, AS_CLAIMED), claim_id)
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
    tmp_path, claim_id, effect, standard_error
):
  entry = judge(write_runs(tmp_path, AS_CLAIMED), claim_id)
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
    tmp_path, claim_id, cell, accuracy
):
  entry = judge(write_runs(tmp_path, AS_CLAIMED | {cell: accuracy}), claim_id)
  assert entry['verdict'] == 'FAIL'
  assert ' of 4 do not hold' in entry['note']


def test_txt1_fails_if_accuracy_does_not_fall(tmp_path):
  root = write_runs(tmp_path, AS_CLAIMED, drop=-0.01)
  assert judge(root, 'TXT-1')['verdict'] == 'FAIL'


@pytest.mark.parametrize('claim_id', ['3B-1', '3B-2', 'TXT-1'])
def test_claims_are_not_run_on_one_seed(tmp_path, claim_id):
  entry = judge(write_runs(tmp_path, AS_CLAIMED, seeds=(2020,)), claim_id)
  assert entry['verdict'] == 'NOT RUN'
  assert entry['note'].startswith(f'one seed: difference {entry["effect"]:.3f}')
  assert entry['standard_error'] is None
  assert entry['num_seeds'] == 1


@pytest.mark.parametrize('claim_id', ['3B-1', '3B-2', 'TXT-1'])
def test_claims_are_not_run_without_data(tmp_path, claim_id):
  entry = judge(tmp_path, claim_id)
  assert entry['verdict'] == 'NOT RUN'
  assert entry['note'] == 'no finished run of fig3b'
  assert (entry['effect'], entry['num_seeds'], entry['preset']) == (
      None, 0, None
  )


@pytest.mark.parametrize(
    'claim_id, support',
    [('3B-1', 'random'), ('3B-2', 'non_compositional'), ('TXT-1', 'random')],
)
def test_claims_name_the_runs_they_miss(tmp_path, claim_id, support):
  accuracies = dict(AS_CLAIMED)
  del accuracies['linear_hypernetwork', support]
  entry = judge(write_runs(tmp_path, accuracies), claim_id)
  assert entry['verdict'] == 'NOT RUN'
  assert f'no results for Linear hypernetwork ({support}, ood)' in entry['note']


def test_txt1_needs_combinations_beyond_training(tmp_path):
  root = write_runs(tmp_path, AS_CLAIMED, override={'task.max_active': 8})
  assert judge(root, 'TXT-1')['verdict'] == 'NOT RUN'


def test_runs_of_different_scale_are_not_compared(tmp_path):
  changed = {('anil', 'random'): 0.6}
  kept = {cell: v for cell, v in AS_CLAIMED.items() if cell not in changed}
  write_runs(tmp_path, kept)
  write_runs(tmp_path, changed, override={'training.num_outer_steps': 500})
  entry = judge(tmp_path, '3B-1')
  assert entry['verdict'] == 'NOT RUN'
  assert 'differ in num_outer_steps' in entry['note']


def test_published_values_are_judged_at_the_published_scale_only(tmp_path):
  accuracies = AS_CLAIMED | {('anil', 'random'): 0.70}
  paper = judge(write_runs(tmp_path / 'a', accuracies, 'paper'), '3B-1')
  assert '3 of 4 published values agree' in paper['note']
  assert 'ANIL (random, ood) is 0.700, published 0.598' in paper['note']
  laptop = judge(write_runs(tmp_path / 'b', accuracies), '3B-1')
  assert 'published' not in laptop['note']
  short = {'training.num_outer_steps': 7}
  changed = write_runs(tmp_path / 'c', accuracies, 'paper', override=short)
  assert 'published' not in judge(changed, '3B-1')['note']


# Reading.


def test_published_values_are_those_of_table_a6():
  assert reference.published_accuracy(
      'fig3b', 'nonlinear_hypernetwork', 'random', 'ood'
  ) == pytest.approx((0.9605, 0.0034))
  assert reference.published_accuracy(
      'fig3b', 'linear_hypernetwork', 'random', 'ood_k8'
  ) == pytest.approx((0.606, 0.0661))
  assert not reference.published_accuracy(
      'fig3b', 'anil', 'non_compositional', 'ood'
  )


@pytest.mark.parametrize(
    'own, bundled, expected',
    [
        (('smoke', 'laptop', 'paper'), ('paper',), ('own', 'paper')),
        (('smoke', 'laptop'), ('paper',), ('own', 'laptop')),
        (('smoke',), ('laptop', 'paper'), ('bundled', 'paper')),
        (('smoke',), (), ('own', 'smoke')),
        ((), ('laptop',), ('bundled', 'laptop')),
    ],
    ids=str,
)
def test_precedence(tmp_path, own, bundled, expected):
  cells = {('anil', 'random'): 0.6}
  for preset in own:
    write_runs(tmp_path / 'own', cells, preset)
  for preset in bundled:
    write_runs(tmp_path / 'bundled', cells, preset)
  frame = data.load(tmp_path / 'own', tmp_path / 'bundled')['fig3b']
  found = frame[['source', 'preset']].drop_duplicates()
  assert found.to_records(index=False).tolist() == [expected]


def test_unfinished_runs_and_empty_splits_have_no_rows(tmp_path):
  write_runs(tmp_path, AS_CLAIMED)
  gone = next(tmp_path.glob('fig3b/laptop/random-anil-*'))
  (gone / 'summary.json').unlink()
  frame = data.load(tmp_path, tmp_path / 'nothing')['fig3b']
  assert gone.name not in set(frame['run_id'])
  assert 'ood_k2' not in set(frame['split'])
  assert frame['value'].notna().all()
  assert tuple(frame.columns) == data.COLUMNS


def test_a_bundle_reads_like_the_runs_it_is_made_of(tmp_path):
  write_runs(tmp_path / 'own', AS_CLAIMED)
  place = pathlib.Path('fig3b', 'laptop')
  storage.write_bundle(tmp_path / 'own' / place, tmp_path / 'small' / place)
  frames = [
      data.load(*roots)['fig3b'].drop(columns='source')
      for roots in (
          (tmp_path / 'own', tmp_path / 'nothing'),
          (tmp_path / 'nothing', tmp_path / 'small'),
      )
  ]
  pd.testing.assert_frame_equal(*frames)
  curves = pd.read_csv(tmp_path / 'small' / place / 'curves.csv')
  assert set(curves['split']) == {'valid', 'test', 'ood'}
  # Runs, steps, seeds, splits, metrics.
  assert len(curves) == 8 * 2 * 3 * 3 * 2


def test_seeds_in_runs_of_their_own_are_pooled(tmp_path):
  write_runs(tmp_path, AS_CLAIMED)
  write_runs(tmp_path, AS_CLAIMED, seeds=(2022, 2023), spread=(0.01, 0.0))
  frame = data.load(tmp_path, tmp_path / 'nothing')['fig3b']
  frame, left_out = data.select_conditions(frame, fig3b.CELL)
  assert not left_out
  seeds = data.values(frame, 'ood', model='anil', task_support='random').index
  assert sorted(seeds) == [2020, 2021, 2022, 2023]


def test_the_longest_of_several_conditions_is_shown_and_the_others_named(
    tmp_path,
):
  write_runs(tmp_path, AS_CLAIMED)
  short = {'training.num_outer_steps': 500}
  write_runs(tmp_path, {('maml', 'random'): 0.2}, override=short)
  figure, table = fig3b.draw(data.load(tmp_path, tmp_path / 'no')['fig3b'])
  assert table['ood_mean'].iloc[1] == pytest.approx(0.61)
  assert 'Not shown: random-maml-' in texts(figure)


def test_a_damaged_run_is_named(tmp_path):
  write_runs(tmp_path, AS_CLAIMED)
  damaged = next(tmp_path.glob('fig3b/laptop/random-anil-*'))
  (damaged / 'summary.json').write_text('{"seeds": [1]}')
  with pytest.raises(errors.UserError, match=damaged.name):
    data.load(tmp_path, tmp_path / 'nothing')


# Figures.


def test_the_table_has_the_numbers(tmp_path):
  root = write_runs(tmp_path, AS_CLAIMED, 'paper')
  _, table = fig3b.draw(data.load(root, root / 'nothing')['fig3b'])
  row = table.set_index(['model', 'task_support']).loc['maml', 'random']
  assert row['ood_mean'] == pytest.approx(0.61)
  assert row['ood_se'] == pytest.approx(0.01 / math.sqrt(3))
  assert row['test_mean'] == pytest.approx(0.62)
  assert row['ood_k8_mean'] == pytest.approx(0.31)
  assert row['num_seeds'] == 3
  # Table A6: 60.60 +- 0.37.
  assert row['difference_in_published_std'] == pytest.approx(0.004 / 0.0037)
  assert '0.610 ± 0.006' in tables.to_markdown(table)


def test_differences_from_published_values_need_the_published_scale(tmp_path):
  root = write_runs(tmp_path, AS_CLAIMED)
  _, table = fig3b.draw(data.load(root, root / 'nothing')['fig3b'])
  assert table['difference_in_published_std'].isna().all()
  assert table['published_ood'].notna().sum() == 4


def test_the_figure_says_its_scale(tmp_path):
  scale = {'training.num_outer_steps': 1234, 'task.max_active': 4}
  root = write_runs(tmp_path, AS_CLAIMED, override=scale)
  figure, _ = fig3b.draw(data.load(root, root / 'nothing')['fig3b'])
  assert (
      'laptop scale, 3 seeds, 1,234 outer steps, M = 8, K = 4 \N{EN DASH} not'
      ' the published scale' in texts(figure)
  )


@pytest.mark.parametrize('missing', [0, 3, 8])
def test_missing_runs_are_named(tmp_path, missing):
  accuracies = dict(list(AS_CLAIMED.items())[missing:])
  write_runs(tmp_path, accuracies)
  frames = data.load(tmp_path, tmp_path / 'nothing')
  figure, table = fig3b.draw(frames.get('fig3b', data.empty()))
  assert texts(figure).count('no finished run') - (missing == 8) == missing
  assert (table['num_seeds'] == 0).sum() == missing
  assert len(table) == 8


def test_empty_ood_sets_are_named(tmp_path):
  spread = (math.nan, 0.0, 0.01)
  write_runs(tmp_path, {('anil', 'random'): 0.6}, spread=spread)
  write_runs(tmp_path, {('maml', 'random'): math.nan})
  figure, table = fig3b.draw(data.load(tmp_path, tmp_path / 'no')['fig3b'])
  assert list(table['num_seeds'].iloc[:2]) == [2, 0]
  assert 'anil / random: 2 of 3 seeds' in texts(figure)
  assert texts(figure).count('no OOD tasks') == 2
  assert texts(figure).count('no finished run') == 6


def test_every_model_has_a_colour_of_its_own():
  assert set(style.COLOURS) == set(style.MODEL_NAMES) == set(style.MODELS)
  assert len(set(style.COLOURS.values())) == len(style.MODELS)


# Commands.


def run_script(name, *arguments, browser='/nonexistent'):
  return subprocess.run(
      [sys.executable, ROOT / 'figures' / f'{name}.py', *arguments],
      capture_output=True,
      text=True,
      check=False,
      cwd=ROOT,
      env=os.environ | ({'BROWSER_PATH': browser} if browser else {}),
  )


def test_make_all_from_end_to_end(tmp_path):
  root = write_runs(tmp_path / 'results', AS_CLAIMED)
  output = tmp_path / 'output'
  output.mkdir()
  (output / 'fig3b.png').write_text('an earlier image')
  run = run_script('make_all', f'--results={root}', f'--output={output}')
  assert run.returncode == 0, run.stderr
  assert run.stdout.count('no static images') == 1
  assert 'own results, preset laptop, 8 runs' in run.stdout
  assert not (output / 'fig3b.png').exists()
  page = (output / 'fig3b.html').read_text()
  assert 'src="http' not in page  # Nothing is fetched: it works offline.
  assert '"showSendToCloud": false' in page
  assert len(pd.read_csv(output / 'fig3b.csv')) == 8
  assert (output / 'fig3b.md').read_text().startswith('| model |')
  entries = json.loads((output / 'claims.json').read_text())
  assert [entry['verdict'] for entry in entries] == ['PASS'] * 3
  assert set(entries[0]) == {
      'id', 'claim', 'verdict', 'effect', 'standard_error', 'num_seeds',
      'preset', 'note',
  }
  assert '| 3B-1 | Figure 3B |' in (output / 'claims.md').read_text()


def test_images_are_made_or_the_way_to_them_is_told(tmp_path):
  run = run_script(
      'make_all', '--format=png', f'--output={tmp_path}', browser=None
  )
  assert run.returncode == 0, run.stderr
  made = (tmp_path / 'fig3b.png').exists()
  assert made != ('no static images' in run.stdout)


def test_bundle_from_end_to_end(tmp_path):
  root = write_runs(tmp_path / 'results', AS_CLAIMED)
  arguments = (f'--results={root}', f'--output={tmp_path / "small"}')
  run = run_script('bundle', *arguments, '--experiment=fig3b')
  assert run.returncode == 0, run.stderr
  assert (tmp_path / 'small/fig3b/laptop/results.csv').exists()
  run = run_script('bundle', *arguments, '--experiment=fig9')
  assert run.returncode == 2
  assert run.stderr.startswith('error: --results: there is no finished run in')


@pytest.mark.parametrize(
    'argument, message',
    [
        ('--only=fig9', "--only has 'fig9'; choose from fig3b."),
        ('--format=gif', "--format has 'gif'; choose from html, svg, png,"),
        ('--results=/nowhere', "--results is '/nowhere'; it must be a folder"),
        ('--onyl=fig3b', "Unknown command line flag 'onyl'"),
        ('fig3b', "unknown argument 'fig3b'; see --help."),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(tmp_path, argument, message):
  run = run_script('make_all', argument, f'--output={tmp_path / "output"}')
  assert run.returncode == 2
  assert run.stderr.startswith(f'error: {message}')
  assert run.stderr.count('\n') == 1
  assert not (tmp_path / 'output').exists()
