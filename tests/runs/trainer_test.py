"""The training loop: rows, the best parameters, and never losing work."""

from collections.abc import Callable, Sequence
import json
import pathlib
import types
from typing import Any, NoReturn

import jax
import numpy as np
import pandas as pd
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.learning import programs
from modular_hyperteacher.runs import checkpoints
from modular_hyperteacher.runs import preemption
from modular_hyperteacher.runs import run_folder
from modular_hyperteacher.runs import runner
from modular_hyperteacher.runs import trainer
from tests.helpers import slow
from tests.helpers import tiny

_SEEDS = (4, 5)
_SPLITS = tiny.task().evaluation_splits


@pytest.fixture(scope='module', name='compiled')
def fixture_compiled() -> programs.Programs:
  world = tiny.task()
  return tiny.make_programs(world, tiny.learner(world), _SEEDS)


def _trainer(
    compiled: programs.Programs,
    path: pathlib.Path,
    *,
    call: Callable[..., Any] | None = None,
    empty: Sequence[str] = (),
    **overrides: Any,
) -> trainer.Trainer:
  experiment: Any = types.SimpleNamespace(
      system=types.SimpleNamespace(
          evaluation_splits=_SPLITS,
          analysed_always=overrides.pop('analysed_always', False),
      ),
      training=types.SimpleNamespace(
          seeds=_SEEDS,
          num_outer_steps=overrides.pop('num_outer_steps', 14),
          evaluate_every=5,
      ),
      execution=types.SimpleNamespace(
          log_every=3,
          checkpoint_every_s=overrides.pop('checkpoint_every_s', 0.0),
      ),
  )
  are_empty = {s: np.array([s in empty] * 2) for s in _SPLITS}
  guard: Any = types.SimpleNamespace(
      call=call or (lambda function, *args: function(*args)),
      agree=lambda value: value,
  )
  watch = overrides.pop('watch', lambda progress: None)
  analyse = overrides.pop('analyse', None)
  folder = run_folder.RunFolder(path)
  path.mkdir(parents=True, exist_ok=True)
  assert not overrides
  return trainer.Trainer(
      compiled,
      folder,
      experiment,
      are_empty,
      guard,
      watch,
      check_lock=lambda: None,
      analyse=analyse,
  )


def _final(compiled: programs.Programs, path: pathlib.Path) -> tuple[str, Any]:
  """Returns what a run left: rows as text, and its last checkpoint."""
  whole = _trainer(compiled, path)
  saved = checkpoints.Checkpoints(path / 'checkpoints').restore(
      whole._snapshot()
  )
  return (path / 'metrics.csv').read_text(), saved


def test_rows(compiled: programs.Programs, tmp_path: pathlib.Path) -> None:
  _trainer(compiled, tmp_path).run()
  frame = run_folder.RunFolder(tmp_path).read_metrics()
  train = frame[frame['split'] == 'train']
  assert sorted(set(train['step'])) == [3, 6, 9, 12, 14]
  assert {'loss', 'accuracy', 'gradient_norm', 'num_skipped'} == set(
      train['metric']
  )
  for split in _SPLITS:
    rows = frame[frame['split'] == split]
    assert sorted(set(rows['step'])) == [5, 10, 14]
    assert set(rows['seed']) == set(_SEEDS)
  accuracy = frame[frame['metric'] == 'accuracy']['value']
  assert accuracy.between(0, 1).all()


@pytest.mark.parametrize(
    'always, steps',
    [(False, [5, 10, 20, 32]), (True, [5, 10, 15, 20, 25, 30, 32])],
)
def test_first_second_fourth_and_last_evaluations_are_analysed(
    compiled: programs.Programs,
    tmp_path: pathlib.Path,
    always: bool,
    steps: list[int],
) -> None:
  """Or all of them, if the system says so."""
  seen = []

  def analyse(meta_params: Any, kept: Any) -> Any:
    del kept
    seen.append(meta_params)
    return {'ood': {'r2': np.full(len(_SEEDS), len(seen))}}

  run = _trainer(
      compiled,
      tmp_path,
      analyse=analyse,
      analysed_always=always,
      num_outer_steps=32,
  )
  run.run()
  frame = run_folder.RunFolder(tmp_path).read_metrics()
  rows = frame[frame['metric'] == 'r2']
  assert set(rows['split']) == {'ood'}
  found = rows.groupby('step')['value'].unique().map(list).to_dict()
  assert found == {step: [i] for i, step in enumerate(steps, start=1)}
  last = run._snapshot().state.meta_params
  jax.tree.map(np.testing.assert_array_equal, seen[-1], last)


