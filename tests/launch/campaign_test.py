"""Campaigns: lists, schedules, and what a budget allows for."""

from collections.abc import Iterator
import json
import pathlib
import re
import time
from typing import Any

from absl.testing import flagsaver
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import published
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.launch import campaign
from modular_hyperteacher.launch import campaign_list
from modular_hyperteacher.launch import plan as plans
from modular_hyperteacher.launch import schedule
from modular_hyperteacher.launch import worker
from modular_hyperteacher.published import schug2024
from modular_hyperteacher.runs import preemption
from modular_hyperteacher.runs import run_folder
from modular_hyperteacher.runs import runner
from modular_hyperteacher.studies.meta_seq2seq import published as lake2019
from tests.helpers import launch_flags
from tests.helpers import small_sweep

_SMALL = 'tests/helpers/small_sweep.py'
_PUBLISHED = campaign_list.find('published')


@pytest.fixture(autouse=True, scope='module')
def fixture_flags() -> None:
  launch_flags.parse()


def _read(tmp_path: pathlib.Path, text: str) -> list[campaign_list.Line]:
  path = tmp_path / 'list.txt'
  path.write_text(text)
  return campaign_list.read(path)


def test_a_list_is_one_of_the_package_or_a_file(tmp_path: pathlib.Path) -> None:
  path = tmp_path / 'list.txt'
  message = f"--list is '{path}'; choose one of gpu, published, or a file."
  with pytest.raises(errors.UserError, match=re.escape(message)):
    campaign_list.find(str(path))
  path.touch()
  assert campaign_list.find(str(path)) == path


@pytest.mark.parametrize(
    'line, message',
    [
        ('nowhere:paper', "--config is 'nowhere:paper'; there is no file"),
        ('fig3b:huge', "preset is 'huge'; choose one of smoke, laptop"),
        ('fig3b --only=colour=red', "'colour' is not a field of a run"),
        ('fig3b --only=model=nobody', '--only: no run has'),
        ('fig3b --only=model', "--only is 'model'; write field=value"),
        ('fig3b --only="model', 'No closing quotation'),
        ('fig3b --seeds=1,two', "--seeds is '1,two'; write numbers"),
        ('fig3b --values=A9.*', r"'A9.\*' matches no published value"),
        ('fig3b --steps=3', "unknown option '--steps=3'; choose from --only"),
    ],
)
def test_a_wrong_line_is_named_in_one_line(
    tmp_path: pathlib.Path, line: str, message: str
) -> None:
  with pytest.raises(errors.UserError, match=message) as caught:
    _read(tmp_path, f'# Mine\n\n{line}\n')
  assert str(caught.value).startswith(f'--list: {tmp_path}/list.txt, line 3: ')
  assert '\n' not in str(caught.value)


def test_lists_without_lines_are_refused(tmp_path: pathlib.Path) -> None:
  with pytest.raises(errors.UserError, match='which has no lines'):
    _read(tmp_path, '# Nothing yet\n')
  with pytest.raises(errors.UserError, match='cannot be read: .*No such file'):
    campaign_list.read(tmp_path / 'nowhere')


def test_a_line_takes_runs_seeds_and_values(tmp_path: pathlib.Path) -> None:
  (line,) = _read(
      tmp_path,
      'fig3b:smoke --only=model=maml --seeds=7,8 --values=A2.maml.t*,A6.anil.*',
  )
  assert line.text == 'fig3b:smoke --only=model=maml --seeds=7,8'
  assert [run.config['task']['task_support'] for run in line.runs] == [
      'random',
      'non_compositional',
  ]
  assert all(run.config['training']['seeds'] == [7, 8] for run in line.runs)
  assert line.values[:2] == ['A2.maml.train_accuracy', 'A2.maml.test_accuracy']
  assert len(line.values) == 9
  (line,) = _read(tmp_path, f'{_SMALL} --seeds=7')  # Whose sweep has others.
  assert [run.config['training']['seeds'] for run in line.runs] == [[7]]


def _published_by_config(config: dict[str, Any], value: str) -> bool:
  """Whether a config's published number is that of this id."""
  table = schug2024.table() if value[0] == 'A' else lake2019.table()
  (row,) = table[table['id'] == value].to_dict('records')
  split = row['metric'].replace('ood_accuracy_k', 'ood_k')
  split = split.removesuffix('_accuracy') if value[0] == 'A' else 'ood'
  found = published.accuracy(config, split)
  return found is not None and found[0] == float(row['mean']) / 100


