"""What a run says when training ends in an error."""

import json
import pathlib
import types
from typing import Any, NoReturn

import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.cli import command_line
from modular_hyperteacher.cli import summary
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.learning import programs
from modular_hyperteacher.runs import preemption
from modular_hyperteacher.runs import runner
from modular_hyperteacher.runs import trainer
from modular_hyperteacher.tasks.supports import combinations
from tests.helpers import small_sweep


def _execute(tmp_path: pathlib.Path, preset: str = 'smoke') -> None:
  run = sweeps.expand(small_sweep.get_config(preset))[0]
  (planned,) = runner.plan([run], tmp_path)
  with preemption.Guard(()) as guard:
    runner.execute(planned, guard, lambda progress: None, lambda: None)


@pytest.mark.parametrize(
    'error, raised',
    [
        (ValueError('max() arg is empty'), RuntimeError),
        (errors.UserError('task.x is 1; it must be 2.'), errors.UserError),
    ],
)
def test_bugs_in_training_are_not_told_as_wrong_input(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    raised: type[Exception],
) -> None:
  def fail(self: Any) -> NoReturn:
    raise error

  monkeypatch.setattr(trainer.Trainer, 'run', fail)
  with pytest.raises(raised) as caught:
    _execute(tmp_path)
  assert str(error) in str(caught.value)
  assert command_line.is_users(caught.value) == (raised is errors.UserError)


def test_bugs_in_compilation_are_not_told_as_wrong_input(
    tmp_path: pathlib.Path,
) -> None:
  run = sweeps.expand(small_sweep.get_config('smoke'))[0]
  (planned,) = runner.plan([run], tmp_path)

  def fail() -> NoReturn:
    raise ValueError('shapes differ')

  with preemption.Guard(()) as guard:
    with pytest.raises(RuntimeError, match='shapes differ') as caught:
      runner.execute(planned, guard, lambda _: None, lambda: None, fail)
  assert not command_line.is_users(caught.value)


def test_a_run_does_not_go_on_with_other_tasks(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  monkeypatch.setattr(trainer.Trainer, 'run', trainer.Trainer.save)
  monkeypatch.setattr(runner, 'summarise', lambda *_: {})
  _execute(tmp_path)
  (path,) = tmp_path.glob('*/*/*/provenance.json')
  stored = json.loads(path.read_text())
  (path.parent / 'summary.json').unlink()
  _execute(tmp_path)
  assert json.loads(path.read_text())['drawn'] == stored['drawn']
  (path.parent / 'summary.json').unlink()
  seed = next(iter(stored['drawn']))
  stored['drawn'][seed] |= {'exact': '0' * 16}
  path.write_text(json.dumps(stored))
  with pytest.raises(errors.UserError, match='cannot be resumed, as the same'):
    _execute(tmp_path)
  del stored['drawn']  # As an earlier version stored it.
  path.write_text(json.dumps(stored))
  _execute(tmp_path)


def test_describing_lists_no_combinations(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  """There are 4,514,872 masks of up to seven of 32 modules."""

  def fail(*_: int) -> NoReturn:
    raise AssertionError('masks are listed')

  monkeypatch.setattr(combinations, 'masks_up_to', fail)
  runs = sweeps.described_runs('scaling', 'paper')
  by_id = {run.run_id.rpartition('-')[0]: run for run in runs}
  for name, train, ood in (
      ('multitask_mlp-random-32-7-0.25-identity-1024-4', 3386154, 1128718),
      ('multitask_transformer-random-32-7-0.75-identity', 1128718, 3386154),
      ('multitask_mlp-disconnected-16-3-0.25-identity-1024-4', 523, 173),
  ):
    (planned,) = runner.plan([by_id[name]], tmp_path)
    counts = planned.describe(list(runs))['num_combinations']
    assert counts == dict.fromkeys(('train', 'valid', 'test'), train) | {
        'ood': ood
    }


@pytest.mark.parametrize('preset', ['smoke', 'paper'])
def test_programs_are_optimised_as_the_config_says(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, preset: str
) -> None:
  asked = []

  class Programs(programs.Programs):

    def __init__(
        self, system: Any, roots: Any, worlds: Any, optimise: bool
    ) -> None:
      asked.append(optimise)
      super().__init__(system, roots, worlds, optimise)

  def stop(self: Any) -> NoReturn:
    raise errors.UserError('seen enough')

  monkeypatch.setattr(programs, 'Programs', Programs)
  monkeypatch.setattr(trainer.Trainer, 'run', stop)
  with pytest.raises(errors.UserError, match='seen enough'):
    _execute(tmp_path, preset)
  assert asked == [preset != 'smoke']


@pytest.mark.parametrize(
    'loss, said',
    [
        ([0.2, 0.3], None),
        ([0.2, None], 'NO finite test loss for 1 of 2 seeds'),
        (['inf', None], 'NO finite test loss for 2 of 2 seeds'),
    ],
)
def test_a_loss_that_was_lost_is_told(
    capsys: pytest.CaptureFixture[str], loss: list[Any], said: str | None
) -> None:
  splits = {
      'train': {'num_skipped': [0, 2]},
      'test': {'loss': loss, 'accuracy': [0.5, 0.5]},
      'ood': {'loss': [0.4, 0.4], 'accuracy': [0.4, 0.4]},
  }
  folder = types.SimpleNamespace(
      read=lambda *_: {'seeds': [1, 2], 'last': splits}
  )
  run = types.SimpleNamespace(run_id='maml-1')
  planned: Any = types.SimpleNamespace(spec=run, folder=folder)
  summary.print_result(planned)
  line = capsys.readouterr().out
  assert 'test 0.500' in line
  assert said in line if said else 'NO' not in line
  assert '2 gradients were not finite' in line