def test_empty_splits_are_missing(
    compiled: programs.Programs, tmp_path: pathlib.Path
) -> None:
  _trainer(compiled, tmp_path, empty=('ood_k2',), num_outer_steps=1).run()
  frame = run_folder.RunFolder(tmp_path).read_metrics()
  assert frame[frame['split'] == 'ood_k2']['value'].isna().all()
  assert frame[frame['split'] == 'ood']['value'].notna().all()


@pytest.mark.parametrize('num_calls', slow.mark([1, 2, 4, 7, 9], (2, 7)))
def test_stopped_anywhere_a_run_goes_on_bit_for_bit(
    compiled: programs.Programs, tmp_path: pathlib.Path, num_calls: int
) -> None:
  _trainer(compiled, tmp_path / 'whole').run()
  expected_rows, expected = _final(compiled, tmp_path / 'whole')

  remaining = [num_calls]

  def call(function: Callable[..., Any], *args: Any) -> Any:
    remaining[0] -= 1
    if remaining[0] < 0:
      raise preemption.Interrupted(15)
    return function(*args)

  stopped = _trainer(compiled, tmp_path / 'stopped', call=call)
  with pytest.raises(preemption.Interrupted):
    stopped.run()
  if num_calls % 2:  # SIGTERM saves first; kill -9 does not.
    stopped.save()
  _trainer(compiled, tmp_path / 'stopped').run()
  rows, saved = _final(compiled, tmp_path / 'stopped')
  assert rows == expected_rows
  jax.tree.map(np.testing.assert_array_equal, saved, expected)


class _Stop:
  """Lets a trainer compute until it evaluates after a given step."""

  def __init__(self, step: int) -> None:
    self.step = step
    self.trainer: Any = None

  def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
    # Evaluation is the call that comes with a function of its own.
    if function.__name__ == '<lambda>' and self.trainer.step == self.step:
      raise preemption.Interrupted(15)
    return function(*args)


@pytest.mark.parametrize('step', [10, 14])
@pytest.mark.parametrize('killed', [False, True])
def test_stopped_while_evaluating_a_run_finds_the_same_best_parameters(
    compiled: programs.Programs,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
    killed: bool,
) -> None:
  """Stopped by SIGTERM, and then by a kill between rows and checkpoint."""
  _trainer(compiled, tmp_path / 'whole').run()
  expected_rows, expected = _final(compiled, tmp_path / 'whole')
  # Among 5, 10 and 14, the last has the lowest validation loss for both seeds.
  path = tmp_path / 'stopped'
  stop = _Stop(step)
  stop.trainer = _trainer(compiled, path, call=stop, checkpoint_every_s=1e9)
  with pytest.raises(preemption.Interrupted):
    stop.trainer.run()
  assert stop.trainer.step == step
  stop.trainer.save()
  if killed:
    with monkeypatch.context() as patch:

      def die(*args: Any) -> NoReturn:
        raise KeyboardInterrupt

      patch.setattr(checkpoints.Checkpoints, 'save', die)
      with pytest.raises(KeyboardInterrupt):
        _trainer(compiled, path).run()
    assert len((path / 'metrics.csv').read_text()) > 0
  _trainer(compiled, path, checkpoint_every_s=1e9).run()
  rows, saved = _final(compiled, path)
  assert rows == expected_rows
  jax.tree.map(np.testing.assert_array_equal, saved, expected)