def test_the_published_list_names_every_value_and_its_runs() -> None:
  lines = campaign_list.read(_PUBLISHED)
  listed = [value for line in lines for value in line.values]
  assert len(set(published.ids())) == len(published.ids()) == 222
  assert len(set(listed)) == len(listed) == 216
  missing = set(published.ids()) - set(listed)
  assert all(
      re.search(r'syntactic|lake_baroni|4\.1\.minutes', value)
      for value in missing
  )
  for line in lines:
    assert all(run.preset == 'paper' for run in line.runs)
    for value in line.values:
      # A1's columns are lost; training accuracy is not looked up by configs.
      if not value.startswith('A1.') and not value.endswith('.training'):
        (run,) = line.runs
        assert _published_by_config(run.config, value), (line.text, value)


def test_runs_of_the_published_list_evaluate_what_it_names() -> None:
  lines = campaign_list.read(_PUBLISHED)
  (line,) = (x for x in lines if x.patterns == 'A8.linear_hypernetwork.*')
  splits = build.build(line.runs[0].config, 1).system.evaluation_splits
  named = {value.rpartition('_k')[2] for value in line.values if '_k' in value}
  assert {f'ood_k{k}' for k in named} <= {*splits} and named == {*'1248'}


def test_runs_are_scheduled_in_order_on_the_worker_that_is_free_first() -> None:
  needs = [schedule.Need(1, total) for total in (30, 10, 50, 5)]
  ends, idle_s = schedule.schedule(needs, num_workers=2, budget_s=100)
  # The second worker is free at 10, the first at 30.
  assert ends == [30, 10, 60, 35] and idle_s == 100 - 35


def test_no_run_is_scheduled_that_could_not_save_anything() -> None:
  needs = [schedule.Need(1, 9), schedule.Need(12, 13), schedule.Need(2, 500)]
  ends, idle_s = schedule.schedule(needs, num_workers=1, budget_s=20)
  # The last one starts at 9, and ends long after the budget.
  assert ends == [9, None, 509] and idle_s == 0
  ends, idle_s = schedule.schedule([needs[0], None, needs[0]], 1, 20)
  assert ends == [9] and idle_s == 11


@pytest.mark.parametrize('hours', [None, 0.0, -1.0, float('nan'), float('inf')])
def test_a_budget_is_a_positive_number(hours: float | None) -> None:
  with flagsaver.flagsaver(budget_h=hours):
    with pytest.raises(errors.UserError, match=f'--budget_h is {hours}; it'):
      campaign._check(['campaign'])


def test_what_cannot_hold_bundles_is_refused(tmp_path: pathlib.Path) -> None:
  (tmp_path / 'file').touch()
  wrong = f'{tmp_path}/file/bundle'
  with flagsaver.flagsaver(budget_h=1.0, bundle=wrong):
    with pytest.raises(
        errors.UserError, match=f'--bundle: cannot write to {wrong}'
    ):
      campaign._check(['campaign'])
  with flagsaver.flagsaver(budget_h=1.0, bundle=f'{tmp_path}/new/bundle'):
    campaign._check(['campaign'])
  assert not list((tmp_path / 'new' / 'bundle').iterdir())


def _settings(tmp_path: pathlib.Path, **limits: Any) -> worker.Settings:
  return worker.Settings(str(tmp_path), 8, '', **limits)


def _fields() -> list[dict[str, Any]]:
  runs = sweeps.expand(small_sweep.get_config())
  return plans.as_json(plans.runner.plan(runs[:2], pathlib.Path('nowhere')))


def test_a_worker_starts_nothing_that_it_could_not_save(
    tmp_path: pathlib.Path,
) -> None:
  fields = _fields()
  out = dict.fromkeys((run['run_id'] for run in fields), worker.OUT_OF_TIME)
  lead_s = dict.fromkeys(out, 200.0)
  for limits in (
      {'ends_at': time.time() - 1},
      {'ends_at': time.time() + 100, 'lead_s': lead_s},
  ):
    assert worker.train(fields, _settings(tmp_path, **limits)) == out
  assert not list(tmp_path.iterdir())


