"""Which finished runs a figure is given, and what is known of them."""

from collections.abc import Callable
import errno
import gzip
import hashlib
import json
import math
import pathlib
import shutil
from typing import Any

import pandas as pd
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher.configs import fig3b as fig3b_config
from modular_hyperteacher.configs import fig3e as fig3e_config
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.library import bundles
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import facts
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.paper import fig3b
from modular_hyperteacher.figures.paper import fig3e
from modular_hyperteacher.runs import run_folder
from modular_hyperteacher.runs import runner
from tests.helpers import made_up
from tests.helpers import results


def test_published_values_are_those_of_table_a6() -> None:
  def accuracy(model: str, support: str, split: str) -> Any:
    cell = {'model.name': model, 'task.task_support': support}
    return reference.published_accuracy('fig3b', cell, split)

  assert accuracy('nonlinear_hypernetwork', 'random', 'ood') == pytest.approx(
      (0.9605, 0.0034)
  )
  assert accuracy('linear_hypernetwork', 'random', 'ood_k8') == pytest.approx(
      (0.606, 0.0661)
  )
  assert not accuracy('anil', 'non_compositional', 'ood')


@pytest.mark.parametrize(
    'own, bundled, expected',
    [
        (('smoke', 'laptop', 'paper'), ('paper',), ('own', 'paper')),
        (('smoke', 'laptop'), ('paper',), ('own', 'laptop')),
        (('smoke',), ('laptop', 'paper'), ('bundled', 'paper')),
        (('smoke',), (), ('own', 'smoke')),
        (('laptop', 'desktop'), ('paper',), ('own', 'desktop')),
        ((), ('laptop', 'desktop'), ('bundled', 'desktop')),
        ((), ('laptop',), ('bundled', 'laptop')),
    ],
    ids=str,
)
def test_precedence(
    tmp_path: pathlib.Path,
    own: tuple[str, ...],
    bundled: tuple[str, ...],
    expected: tuple[str, str],
) -> None:
  cells = {('anil', 'random'): 0.6}
  for preset in own:
    made_up.write_runs(tmp_path / 'own', cells, preset)
  for preset in bundled:
    made_up.write_runs(tmp_path / 'bundled', cells, preset)
  library = data.Library(tmp_path / 'own', tmp_path / 'bundled')
  frame = library.values('fig3b')
  found = frame[['source', 'preset']].drop_duplicates()
  assert found.to_records(index=False).tolist() == [expected]
  named = data.Library(str(tmp_path / 'own'), str(tmp_path / 'bundled'))
  assert named.values('fig3b').equals(frame)


def test_unfinished_runs_and_empty_splits_have_no_rows(
    tmp_path: pathlib.Path,
) -> None:
  made_up.write_runs(tmp_path, made_up.AS_CLAIMED)
  gone = next(tmp_path.glob('fig3b/laptop/random-anil-*'))
  (gone / 'summary.json').unlink()
  frame = results.library(tmp_path).values('fig3b')
  assert gone.name not in set(frame['run_id'])
  assert 'ood_k2' not in set(frame['split'])
  assert frame['value'].notna().all()
  assert {*facts.COLUMNS, *bundles.VALUE_COLUMNS} <= set(frame.columns)
  assert {'task.fraction_ood', 'model.outer.clip_norm'} <= set(frame.columns)


def test_a_bundle_reads_like_the_runs_it_is_made_of(
    tmp_path: pathlib.Path,
) -> None:
  made_up.write_runs(tmp_path / 'own', made_up.AS_CLAIMED)
  subfolder = pathlib.Path('fig3b', 'laptop')
  bundles.write_bundle(
      tmp_path / 'own' / subfolder, tmp_path / 'small' / subfolder
  )
  frames = [
      data.Library(*roots).values('fig3b').drop(columns='source')
      for roots in (
          (tmp_path / 'own', tmp_path / 'nothing'),
          (tmp_path / 'nothing', tmp_path / 'small'),
      )
  ]
  pd.testing.assert_frame_equal(frames[0], frames[1], check_categorical=False)
  curves = pd.read_csv(tmp_path / 'small' / subfolder / 'curves.csv.gz')
  assert set(curves['split']) == {'valid', 'test', 'ood'}
  # Runs, steps, seeds, splits, metrics.
  assert len(curves) == 8 * 2 * 3 * 3 * 2


