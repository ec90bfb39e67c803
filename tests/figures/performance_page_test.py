"""The performance pages: rows, tables, markers. Nothing is timed here."""

import functools
import pathlib
import types
from typing import Any

import jax
import pytest

from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.figures import performance_page
from modular_hyperteacher.runs import provenance
from tests.profiling import benchmark_test

_ROW = {
    'num_tasks': 16,
    'step_cpu_seconds': 0.5,
    'unit_cpu_seconds': 0.25,
    'cpu_mu': 2.0,
    # As many operations as a matrix product does in the time of the step.
    'least_flops': 2 * 2 * 3072**3,
    'peak_bytes': 2**30,
    'num_seeds': 3,
    'task_chunk_size': 4,
    'load_average': 12.3,
    'matmul_share': 0.46,
    'provenance': {'device_kind': 'NVIDIA H100 80GB HBM3'},
}


def test_cases_have_names_of_their_own() -> None:
  names = [case.name for case in performance_page.cases()]
  assert len(set(names)) == len(names)
  assert performance_page.known().keys() <= set(names)
  assert len(benchmark_test.GUARDED) == len(benchmark_test._GUARDED)


def test_times_are_given_for_the_published_number_of_tasks() -> None:
  rows = {'steps goals maml': _ROW}
  table = performance_page.make_tables(rows)['steps']
  (line,) = table[table['tasks timed'] == '16'].to_dict('records')
  assert (line['world'], line['model']) == ('goals', 'maml')
  assert line['CPU s / 128 tasks'] == '4'
  assert line['MU'] == '16'
  assert line['FLOP utilisation'] == '1.00'
  assert line['seed steps / CPU s'] == '0.75'
  assert line['peak memory, MiB'] == '1024'
  assert (table['tasks timed'] == 'not measured').sum() == len(table) - 1


def test_on_a_gpu_wall_times_are_given_as_they_are() -> None:
  name = 'gpu theory modular_student 3 seeds, 32 at once'
  row = _ROW | {'step_seconds': 0.03, 'least_flops': 6e10, 'num_tasks': 64}
  table = performance_page.make_tables({name: row})['gpu']
  (line,) = table[table['tasks timed'] == '64'].to_dict('records')
  assert (line['seeds'], line['ms / step']) == ('3', '30')
  assert line['ms / step and seed'] == '10'
  assert line['TFLOP/s'] == '2'
  assert (line['GPU'], line['of the product']) == ('H100', '46%')


def test_cases_name_fields_of_their_configs() -> None:
  for case in performance_page.cases():
    path, _, preset = case.config.partition(':')
    name = pathlib.Path(path).stem
    config: Any = plugins.config_of(name).get_config(preset)
    assert plugins.config_of(name).path == path
    assert case.model in {model.name for model in config.models.values()}
    for field in case.fields.split():
      field, _, value = field.partition('=')
      *blocks, last = field.split('.')
      block: Any = functools.reduce(getattr, blocks, config)
      assert last in block and int(value) > 0, field


@pytest.mark.parametrize('backend', ['cpu', 'gpu'])
def test_only_what_the_machine_has_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, backend: str
) -> None:
  measured = []

  def measure(case: performance_page.Case, *args: Any) -> dict[str, Any]:
    del args
    measured.append(case.table == 'gpu')
    return _ROW | {'step_seconds': 0.03}

  for name in ('_PAGE', '_LOG'):
    page = tmp_path / name
    page.write_text(getattr(performance_page, name).read_text())
    monkeypatch.setattr(performance_page, name, page)
  monkeypatch.setattr(performance_page, '_JSON', tmp_path / 'rows.json')
  monkeypatch.setattr(performance_page, 'measure', measure)
  monkeypatch.setattr(jax, 'default_backend', lambda: backend)
  monkeypatch.setenv('XLA_PYTHON_CLIENT_PREALLOCATE', 'true')
  given = {'only': '', 'tasks': 128, 'repeats': 5}
  given |= {'again': False, 'draw_only': False}
  monkeypatch.setattr(
      performance_page.flags, 'FLAGS', types.SimpleNamespace(**given)
  )
  performance_page.main()
  on_gpu = [case.table == 'gpu' for case in performance_page.cases()]
  assert len(measured) == on_gpu.count(backend == 'gpu')
  assert set(measured) == {backend == 'gpu'}


def test_the_pages_are_those_that_are_written_and_short() -> None:
  """If this fails: python figures/performance_page.py --draw_only."""
  pages = performance_page.pages(performance_page.known())
  assert len(pages) == 2
  for path, text in pages.items():
    assert path.read_text() == text, path
  assert len(pages[performance_page._PAGE].splitlines()) <= 150


def test_tables_go_between_their_markers_again_and_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
  names = performance_page.make_tables({})
  for attribute in ('_PAGE', '_LOG'):
    page = tmp_path / attribute
    page.write_text(
        ''.join(
            f'Before.\n<!-- table: {name} -->\nold\n<!-- end -->\n'
            for name in names
            if (attribute == '_PAGE') == (name in performance_page._ON_PAGE)
        )
    )
    monkeypatch.setattr(performance_page, attribute, page)
  for _ in range(2):
    pages = performance_page.pages({})
    filled = ''.join(pages.values())
    assert 'old' not in filled and filled.count('Before.') == len(names)
    assert '| hyperteacher | maml | not measured |' in filled
    for path, text in pages.items():

      path.write_text(text)
  performance_page._LOG.write_text('')
  with pytest.raises(ValueError, match='no markers for the table'):
    performance_page.pages({})


def _guard(
    monkeypatch: pytest.MonkeyPatch, cpu_mu: float, processor: str
) -> None:
  """Runs the guard on a step that took 10 MU when its figure was committed."""
  case = benchmark_test.GUARDED[0]
  committed = {
      'cpu_mu': 10.0,
      'num_tasks': 8,
      'provenance': {'processor': processor},
  }
  monkeypatch.setattr(performance_page, 'known', lambda: {case.name: committed})
  monkeypatch.setattr(
      performance_page, 'measure', lambda *args, **kwargs: {'cpu_mu': cpu_mu}
  )
  benchmark_test.test_steps_are_not_much_slower_than_they_were(case)


def test_the_guard_fails_where_a_step_takes_a_third_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  here = provenance.describe()['processor']
  _guard(monkeypatch, 12.9, here)
  with pytest.raises(AssertionError, match='takes 1.33 times as long'):
    _guard(monkeypatch, 13.3, here)


def test_the_guard_skips_on_other_processors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  with pytest.raises(pytest.skip.Exception, match='nothing to compare'):
    _guard(monkeypatch, 99.0, 'another processor')