def test_a_worker_stops_at_the_end_of_the_budget(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  started = []

  def train(run: runner.PlannedRun, _: Any, guard: preemption.Guard) -> str:
    started.append(run.spec.run_id)
    guard.call(time.sleep, 30)
    return worker.FINISHED

  monkeypatch.setattr(worker, '_train_one', train)
  fields, now = _fields(), time.time()
  outcomes = worker.train(fields, _settings(tmp_path, ends_at=now + 0.5))
  assert time.time() - now < 20
  assert [*outcomes.values()] == [worker.OUT_OF_TIME] * 2
  assert started == [fields[0]['run_id']]


class _Engine:
  """Workers that take no time; measures what it is told."""

  def __init__(self, hours: dict[str, float | str]) -> None:
    self._hours = hours  # model -> of a run, or what is wrong with it
    self.measured: list[list[str]] = []
    self.trained: list[str] = []

  def num_cores(self) -> int:
    return 1

  def describe(self) -> str:
    return 'an engine'

  def launch(self, plan: plans.Plan) -> plans.Outcome:
    models = [run.spec.config['model']['name'] for run in plan.runs]
    assert plan.bundles == [[run] for run in plan.runs]
    if not plan.limits.get('measure'):
      self.trained += models
      return plans.Outcome({plan.runs[-1].spec.run_id: worker.OUT_OF_TIME})
    self.measured.append(models)
    said = {}
    for run, model in zip(plan.runs, models):
      answer = self._hours[model]
      if not isinstance(answer, str):
        steps = run.spec.config['training']['num_outer_steps']
        seconds = (60.0, 3600 * answer / steps, 0.0)
        names = ('startup_s', 'step_s', 'evaluation_s')
        answer = json.dumps(dict(zip(names, seconds)))
      said[run.spec.run_id] = answer
    return plans.Outcome(said)


_LINES = """
fig3b:smoke --only=task_support=random --only=model=maml --values=A2.maml.*
fig3b:smoke --only=task_support=random --only=model=anil --values=A2.anil.*
fig3b:smoke --only=task_support=random --values=A6.*
"""


@pytest.fixture(name='make')
def fixture_make(tmp_path: pathlib.Path) -> Iterator[Any]:

  def make(engine: _Engine) -> Any:
    return campaign._Campaign(_read(tmp_path, _LINES), engine)

  with flagsaver.flagsaver(results=str(tmp_path / 'results'), budget_h=2.0):
    yield make


def test_programs_are_measured_until_the_budget_is_full(make: Any) -> None:
  hours: dict[str, float | str] = dict.fromkeys(
      ('maml', 'anil', 'linear_hypernetwork', 'nonlinear_hypernetwork'), 0.5
  )
  engine = _Engine(hours | {'linear_hypernetwork': 3.0})
  one = make(engine)
  assert not one.measure().left
  # One, then two more; the third line's other run would come too late.
  assert engine.measured == [['maml'], ['anil', 'linear_hypernetwork']]
  table = one.describe()
  assert 'with 2 hours: 12 of 222 published values, on an engine' in table
  first, second, third = table.splitlines()[2:]
  assert re.match(r' *0\.52 +0\.52 +fits +6 +A2\.maml', first)
  assert re.match(r' *0\.52 +1\.03 +fits +6 +A2\.anil', second)
  # One of its runs was not measured.
  assert re.match(r' +starts +28 +A6\.\*', third)
  one.train()
  # In the order of the list, and once though two lines have them.
  assert engine.trained == ['maml', 'anil', 'linear_hypernetwork']


def test_what_cannot_be_measured_is_left_out_and_told(
    make: Any, capsys: pytest.CaptureFixture[str]
) -> None:
  hours: dict[str, float | str] = {
      'maml': 'failed: out of memory',
      'anil': 0.1,
      'linear_hypernetwork': 0.1,
      'nonlinear_hypernetwork': 0.1,
  }
  engine = _Engine(hours)
  one = make(engine)
  one.measure()
  assert '6 of 222' in one.describe()
  one.train()
  assert 'maml' not in engine.trained and len(engine.trained) == 3
  assert one.report() == 1
  told = capsys.readouterr()
  assert '4 of 4 runs are left' in told.out
  assert re.fullmatch(
      r'error: random-maml-\w+: failed: out of memory\n', told.err
  )


def test_a_failed_bundling_is_one_more_failure(
    make: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
  one = make(_Engine({}))
  one._failures['a run'] = 'failed: out of memory'
  monkeypatch.setattr(run_folder.RunFolder, 'finished', True)
  monkeypatch.setattr(campaign.sys, 'executable', 'false')
  with flagsaver.flagsaver(bundle='full'):
    assert one.report() == 1
  assert re.fullmatch(
      r'error: a run: failed: out of memory\n'
      r'error: bundling \S+/results/fig3b/smoke: exit code 1\n',
      capsys.readouterr().err,
  )