def test_seeds_in_runs_of_their_own_are_pooled(tmp_path: pathlib.Path) -> None:
  made_up.write_runs(tmp_path, made_up.AS_CLAIMED)
  options = {'seeds': (2022, 2023), 'spread': (0.01, 0.0)}
  made_up.write_runs(tmp_path, made_up.AS_CLAIMED, **options)
  frame = results.library(tmp_path).values('fig3b')
  frame, left_out = pick.select_conditions(frame, fig3b.CELL)
  assert not left_out
  cell = {'model.name': 'anil', 'task.task_support': 'random'}
  seeds = pick.values(frame, cell, 'ood').index
  assert sorted(seeds) == [2020, 2021, 2022, 2023]


def test_the_longest_of_several_conditions_is_shown_and_the_others_named(
    tmp_path: pathlib.Path,
) -> None:
  made_up.write_runs(tmp_path, made_up.AS_CLAIMED)
  short = {'training.num_outer_steps': 500}
  made_up.write_runs(tmp_path, {('maml', 'random'): 0.2}, override=short)
  figure, table = fig3b.draw(results.library(tmp_path))
  maml = pick.rows(table, {'model': 'maml', 'task support': 'random'})
  assert maml['ood_mean'].iloc[0] == pytest.approx(0.61)
  assert 'Not shown: random-maml-' in made_up.texts(figure)


@pytest.mark.parametrize('rate', [1e-4, 2e-4, 4e-4, 5e-4])
def test_of_equally_long_conditions_that_of_the_config_is_shown(
    tmp_path: pathlib.Path, rate: float
) -> None:
  """Whatever their hashes; else a figure could mix hyperparameters."""
  made_up.write_runs(tmp_path, made_up.AS_CLAIMED)
  changed = {'models.maml.outer.learning_rate': rate}
  made_up.write_runs(tmp_path, {('maml', 'random'): 0.2}, override=changed)
  _, table = fig3b.draw(results.library(tmp_path))
  maml = pick.rows(table, {'model': 'maml', 'task support': 'random'})
  assert maml['ood_mean'].iloc[0] == pytest.approx(0.61)


@pytest.mark.parametrize(
    'name, old, new',
    [
        ('summary.json', '{', '{"x": 1, '),
        ('summary.json', '"last"', '"lost"'),
        ('summary.json', '1.0', 'NaN'),
        ('config.json', '"input_dim": 8', '"input_dim": 9'),
        ('provenance.json', '60.0', '"60"'),
        ('summary.json', '2021', '2031'),
        ('summary.json', '"ood"', '"\\ud800"'),
    ],
)
def test_a_damaged_run_is_named_and_the_others_are_read(
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    old: str,
    new: str,
) -> None:
  made_up.write_runs(tmp_path, made_up.AS_CLAIMED)
  damaged = next(tmp_path.glob('fig3b/laptop/random-anil-*'))
  text = (damaged / name).read_text()
  assert old in text
  (damaged / name).write_text(text.replace(old, new, 1))
  frame = results.library(tmp_path).values('fig3b')
  assert frame['run_id'].nunique() == 7
  (said,) = capsys.readouterr().err.splitlines()
  assert damaged.name in said and 'It is left out' in said


