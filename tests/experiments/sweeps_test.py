"""Runs beside published ones: which are counterparts, and what is said."""

import importlib
import types
from typing import Any

import pytest

from modular_hyperteacher.cli import summary as report
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.published import schug2024


def _runs(name: str, preset: str) -> list[sweeps.Run]:
  config = importlib.import_module(f'configs.{name}').get_config(preset)
  return sweeps.expand(config)


def _select(name: str, preset: str, **fields: Any) -> list[sweeps.Run]:
  only = [f'{field}={value}' for field, value in fields.items()]
  return sweeps.select(_runs(name, preset), only)


def test_a_field_that_only_some_runs_have_selects_of_those() -> None:
  """ANIL and MAML have no modules."""
  only = ['model.modules_per_teacher_module=4', 'task_support=random']
  runs = sweeps.select(_runs('fig3b', 'laptop'), only)
  assert [run.config['model']['name'] for run in runs] == [
      'linear_hypernetwork',
      'nonlinear_hypernetwork',
  ]


def test_counterparts_share_what_is_swept() -> None:
  """Of the many runs of the same model, those of as many modules."""
  (run,) = _select('fig3e', 'laptop', model='anil', num_modules=8, max_active=2)
  (counterpart,) = sweeps.counterparts(run, _runs('fig3e', 'paper'))
  assert counterpart.config['task']['num_modules'] == 8
  assert counterpart.config['task']['max_active'] == 2
  assert counterpart.config['model']['name'] == 'anil'


def test_counterparts_may_tie() -> None:
  """With K = 3 in place of 2 or 4, and 8 shots where none are published."""
  run, *_ = _select('fig_a4', 'laptop', max_active=3, num_support=8)
  counterparts = sweeps.counterparts(run, _runs('fig_a4', 'paper'))
  assert len(counterparts) > 1
  assert {c.config['task']['max_active'] for c in counterparts} == {2, 4}


def test_no_counterpart_without_the_same_question() -> None:
  run, *_ = _runs('fig4b', 'laptop')
  paper = _select('fig4b', 'paper', task_support='disconnected')
  assert not sweeps.counterparts(run, paper)
  changes = sweeps.deviations(run, paper)
  assert {change['published'] for change in changes.values()} == {None}


@pytest.mark.parametrize(
    'name, fields, expected',
    [
        ('fig3b', {}, 0.8745),  # Table A6, linear hypernetwork.
        # The tables' runs had 256 shots, a quarter held out, a wider teacher.
        ('fig_a4', {'num_support': 16}, None),
        ('fig_a5', {'fraction_ood': 0.5}, None),
        ('fig3f', {'modules_per_teacher_module': 4}, None),
    ],
)
def test_published_numbers_are_of_the_tables_task(
    name: str, fields: dict[str, Any], expected: float | None
) -> None:
  run, *_ = _select(name, 'paper', model='linear_hypernetwork', **fields)
  found = schug2024.accuracy(run.config, 'ood')
  assert (found and found[0]) == expected


def test_rows_of_the_table_can_be_told_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
  runs = _select('fig3e', 'laptop', model='linear_hypernetwork')
  metrics = {split: {'accuracy': [0.5, 0.7]} for split in ('test', 'ood')}
  summary = {'last': metrics, 'best_validation': metrics}
  folder = types.SimpleNamespace(read=lambda name: summary)
  planned: list[Any] = [
      types.SimpleNamespace(run=run, folder=folder) for run in runs
  ]
  report.print_table(planned, _runs('fig3e', 'paper'))
  header, *lines = capsys.readouterr().out.strip().splitlines()
  assert header.split() == [
      *('model', 'support', 'num_modules', 'max_active', 'test', 'OOD', 'OOD'),
      *('best', 'seeds', 'published', 'OOD', 'scale'),
  ]
  rows = lines[: len(runs)]
  assert len({tuple(row.split()) for row in rows}) == len(runs)
  # Tables A2 and A6.
  assert '0.204 ± 0.016' in rows[0]
  assert any('0.875 ± 0.025' in row for row in rows)
