"""The performance page: rows, tables, markers. Nothing is timed here."""

import pytest

from modular_hyperteacher import performance

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
