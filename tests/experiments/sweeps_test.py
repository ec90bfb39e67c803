"""Runs beside published ones: which are counterparts, and what is said."""

import types
from typing import Any

import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.cli import summary
from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.published import schug2024


def _runs(name: str, preset: str) -> list[sweeps.Run]:
  config = plugins.config_of(name).get_config(preset)
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


def test_several_values_of_a_field_select_runs_with_any_of_them() -> None:
  runs = _runs('fig3b', 'workstation')
  narrow = sweeps.select(runs, ['hidden_dim=32,64'])
  assert len(narrow) == 8
  assert {run.config['model']['hidden_dim'] for run in narrow} == {32, 64}
  one = sweeps.select(runs, [f'seeds={runs[0].config["training"]["seeds"]}'])[0]
  assert one is runs[0]  # A value that holds commas itself.
  with pytest.raises(errors.UserError, match="no run has hidden_dim '65'"):
    sweeps.select(runs, ['hidden_dim=32,65'])
  with pytest.raises(errors.UserError, match="--without: 'num_modules' is amb"):
    sweeps.select(runs, ['num_modules=4'], '--without')


def test_models_are_selected_by_either_name() -> None:
  """Table A1's solvers train the same kind of model."""
  runs = _runs('table_a1', 'workstation')
  adam = sweeps.select(runs, ['model=adam'])
  assert 0 < len(adam) < len(runs)
  assert {run.point['model'] for run in adam} == {'adam'}
  assert sweeps.select(runs, ['model=modular_student']) == runs
  (one,) = sweeps.select(
      _runs('scan_add_jump', 'laptop'), ['model=meta_seq2seq', 'num_extra=0']
  )
  assert one.point['model'] == 'meta_seq2seq'  # Two others are such networks.
  names = 'choose one of modular_student, levenberg_marquardt, adam'
  with pytest.raises(errors.UserError, match=names):
    sweeps.select(runs, ['model=sgd'])


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


@pytest.mark.parametrize('name', ['scan', 'my_tasks:make'])
def test_nothing_is_published_on_components_of_other_packages(
    name: str,
) -> None:
  """Nor need their fields be like those of ours."""
  split = 'add_jump' if name == 'scan' else ['easy', 'hard']
  task = {'name': name, 'split': split, 'meanings': 'permuted'}
  config = {'task': task, 'model': {'name': 'my_seq2seq:make'}}
  assert schug2024.accuracy(config, 'ood') is None


def test_rows_of_the_table_can_be_told_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
  runs = _select('fig3e', 'laptop', model='linear_hypernetwork')
  metrics = {split: {'accuracy': [0.5, 0.7]} for split in ('test', 'ood')}
  results = {'seeds': [0, 1], 'last': metrics, 'best_validation': metrics}
  folder = types.SimpleNamespace(read=lambda name, record: results)
  planned: list[Any] = [
      types.SimpleNamespace(spec=run, folder=folder) for run in runs
  ]
  summary.print_table(planned, _runs('fig3e', 'paper'))
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


# What a sweep says.


def _config(*grids: sweeps.Grid) -> Any:
  blocks = hyperteacher.blocks('laptop')
  return experiment.make('test', 'laptop', grids, **blocks)


def test_a_grid_s_order_is_no_matter_but_for_names() -> None:
  """Nor whether a field goes by its path."""
  grid = dict(task_support=['random', 'connected'], model=['maml'])
  other = dict(
      {'model': ['maml'], 'task.task_support': ['connected', 'random']}
  )
  runs, others = (sweeps.expand(_config(g)) for g in (grid, other))
  assert [run.run_id.rpartition('-')[0] for run in runs] == [
      'random-maml',
      'connected-maml',
  ]
  by_hash = {sweeps.hash_of(run.run_id): run for run in others}
  assert list(by_hash) == [sweeps.hash_of(r.run_id) for r in reversed(runs)]
  for run in runs:
    other = by_hash[sweeps.hash_of(run.run_id)]
    assert (other.config, other.point) == (run.config, run.point)
    assert set(run.point) == {'task.task_support', 'model'}


def test_the_same_point_of_two_grids_is_one_run() -> None:
  grids = [dict(max_active=values, model=['maml']) for values in ([1, 2], [2])]
  runs = sweeps.expand(_config(*grids))
  assert [run.config['task']['max_active'] for run in runs] == [1, 2]


def test_an_override_is_all_that_is_left_of_a_swept_field() -> None:
  config = _config(dict(max_active=[1, 2], model=['maml', 'anil']))
  config.task.max_active = 3
  runs = sweeps.expand(config, {'task.max_active': 3, 'task.input_dim': 8})
  assert [run.point for run in runs] == [
      {'task.max_active': 3, 'model': model} for model in ('maml', 'anil')
  ]
  assert {run.config['task']['max_active'] for run in runs} == {3}


def test_an_override_of_a_model_leaves_others_swept() -> None:
  models = ['linear_hypernetwork', 'nonlinear_hypernetwork']
  config = _config(dict(hidden_dim=[8, 16], model=models))
  runs = sweeps.expand(config, {'models.linear_hypernetwork.hidden_dim': 4})
  assert [tuple(run.point.values()) for run in runs] == [
      (4, 'linear_hypernetwork'),
      (8, 'nonlinear_hypernetwork'),
      (16, 'nonlinear_hypernetwork'),
  ]


def test_how_many_tasks_at_once_is_no_part_of_a_run_id() -> None:
  grid = dict(model=['linear_hypernetwork', 'maml'])

  def chunk_sizes(config: Any) -> tuple[list[str], list[int | None]]:
    runs = sweeps.expand(config)
    assert all('task_chunk_size' not in run.config['model'] for run in runs)
    sizes = [run.config['execution']['task_chunk_size'] for run in runs]
    return [run.run_id for run in runs], sizes

  run_ids, sizes = chunk_sizes(_config(grid))
  assert sizes == [32, None]
  config = _config(grid)
  config.execution.task_chunk_size = 4
  assert chunk_sizes(config) == (run_ids, [4, 4])


@pytest.mark.parametrize(
    'grid, message',
    [
        ({'model': 'maml'}, 'must be a tuple of grids'),
        ({'model': []}, 'may be empty'),
        ({}, 'may be empty'),
        ({5: [1]}, 'must be a tuple of grids'),
        ({'max_active': [2]}, "model is 'None'; choose one of anil, linear"),
        (
            {'model': ['mlp']},
            "model is 'mlp'; choose one of anil, linear",
        ),
        ({'model': [['maml']]}, 'choose one of anil, linear'),
        ({'model': ['maml'], 'support': ['random']}, "no field 'support'"),
        (
            {'model': ['linear_hypernetwork'], 'num_modules': [4]},
            (
                "'num_modules' is ambiguous; write task.num_modules or"
                ' model.num_modules'
            ),
        ),
    ],
)
def test_a_mistake_in_a_sweep_is_one_clear_line(
    grid: sweeps.Grid, message: str
) -> None:
  with pytest.raises(errors.UserError, match=message) as caught:
    sweeps.expand(_config(grid))
  assert '\n' not in str(caught.value)