@pytest.mark.parametrize('half', [True, False])
def test_a_bundle_that_was_cut_is_named(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], half: bool
) -> None:
  made_up.write_runs(tmp_path / 'own', made_up.AS_CLAIMED)
  folder = tmp_path / 'bundles' / 'fig3b' / 'laptop'
  bundles.write_bundle(tmp_path / 'own' / 'fig3b' / 'laptop', folder)
  path = folder / 'results.csv.gz'
  lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
  kept = lines[: len(lines) // 2] if half else [*lines[:-1], lines[-1][:-2]]
  path.write_bytes(gzip.compress(b''.join(kept)))
  assert not bundles.read(folder).runs
  assert 'results.csv.gz was changed' in capsys.readouterr().err
  with pytest.raises(errors.UserError, match='was changed'):
    bundles.write_bundle(tmp_path / 'own' / 'fig3b' / 'laptop', folder)


def _edit_provenance(folder: pathlib.Path) -> None:
  path = folder / 'provenance.json'
  record = json.loads(path.read_text())
  record['runs'].popitem()
  path.write_text(json.dumps(record))


def _repeat_a_row(folder: pathlib.Path) -> None:
  path = folder / 'results.csv.gz'
  *_, last = lines = gzip.decompress(path.read_bytes()).splitlines(True)
  path.write_bytes(content := gzip.compress(b''.join([*lines, last])))
  record = json.loads((folder / 'provenance.json').read_text())
  record['sha256'][path.name] = hashlib.sha256(content).hexdigest()
  (folder / 'provenance.json').write_text(json.dumps(record))


@pytest.mark.parametrize(
    'damage, said',
    [
        (_edit_provenance, 'of an unknown run'),
        (_repeat_a_row, 'two rows for one value'),
    ],
)
def test_rows_of_a_bundle_that_does_not_hold_together_are_not_lost(
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[pathlib.Path], None],
    said: str,
) -> None:
  made_up.write_runs(tmp_path / 'own', made_up.AS_CLAIMED)
  folder = tmp_path / 'bundles' / 'fig3b' / 'laptop'
  bundles.write_bundle(tmp_path / 'own' / 'fig3b' / 'laptop', folder)
  damage(folder)
  before = (folder / 'results.csv.gz').read_bytes()
  with pytest.raises(errors.UserError, match=said):
    bundles.write_bundle(tmp_path / 'nothing', folder)
  assert (folder / 'results.csv.gz').read_bytes() == before
  assert not bundles.read(folder).runs
  assert said in capsys.readouterr().err


def test_runs_that_are_links_are_drawn_and_copies_in_folders_are_not(
    tmp_path: pathlib.Path,
) -> None:
  made_up.write_runs(tmp_path / 'own', made_up.AS_CLAIMED)
  folder = tmp_path / 'own' / 'fig3b' / 'laptop'
  moved, copied, *_ = sorted(folder.iterdir())
  moved.rename(tmp_path / 'elsewhere')
  moved.symlink_to(tmp_path / 'elsewhere')
  shutil.copytree(copied, folder / 'backup' / copied.name)
  frame = data.Library(tmp_path / 'own', tmp_path / 'nothing').values('fig3b')
  assert frame['run_id'].nunique() == 8
  assert len(bundles.read(folder).values) == len(frame)


def test_a_folder_with_a_dot_in_its_name_is_read_like_others(
    tmp_path: pathlib.Path,
) -> None:
  made_up.write_runs(tmp_path / 'own', made_up.AS_CLAIMED)
  (tmp_path / 'own' / 'fig3b').rename(tmp_path / 'own' / 'blocks.models')
  library = data.Library(tmp_path / 'own', tmp_path / 'nothing')
  assert library.values('fig3b')['run_id'].nunique() == 8


def test_damaged_curves_are_not_replaced(tmp_path: pathlib.Path) -> None:
  made_up.write_runs(tmp_path / 'own', made_up.AS_CLAIMED)
  folder = tmp_path / 'bundles' / 'fig3b' / 'laptop'
  bundles.write_bundle(tmp_path / 'own' / 'fig3b' / 'laptop', folder)
  path = folder / 'curves.csv.gz'
  path.write_bytes(damaged := path.read_bytes()[:-9])
  with pytest.raises(errors.UserError, match='curves.csv.gz was changed'):
    bundles.write_bundle(tmp_path / 'none', folder)
  assert path.read_bytes() == damaged


def test_a_full_disk_leaves_a_bundle_as_it_was(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  first, second = {('anil', 'random'): 0.2}, {('maml', 'random'): 0.3}
  made_up.write_runs(tmp_path / 'first', first)
  made_up.write_runs(tmp_path / 'second', second)
  folder = tmp_path / 'bundles' / 'fig3b' / 'laptop'
  bundles.write_bundle(tmp_path / 'first' / 'fig3b' / 'laptop', folder)
  before = {path.name: path.read_bytes() for path in folder.iterdir()}
  for written in range(len(before)):
    left = [None] * written

    def sync(_: int, left: list[None] = left) -> None:
      if not left:
        raise OSError(errno.ENOSPC, 'No space left on device')
      left.pop()

    with monkeypatch.context() as patch:
      patch.setattr(files.os, 'fsync', sync)
      with pytest.raises(errors.StorageError, match='No space left'):
        bundles.write_bundle(tmp_path / 'second' / 'fig3b' / 'laptop', folder)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}
  source = tmp_path / 'second' / 'fig3b' / 'laptop'
  assert len(bundles.write_bundle(source, folder).runs) == 2