def test_killed_between_rows_and_checkpoint(
    compiled: programs.Programs,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  _trainer(compiled, tmp_path / 'whole').run()
  expected_rows, _ = _final(compiled, tmp_path / 'whole')
  save = checkpoints.Checkpoints.save

  def die(
      self: checkpoints.Checkpoints, step: int, tree: Any, rows: bytes
  ) -> None:
    if step >= 6:
      raise KeyboardInterrupt
    save(self, step, tree, rows)

  with monkeypatch.context() as patch:
    patch.setattr(checkpoints.Checkpoints, 'save', die)
    with pytest.raises(KeyboardInterrupt):
      _trainer(compiled, tmp_path / 'killed').run()
  resumed = _trainer(compiled, tmp_path / 'killed')
  assert 0 < resumed.step < 6
  resumed.run()
  assert (tmp_path / 'killed' / 'metrics.csv').read_text() == expected_rows


def test_best_parameters_are_those_of_the_lowest_validation_loss(
    compiled: programs.Programs, tmp_path: pathlib.Path
) -> None:
  history = []

  def watch(progress: trainer.Progress) -> None:
    if 'valid/loss' in progress.metrics:
      history.append(progress.metrics['valid/loss'])

  run = _trainer(compiled, tmp_path, watch=watch)
  run.run()
  losses = np.array(history)
  saved = run._snapshot()
  np.testing.assert_array_equal(saved.best_loss, losses.min(0))
  again = programs.fetch(
      compiled.evaluate(programs.replicate(saved.best_params))[0]
  )
  np.testing.assert_allclose(
      again['loss'][:, _SPLITS.index('valid')], losses.min(0), rtol=1e-6
  )


@pytest.mark.parametrize('infinite', [np.nan, np.inf])
def test_without_a_finite_loss_the_best_parameters_are_the_last(
    compiled: programs.Programs, tmp_path: pathlib.Path, infinite: float
) -> None:
  run = _trainer(compiled, tmp_path)
  run._take_steps()
  run._keep_best(np.array([infinite, 0.5]))
  first = run._snapshot()
  run._take_steps()
  run._keep_best(np.array([infinite, 0.6]))
  last = run._snapshot()
  for best, earlier, latest in zip(
      *map(
          jax.tree.leaves,
          (last.best_params, first.best_params, last.state.meta_params),
      )
  ):
    np.testing.assert_array_equal(best[0], latest[0])
    np.testing.assert_array_equal(best[1], earlier[1])
  # As in the summary of the run.
  rows = [
      (step, seed, 'valid', 'loss', loss)
      for step in (1, 2)
      for seed, loss in zip(_SEEDS, (infinite, 0.4 + step / 10))
  ]
  spec: Any = types.SimpleNamespace(
      run_id='run', config={'training': {'seeds': list(_SEEDS)}}
  )
  assert runner.summarise(spec, rows)['best_step'] == [2, 1]


def test_a_damaged_checkpoint_costs_steps_but_changes_nothing(
    compiled: programs.Programs,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
  _trainer(compiled, tmp_path / 'whole').run()
  expected_rows, expected = _final(compiled, tmp_path / 'whole')
  _trainer(compiled, tmp_path / 'damaged').run()
  folder = tmp_path / 'damaged' / 'checkpoints'
  newest = folder / '14.npz'
  newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])
  resumed = _trainer(compiled, tmp_path / 'damaged')
  assert 0 < resumed.step < 14
  said = capsys.readouterr().err
  assert '14.npz is not' in said and f'from step {resumed.step}' in said
  resumed.run()
  rows, saved = _final(compiled, tmp_path / 'damaged')
  assert rows == expected_rows
  jax.tree.map(np.testing.assert_array_equal, saved, expected)


def test_results_files(tmp_path: pathlib.Path) -> None:
  folder = run_folder.RunFolder(tmp_path / 'run')
  config = {
      'task': {'name': 'a'},
      'model': {'name': 'b', 'b': [1, 2]},
      'training': {'seeds': [1], 'num_outer_steps': 5, 'c': 3.5},
      'execution': {},
  }
  folder.check(config)
  folder.open(config)
  folder.check(config)
  with pytest.raises(errors.UserError, match="'model' differs"):
    folder.check(config | {'model': {'name': 'b', 'b': [1]}})
  rows = [(0, 1, 'ood', 'loss', 0.1), (0, 1, 'ood_k1', 'loss', float('nan'))]
  folder.write_metrics(rows)
  frame = folder.read_metrics()
  pd.testing.assert_frame_equal(
      frame, pd.DataFrame(rows, columns=list(run_folder.COLUMNS))
  )
  assert not folder.finished
  folder.write('summary.json', {'x': float('nan')})
  assert folder.finished
  assert json.loads((folder.path / 'summary.json').read_text()) == {'x': None}
  assert not list(folder.path.glob('.writing-*'))
