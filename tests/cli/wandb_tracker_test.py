"""Weights & Biases gets what metrics.csv holds, only if asked."""

import pathlib
import sys
import types
from typing import Any

import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.cli import wandb_tracker
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.runs import run_folder
from modular_hyperteacher.runs import trainer
from tests.helpers import commands


class _Recorder:
  """Stands for a run of wandb's; keeps what it is told."""

  def __init__(self) -> None:
    self.logged, self.exit_code = [], None

  def define_metric(self, *_: Any, **__: Any) -> None:
    pass

  def log(self, row: dict[str, Any]) -> None:
    self.logged.append(row)

  def finish(self, exit_code: int) -> None:
    self.exit_code = exit_code


def _run() -> sweeps.Run:
  config = {
      'task': {'name': 'hyperteacher'},
      'model': {'name': 'maml'},
      'training': {'seeds': (7, 9)},
      'execution': {},
  }
  return sweeps.Run('fig3b', 'smoke', config, 'maml-0123456789')


@pytest.fixture(name='wandb')
def fixture_wandb(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
  module = types.SimpleNamespace(run=_Recorder(), options=None)

  def init(**options: Any) -> _Recorder:
    module.options = options
    return module.run

  module.init = init
  module.Settings = lambda **fields: fields
  monkeypatch.setitem(sys.modules, 'wandb', module)
  return module


def test_rows_are_told_seed_by_seed(
    wandb: types.SimpleNamespace, tmp_path: pathlib.Path
) -> None:
  folder = run_folder.RunFolder(tmp_path / 'run')
  with wandb_tracker.Tracker(_run(), folder, 'offline') as tracker:
    tracker.update(trainer.Progress(3, {}))
    tracker.update(trainer.Progress(5, {'ood/loss': np.array([0.25, np.nan])}))
  assert wandb.run.logged == [{'outer_step': 5, 'ood/loss/7': 0.25}]
  assert wandb.run.exit_code == 0
  assert wandb.options['mode'] == 'offline'
  assert wandb.options['id'] == '0123456789'
  assert wandb.options['dir'] == str(tmp_path / 'run')


def test_a_run_that_breaks_is_told_as_such(
    wandb: types.SimpleNamespace, tmp_path: pathlib.Path
) -> None:
  folder = run_folder.RunFolder(tmp_path)
  with pytest.raises(KeyboardInterrupt):
    with wandb_tracker.Tracker(_run(), folder, 'offline'):
      raise KeyboardInterrupt
  assert wandb.run.exit_code == 1


def test_a_service_that_fails_is_told(
    wandb: types.SimpleNamespace, tmp_path: pathlib.Path
) -> None:
  def fail(**_: Any) -> None:
    raise ConnectionError('no\nnetwork')

  wandb.init = fail
  tracker = wandb_tracker.Tracker(
      _run(), run_folder.RunFolder(tmp_path), 'online'
  )
  with pytest.raises(
      errors.MachineError,
      match=r'fails \(ConnectionError: no network\). Try again, or',
  ):
    tracker.__enter__()


def test_off_asks_nothing_of_it(
    wandb: types.SimpleNamespace, tmp_path: pathlib.Path
) -> None:
  folder = run_folder.RunFolder(tmp_path / 'run')
  with wandb_tracker.Tracker(_run(), folder, wandb_tracker.OFF) as tracker:
    tracker.update(trainer.Progress(5, {'ood/loss': np.zeros(2)}))
  assert wandb.options is None
  assert not (tmp_path / 'run').exists()


@pytest.mark.slow
def test_asked_for_and_not_installed(tmp_path: pathlib.Path) -> None:
  (tmp_path / 'wandb.py').write_text('raise ImportError')
  process = commands.start(
      '--config=configs/fig3b.py:smoke',
      f'--results={tmp_path}/results',
      '--wandb=offline',
      variables={'PYTHONPATH': str(tmp_path)},
  )
  output, _ = process.communicate(timeout=240)
  assert process.returncode == 2
  assert output.splitlines()[-1].startswith(
      "error: --wandb is 'offline', but Weights & Biases is not installed"
  )
  assert not (tmp_path / 'results').exists()