def test_a_run_without_its_metrics_is_not_bundled(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
  made_up.write_runs(
      tmp_path, {('anil', 'random'): 0.2, ('maml', 'random'): 0.3}
  )
  (path,) = tmp_path.glob('fig3b/laptop/*maml*/metrics.csv')
  path.unlink()
  folder = tmp_path / 'bundles' / 'fig3b' / 'laptop'
  bundle = bundles.write_bundle(tmp_path / 'fig3b' / 'laptop', folder)
  assert 'metrics.csv is missing. It is left out.' in capsys.readouterr().err
  assert ['anil' in run_id for run_id in bundle.runs] == [True]
  assert set(bundles.read_curves(folder)['run_id']) == set(bundle.runs)


def test_own_runs_of_another_experiment_hide_no_bundled_ones(
    tmp_path: pathlib.Path,
) -> None:
  """Amortised inference shares four of Figure 3B's runs."""
  made_up.write_runs(tmp_path / 'own', made_up.AS_CLAIMED)
  made_up.write_by_rule(tmp_path / 'bundled', 'amortised', lambda *_: 0.5)
  library = data.Library(tmp_path / 'own', tmp_path / 'bundled')
  for preset in ('laptop', None):
    frame = library.values('amortised', preset)
    assert set(frame['source']) == {'bundled'}
    assert frame['run_id'].nunique() == 12


def test_seeds_that_two_folders_share_count_once(
    tmp_path: pathlib.Path,
) -> None:
  """Those of the experiment's own folder."""
  made_up.write_runs(
      tmp_path, made_up.AS_CLAIMED, seeds=(2022, 9), spread=(0.0, 0.0)
  )
  made_up.write_by_rule(tmp_path, 'amortised', lambda *_: 0.5)
  frame = results.library(tmp_path).values('fig3b')
  point = ['condition', 'seed', 'split', 'metric', 'kind']
  assert not frame.duplicated(point).any()
  cell = {'model.name': 'linear_hypernetwork', 'task.task_support': 'random'}
  found = pick.values(frame, cell, 'ood').to_dict()
  assert found.pop(2022) == found.pop(9) == pytest.approx(0.87)
  assert len(found) == 2 and max(found.values()) < 0.6


def test_all_values_of_a_seed_are_of_one_run(tmp_path: pathlib.Path) -> None:
  config = fig3b_config.get_config()
  for seeds, metric in (((2020, 2021), 'accuracy'), ((2021, 2022), 'r2')):
    config.training.seeds = seeds
    summary = {'ood': {metric: [0.5, 0.5]}, 'valid': {'loss': [1.0, 1.0]}}
    made_up.write_experiment(tmp_path, config, lambda run, s=summary: s)
  frame = results.library(tmp_path).values('fig3b')
  runs = frame.groupby(['condition', 'seed'], observed=True)['run_id']
  assert len(runs) == 8 * 3 and set(runs.nunique()) == {1}


def test_runs_with_fields_of_odd_types_are_not_drawn(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
  made_up.write_by_rule(
      tmp_path / 'sound', 'fig3b', lambda *_: 0.5, name='anil'
  )
  made_up.write_changed(
      tmp_path / 'odd', lambda config: config['model'].update(hidden_dim='x')
  )
  library = data.Library(tmp_path / 'odd', tmp_path / 'sound')
  told = capsys.readouterr().err
  assert 'model.hidden_dim has another type than in configs/fig3b.py' in told
  assert set(library.values('fig3b')['source']) == {'bundled'}
  fig3b.draw(library)


def test_a_model_without_a_width_is_drawn(tmp_path: pathlib.Path) -> None:
  made_up.write_changed(
      tmp_path, lambda config: config['model'].pop('hidden_dim')
  )
  _, table = fig3b.draw(results.library(tmp_path))
  assert (table['ood_mean'] == 0.5).any()


def test_folders_that_cannot_be_read_are_left_out(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
  made_up.write_runs(tmp_path, made_up.AS_CLAIMED)
  made_up.write_by_rule(tmp_path, 'fig_a4', lambda *_: 0.5)
  stat = pathlib.Path.stat

  def refuse(path: pathlib.Path, **options: Any) -> Any:
    if 'fig_a4' in path.parts:
      raise PermissionError(errno.EACCES, 'Permission denied')
    return stat(path, **options)

  monkeypatch.setattr(pathlib.Path, 'stat', refuse)
  library = results.library(tmp_path)
  assert 'cannot be read (Permission denied)' in capsys.readouterr().err
  assert len(library.values('fig3b'))


# Columns.


def test_every_field_of_a_config_is_a_column(tmp_path: pathlib.Path) -> None:
  made_up.write_runs(tmp_path, made_up.AS_CLAIMED)
  frame = results.library(tmp_path).values('fig3b')
  anil = pick.rows(frame, {'model.name': 'anil'})
  assert set(anil['task.fraction_ood']) == {0.25}
  assert set(anil['model.inner.num_steps']) == {100}
  assert set(anil['training.seeds']) == {(2020, 2021, 2022)}
  assert set(anil['wall_s']) == {60.0} and set(anil['cpu_s']) == {90.0}
  # A linear hypernetwork has no such field, nor has any model this one.
  linear = {'model.name': 'linear_hypernetwork'}
  assert len(pick.rows(frame, {**linear, 'model.generator_num_hidden': None}))
  assert pick.rows(frame, {**linear, 'model.generator_num_hidden': 4}).empty
  assert pick.rows(frame, {'model.no_such_field': 1}).empty
  assert len(pick.rows(frame, {'model.no_such_field': None})) == len(frame)


def test_values_of_other_metrics(tmp_path: pathlib.Path) -> None:
  made_up.write_runs(tmp_path, made_up.AS_CLAIMED)
  frame = results.library(tmp_path).values('fig3b')
  cell = {'model.name': 'maml', 'task.task_support': 'random'}
  assert pick.values(frame, cell, 'ood', metric='loss').tolist() == [1.0] * 3
  assert pick.values(frame, cell, 'ood', metric='r2').empty


def test_a_bundle_keeps_its_runs_when_others_are_added(
    tmp_path: pathlib.Path,
) -> None:
  subfolder = pathlib.Path('fig3b/laptop')
  first = {('anil', 'random'): 0.2, ('maml', 'random'): 0.3}
  second = {('maml', 'random'): 0.4, ('anil', 'non_compositional'): 0.5}
  for folder, accuracies in (('first', first), ('second', second)):
    made_up.write_runs(tmp_path / folder, accuracies)
    bundle = bundles.write_bundle(
        tmp_path / folder / subfolder, tmp_path / 'small' / subfolder
    )
  assert len(bundle.runs) == 3
  frame = data.Library(tmp_path / 'no', tmp_path / 'small').values('fig3b')
  for cell, expected in {**first, **second}.items():
    found = pick.values(
        frame, dict(zip(('model.name', 'task.task_support'), cell)), 'ood'
    )
    assert found.mean() == pytest.approx(expected, abs=0.02)
  (run_id,) = [r for r in bundle.runs if 'maml' in r]
  left = bundles.write_bundle(
      tmp_path / 'none', tmp_path / 'small' / subfolder, drop={run_id}
  )
  assert set(left.runs) == set(bundle.runs) - {run_id}
  assert set(
      bundles.read_curves(tmp_path / 'small' / subfolder)['run_id']
  ) <= set(left.runs)


def test_bundles_have_six_digits(tmp_path: pathlib.Path) -> None:
  config = fig3b_config.get_config()
  values = {
      'accuracy': [1 / 3, 2 / 3, 1 / 7],
      'loss': [1 / 9, 1e-7 / 3, 1e5 / 3],
  }
  made_up.write_experiment(
      tmp_path,
      config,
      lambda run: {split: values for split in ('valid', 'ood')},
      curve=lambda run, step: (step + 1) / 7,
  )
  source = tmp_path / 'fig3b' / 'laptop'
  for target in (tmp_path / 'a', tmp_path / 'b'):
    bundles.write_bundle(source, target)
  paths = sorted((tmp_path / 'a').glob('*.csv.gz'))
  assert [p.name for p in paths] == ['curves.csv.gz', 'results.csv.gz']
  for path in paths:
    text = gzip.decompress(path.read_bytes()).decode()
    for line in text.splitlines()[1:]:
      value = line.rpartition(',')[2]
      assert value == f'{float(value):.6g}', (path.name, line)
    again = tmp_path / 'b' / path.name
    bundles.write_bundle(tmp_path / 'none', tmp_path / 'b')
    assert again.read_bytes() == path.read_bytes()


def test_curves_of_a_bundle_are_those_of_its_runs(
    tmp_path: pathlib.Path,
) -> None:
  made_up.write_runs(tmp_path / 'own', made_up.AS_CLAIMED)
  subfolder = pathlib.Path('fig3b', 'laptop')
  bundles.write_bundle(
      tmp_path / 'own' / subfolder, tmp_path / 'small' / subfolder
  )
  none = tmp_path / 'nothing'
  own = data.Library(tmp_path / 'own', none).curves('fig3b')
  small = data.Library(none, tmp_path / 'small').curves('fig3b')
  pd.testing.assert_frame_equal(
      own.drop(columns='source'),
      small.drop(columns='source'),
      check_categorical=False,
  )
  assert set(own.loc[own['step'] == 500, 'value']) == {0.5}
  assert data.Library(none, none).curves('fig3b').empty


def test_a_bundle_keeps_how_demonstrations_improve(
    tmp_path: pathlib.Path,
) -> None:
  """Claim A9 is about them."""
  made_up.write_runs(tmp_path / 'own', {('anil', 'random'): 0.2})
  subfolder = pathlib.Path('fig3b', 'laptop')
  (path,) = (tmp_path / 'own' / subfolder).glob('*/metrics.csv')
  folder = run_folder.RunFolder(path.parent)
  frame = folder.read_metrics()
  whole = frame[frame['metric'] == 'accuracy'].assign(metric='accuracy_all')
  both = pd.concat([frame, whole])
  folder.write_metrics(both.itertuples(index=False, name=None))
  bundles.write_bundle(tmp_path / 'own' / subfolder, tmp_path / 'small')
  curves = bundles.read_curves(tmp_path / 'small')
  assert {'accuracy', 'accuracy_all'} <= set(curves['metric'])


# Which runs, from where.


def _measure(accuracy: float) -> Callable[[sweeps.Run], made_up.Summary]:
  values = [accuracy] * 3
  return lambda run: {'ood': {'accuracy': values}}


def test_the_same_config_is_the_same_run_wherever_it_was_trained(
    tmp_path: pathlib.Path,
) -> None:
  """A cell of Figure 3E's grid, trained for another experiment."""
  config: Any = fig3e_config.get_config('laptop')
  config.experiment = 'elsewhere'
  config.sweep = config.sweep[:1]
  made_up.write_experiment(tmp_path, config, _measure(0.7))
  longer: Any = fig3e_config.get_config('laptop')
  longer.experiment = 'longer'
  longer.training.num_outer_steps += 1
  made_up.write_experiment(tmp_path, longer, _measure(0.1))
  library = results.library(tmp_path)
  frame = library.values('fig3e')
  assert set(frame['value']) == {0.7}
  assert frame['run_id'].nunique() == len(sweeps.expand(config))
  assert set(frame['experiment']) == {'fig3e'}
  assert len(library.curves('fig3e')) > 0


def test_a_run_that_was_trained_twice_counts_once(
    tmp_path: pathlib.Path,
) -> None:
  config = fig3e_config.get_config('laptop')
  made_up.write_experiment(tmp_path, config, _measure(0.7))
  config.experiment = 'elsewhere'
  made_up.write_experiment(tmp_path, config, _measure(0.1))
  frame = results.library(tmp_path).values('fig3e')
  assert set(frame['value']) == {0.7}
  assert len(frame) == 3 * 2 * len(reference.described_runs('fig3e', 'laptop'))


def test_the_preset_with_the_most_runs_is_shown_and_all_are_to_be_had(
    tmp_path: pathlib.Path,
) -> None:
  cells = made_up.AS_CLAIMED
  made_up.write_runs(tmp_path / 'own', {('anil', 'random'): 0.2}, 'paper')
  made_up.write_runs(tmp_path / 'own', cells)
  made_up.write_runs(tmp_path / 'bundled', cells, 'desktop')
  library = data.Library(tmp_path / 'own', tmp_path / 'bundled')
  assert set(library.values('fig3b')['preset']) == {'laptop'}
  assert set(library.curves('fig3b', 'desktop')['preset']) == {'desktop'}
  assert library.presets('fig3b') == ['paper', 'desktop', 'laptop']
  runs = library.every_preset('fig3b')[['preset', 'run_id']].drop_duplicates()
  numbers = {'paper': 1, 'desktop': 8, 'laptop': 8}
  assert runs['preset'].value_counts(sort=False).to_dict() == numbers


def test_a_library_as_of_an_earlier_step(tmp_path: pathlib.Path) -> None:
  made_up.write_runs(tmp_path, made_up.AS_CLAIMED)
  made_up.write_by_rule(tmp_path, 'fig_a4', lambda *_: 0.6)
  library = results.library(tmp_path)
  at_first = library.until('fig3b', 0)
  assert set(library.curves('fig3b')['step']) == {0, 500}
  assert set(at_first.curves('fig3b')['step']) == {0}
  cell = {'model.name': 'maml', 'task.task_support': 'random'}
  for of, mean in ((library, 0.61), (at_first, 0.0)):
    assert pick.values(of.values('fig3b'), cell, 'ood').mean() == (
        pytest.approx(mean)
    )
  # Others are read at their end.
  pd.testing.assert_frame_equal(
      at_first.values('fig_a4'), library.values('fig_a4')
  )


def test_bundled_runs_that_no_config_describes_are_stale(
    tmp_path: pathlib.Path,
) -> None:
  made_up.write_runs(tmp_path, {('anil', 'random'): 0.2})
  assert not data.Library(tmp_path / 'nothing', tmp_path).stale()
  longer = {'training.num_outer_steps': 3001}
  made_up.write_runs(tmp_path, {('maml', 'random'): 0.2}, override=longer)
  (name,) = data.Library(tmp_path / 'nothing', tmp_path).stale()
  assert name.startswith('fig3b/laptop/random-maml-')
  assert not results.library(tmp_path).stale()


def test_training_skips_what_another_experiment_has_trained(
    tmp_path: pathlib.Path,
) -> None:
  """Figure 3B's run of 32 shots is one of Figure A4's."""
  made_up.write_by_rule(tmp_path, 'fig3b', lambda *_: 0.5, 'smoke')
  runs = reference.described_runs('fig_a4', 'smoke')
  of_k = ['max_active=3', 'model=linear_hypernetwork']
  shared = sweeps.select(list(runs), [*of_k, 'num_support=32'])
  other = sweeps.select(list(runs), [*of_k, 'num_support=8'])
  planned = runner.plan([*shared, *other], tmp_path)
  assert [run.folder.finished for run in planned] == [True, False]
  assert 'fig3b' in planned[0].folder.path.parts
  assert planned[0].preset_folder == tmp_path / 'fig_a4' / 'smoke'


def test_seeds_trained_later_join_the_runs_of_the_config(
    tmp_path: pathlib.Path,
) -> None:
  """Also where another experiment borrows the run."""
  root = tmp_path / 'bundled'
  made_up.write_runs(root, made_up.AS_CLAIMED)
  made_up.write_runs(root, {('anil', 'random'): 0.3}, seeds=(2023, 2024))
  library = data.Library(tmp_path, root)
  assert not library.stale()
  for experiment in ('fig3b', 'fig3c'):
    frame, left_out = pick.select_conditions(
        library.values(experiment), fig3b.CELL
    )
    anil = pick.rows(
        frame, {'model.name': 'anil', 'task.task_support': 'random'}
    )
    seeds = sorted(anil['seed'].unique())
    expected = (*made_up.SEEDS, 2023, 2024) if experiment == 'fig3b' else ()
    assert seeds == list(expected)
    assert not left_out


def test_seeds_that_diverged_are_named_below_curves(
    tmp_path: pathlib.Path,
) -> None:
  config = fig3e_config.get_config('laptop')
  summary = {'valid': {'accuracy': [0.5] * 3, 'loss': [1.0] * 3}}

  def rows(run: sweeps.Run) -> list[made_up.Row]:
    del run
    return [
        (step, seed, 'valid', 'loss', math.nan if bad else 0.5)
        for step in (500, 1000)
        for seed in config.training.seeds
        for bad in [step == 1000 and seed == 2021]
    ]

  made_up.write_experiment(tmp_path, config, lambda run: summary, rows=rows)
  curves = results.library(tmp_path).curves('fig3e')
  found = cells.select('fig3e', curves, fig3e.CELL)
  (line,) = cells.excluded(found.frame, found.left_out)
  assert line.startswith('Diverged: 1 seed of ')
  assert line.count('1 seed of') == curves['run_id'].nunique()
