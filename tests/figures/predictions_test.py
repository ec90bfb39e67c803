"""Files of predictions, drawn beside the built-in models."""

import pathlib
from typing import Any

import numpy as np
import pandas as pd
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher import worlds
from modular_hyperteacher.figures.extensions import predictions
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from tests.figures import make_all_test
from tests.helpers import made_up
from tests.helpers import results

_NUM_TASKS = 4


def _write(
    folder: pathlib.Path,
    learner: str,
    seed: int,
    split: str,
    part: float,
    **fields: Any,
) -> float:
  """Writes right logits for the first part of the queries; returns accuracy."""
  world = worlds.make('hyperteacher', seed=seed, **fields)
  tasks = world.sample(split, _NUM_TASKS)
  logits = np.log(np.maximum(tasks.query_targets, 1e-9))
  logits[:, int(part * logits.shape[1]) :] *= -1
  path = folder / f'{learner}.{split}.{seed}.npz'
  worlds.write_predictions(path, logits, world, split)
  return world.score(logits, tasks)['accuracy']


@pytest.fixture(scope='module', name='folder')
def fixture_folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
  folder = tmp_path_factory.mktemp('predictions')
  _write(folder, 'mine', 2020, 'ood', 0.5)
  _write(folder, 'mine', 2021, 'ood', 1.0)
  _write(folder, 'other', 2020, 'test', 1.0)
  return folder


@pytest.mark.slow
def test_bars_stand_beside_the_built_in_models(
    folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
  ((_, experiments, draw, _),) = predictions.read(folder).values()
  assert experiments == ('fig3b',)
  library = data.Library(tmp_path)
  figure: Any
  figure, table = draw(library)
  rows = table.set_index(['split', 'model'])
  cell = {
      'model.name': 'maml',
      'model.hidden_dim': 64,
      'task.task_support': 'random',
  }
  bundled = pick.values(library.values('fig3b'), cell, 'ood')
  assert rows.loc[('ood', 'maml'), 'accuracy_mean'] == pytest.approx(
      bundled.mean()
  )
  assert rows.loc[('ood', 'maml'), 'num_tasks'] == 256
  assert ('ood', 'maml, 218 wide') in rows.index
  mine: Any = rows.loc[('ood', 'mine')]
  scored = [
      worlds.score_file(path).metrics['accuracy']
      for path in sorted(folder.glob('mine.*'))
  ]
  assert mine['accuracy_mean'] == pytest.approx(np.mean(scored))
  assert mine['accuracy_se'] == pytest.approx(abs(scored[1] - scored[0]) / 2)
  assert mine['num_seeds'] == 2 and mine['num_tasks'] == _NUM_TASKS
  assert set(rows.loc['test'].index) == {*rows.loc['ood'].index, 'other'} - {
      'mine'
  }
  titles = [note.text for note in figure.layout.annotations]
  assert 'Compositional support, OOD' in titles
  heights = {y for bar in figure.data if bar.type == 'bar' for y in bar.y}
  assert mine['accuracy_mean'] in heights and len(heights) == 14


@pytest.mark.slow
def test_a_seed_of_two_runs_counts_once(
    folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
  for seeds in (made_up.SEEDS, made_up.SEEDS[:1]):
    made_up.write_runs(tmp_path, {('anil', 'random'): 0.6}, seeds=seeds)
  ((_, _, draw, _),) = predictions.read(folder).values()
  _, table = draw(results.library(tmp_path))
  rows = table.set_index(['split', 'model'])
  assert rows.loc[('ood', 'anil'), 'num_seeds'] == 3


@pytest.mark.slow
def test_the_command_draws_them(
    folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
  run = make_all_test.run_script(
      'make_all',
      '--only=fig3b',
      '--format=html',
      f'--predictions={folder}',
      f'--output={tmp_path}',
  )
  assert run.returncode == 0, run.stderr
  name = 'predictions_hyperteacher_fig3b_laptop'
  assert len(pd.read_csv(tmp_path / f'{name}.csv')) == 14
  row = worlds.score_file(folder / 'other.test.2020.npz').row()
  head = (tmp_path / f'{name}.md').read_text().splitlines()[0]
  assert head == f'| {" | ".join(row)} |'  # What `score` prints.
  assert f'id="{name}"' in (tmp_path / 'report.html').read_text()


@pytest.mark.slow
def test_every_world_has_a_figure(tmp_path: pathlib.Path) -> None:
  expected = {
      'fig3b': _write(tmp_path, 'mine.three', 2020, 'ood', 1.0),
      'fig3c': _write(tmp_path, 'mine.two', 2020, 'ood', 0.0, max_active=2),
  }
  found = predictions.read(tmp_path)
  assert list(found) == [
      f'predictions_hyperteacher_{experiment}_laptop' for experiment in expected
  ]
  assert len({title for title, *_ in found.values()}) == 2
  for (title, (experiment,), draw, _), accuracy in zip(
      found.values(), expected.values()
  ):
    _, table = draw(data.Library(tmp_path))
    assert experiment in title
    rows = table.set_index('model')
    assert rows.loc['mine', 'accuracy_mean'] == accuracy
    cell = {
        'model.name': 'linear_hypernetwork',
        'task.task_support': 'random',
    }
    bundled = pick.values(
        data.Library(tmp_path).values(experiment), cell, 'ood'
    )
    assert rows.loc['linear_hypernetwork', 'accuracy_mean'] == pytest.approx(
        bundled.mean()
    )


@pytest.mark.slow
def test_worlds_of_an_experiment_are_told_apart(tmp_path: pathlib.Path) -> None:
  for fraction in (0.25, 0.7):
    world = worlds.make(
        'graded_hyperteacher',
        preset='smoke',
        task_support='random',
        max_active=3,
        fraction_ood=fraction,
    )
    tasks = world.sample('ood', 2)
    path = tmp_path / f'mine.{fraction}.npz'
    worlds.write_predictions(path, tasks.query_targets, world, 'ood')
  found = predictions.read(tmp_path)
  for fraction, (name, (title, *_)) in zip((0.25, 0.7), found.items()):
    assert f'fraction_ood_{fraction}' in name
    assert f'held out = {fraction}, K = 3, M = 8' in title


@pytest.mark.slow
@pytest.mark.parametrize(
    'world, split, title',
    [
        ('modular_regression', 'ood_common', 'ring_chords, ood common'),
        ('fuzzy_logic', 'ood_unknown_terms', 'ood unknown terms'),
        ('sraven', 'ood', 'OOD'),
    ],
)
def test_a_panel_is_named_by_support_and_split(
    tmp_path: pathlib.Path, world: str, split: str, title: str
) -> None:
  made = worlds.make(world, preset='smoke')
  tasks = made.sample(split, 2)
  shape = made.prediction(tasks).shape
  logits = np.zeros([int(n or 0) for n in shape], np.float32)
  worlds.write_predictions(tmp_path / 'mine.npz', logits, made, split)
  ((_, _, draw, _),) = predictions.read(tmp_path).values()
  figure: Any
  figure, _ = draw(data.Library(tmp_path))
  assert title in [note.text for note in figure.layout.annotations]


def test_a_folder_without_predictions_is_refused(
    tmp_path: pathlib.Path,
) -> None:
  with pytest.raises(errors.UserError, match='has no .npz file'):
    predictions.read(tmp_path)
  np.savez(tmp_path / 'a.npz', predictions=np.zeros(2))
  with pytest.raises(errors.UserError, match="array 'spec' is missing"):
    predictions.read(tmp_path)
