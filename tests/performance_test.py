"""The performance page: rows, tables, markers. Nothing is timed here."""

import pytest

from modular_hyperteacher import performance
from modular_hyperteacher import provenance
from tests import benchmark_test

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
}


def test_cases_have_names_of_their_own():
  names = [case.name for case in performance.cases()]
  assert len(set(names)) == len(names)
  guarded = {case.name for case in performance.guarded_cases()}
  assert guarded <= set(names)


def test_times_are_given_for_the_published_number_of_tasks():
  rows = {'steps goals maml': _ROW}
  table = performance.tables(rows)['steps']
  (line,) = table[table['tasks timed'] == '16'].to_dict('records')
  assert (line['world'], line['model']) == ('goals', 'maml')
  assert line['processor s / 128 tasks'] == '4'
  assert line['MU'] == '16'
  assert line['share of matmul rate'] == '1.00'
  assert line['seeds x steps / processor s'] == '0.75'
  assert line['peak memory, MiB'] == '1024'
  assert (table['tasks timed'] == 'not measured').sum() == len(table) - 1


def test_tables_go_between_their_markers_again_and_again():
  frames = performance.tables({})
  page = ''.join(
      f'Before.\n<!-- table: {name} -->\nold\n<!-- end -->\n' for name in frames
  )
  filled = performance.fill(page, frames)
  assert 'old' not in filled and filled.count('Before.') == len(frames)
  assert '| hyperteacher | maml | not measured |' in filled
  assert performance.fill(filled, frames) == filled
  with pytest.raises(ValueError, match="no marker for the table 'steps'"):
    performance.fill('', frames)


def _guard(monkeypatch, cpu_mu, processor):
  """Runs the guard on a step that took 10 MU when its figure was committed."""
  case = performance.guarded_cases()[0]
  committed = {
      'cpu_mu': 10.0,
      'num_tasks': 8,
      'provenance': {'processor': processor},
  }
  monkeypatch.setattr(performance, 'known', lambda: {case.name: committed})
  monkeypatch.setattr(
      performance, 'measure', lambda *args, **kwargs: {'cpu_mu': cpu_mu}
  )
  benchmark_test.test_steps_are_not_much_slower_than_they_were(case)


def test_the_guard_fails_where_a_step_takes_a_third_longer(monkeypatch):
  here = provenance.describe()['processor']
  _guard(monkeypatch, 12.9, here)
  with pytest.raises(AssertionError, match='takes 1.33 times as long'):
    _guard(monkeypatch, 13.3, here)


def test_the_guard_skips_on_other_processors(monkeypatch):
  with pytest.raises(pytest.skip.Exception, match='nothing to compare'):
    _guard(monkeypatch, 99.0, 'another processor')
