"""What the benchmark prints; steps take no longer than they did.

Steps are timed with -m benchmark, in minutes, relative to a fixed matrix
product. The figures compared with are those of docs/performance.json. After a
change that is meant to cost time, measure them again with
`python figures/performance_page.py` and
`--only=steps --tasks=16 --again`.
"""

import json
import pathlib

import pytest

from modular_hyperteacher.configs import fig3b
from modular_hyperteacher.devices import host_devices
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures import performance_page
from modular_hyperteacher.runs import provenance
from tests.helpers import commands
from tests.helpers import forks

_MOST = 1.3
_BENCHMARK = ('-m', 'modular_hyperteacher.benchmark')
_GUARDED = (
    'steps hyperteacher linear_hypernetwork',
    'steps hyperteacher maml',
    'steps preferences linear_hypernetwork',
    'steps goals linear_hypernetwork',
    'episodes scan meta_seq2seq',
)
GUARDED = [c for c in performance_page.cases() if c.name in _GUARDED]


@pytest.mark.benchmark
@pytest.mark.parametrize('case', GUARDED, ids=lambda case: case.name)
def test_steps_are_not_much_slower_than_they_were(
    case: performance_page.Case,
) -> None:
  committed = performance_page.known().get(case.name)
  here = provenance.describe()['processor']
  if committed is None or committed['provenance']['processor'] != here:
    pytest.skip(f'{case.name}: nothing to compare with on {here}')
  measured = performance_page.measure(case, committed['num_tasks'], repeats=5)
  # Processor times: waiting for other processes does not count.
  ratio = measured['cpu_mu'] / committed['cpu_mu']
  assert ratio <= _MOST, f'{case.name} takes {ratio:.2f} times as long'


@pytest.mark.slow
def test_the_command_measures_what_it_says(tmp_path: pathlib.Path) -> None:
  path = tmp_path / 'rows.json'
  run = commands.python(
      *_BENCHMARK,
      *('--config=configs/fig3b.py:smoke', '--only=model=linear_hypernetwork'),
      *('--repeats=1', '--steps=2', f'--json={path}'),
  )
  assert run.returncode == 0, run.stderr
  (row,) = json.loads(path.read_text())
  assert (row['task'], row['model']) == ('hyperteacher', 'linear_hypernetwork')
  for field in ('step_seconds', 'mu', 'peak_bytes', 'operations'):
    assert row[field] > 0, field
  assert 0 < row['matmul_share'] < 1
  assert row['mu'] == pytest.approx(row['step_seconds'] / row['unit_seconds'])
  # As training does: a device per core, as far as they divide the batches.
  config = fig3b.get_config('smoke')
  assert row['num_devices'] == host_devices.suit(
      [run.config for run in sweeps.expand(config)], host_devices.num_cores()
  )
  assert 'linear_hypernetwork' in run.stdout


@pytest.mark.slow
def test_as_many_devices_as_asked_for(tmp_path: pathlib.Path) -> None:
  path = tmp_path / 'rows.json'
  run = commands.python(
      *_BENCHMARK,
      *('--config=configs/fig3b.py:smoke', '--only=model=linear_hypernetwork'),
      *('--repeats=1', '--host_devices=4', f'--json={path}'),
  )
  assert run.returncode == 0, run.stderr
  (row,) = json.loads(path.read_text())
  assert row['num_devices'] == row['provenance']['num_devices'] == 4


_REFUSED = {
    '--config.task.max_active=9': 'task.max_active is 9',
    'stray': "unknown argument 'stray'",
    '--json=nowhere/rows.json': "--json is 'nowhere/rows.json'; cannot",
    '--json=/tmp': "--json is '/tmp'; it must be a file, or not exist",
    '--json=/dev/null': "--json is '/dev/null'; it must be a file",
    '--seeds=99999999999': 'flag --seeds=99999999999: 99999999999 is not',
}


def test_wrong_input_is_one_line(tmp_path: pathlib.Path) -> None:
  forks.assert_refused(
      tmp_path,
      [['--config=configs/fig3b.py:smoke', argument] for argument in _REFUSED],
      list(_REFUSED.values()),
      'modular_hyperteacher.benchmark',
  )


# In a process of its own, whose flags no other test has defined.
_TIMED_TOGETHER = """
from absl import flags
from modular_hyperteacher.configs import fig3b
from modular_hyperteacher import benchmark
from modular_hyperteacher.experiments import sweeps

seconds = iter([100.0, 6.0, 9.0, 60.0])  # The first call is not timed.
now = [0.0]

def train(compiled, state):
  now[0] += next(seconds)
  return state

benchmark.define_flags()
flags.FLAGS(['', '--repeats=3', '--steps=3'])
benchmark.time.perf_counter = lambda: now[0]
benchmark.unit_times = lambda: (0.5, 0.5)
benchmark.train = train
row = benchmark.measure(sweeps.expand(fig3b.get_config('smoke'))[0].config)
print(row['step_seconds'], row['mu'])
"""


@pytest.mark.slow
def test_steps_timed_together_are_told_one_by_one() -> None:
  run = commands.python('-c', _TIMED_TOGETHER)
  assert run.stdout.split() == ['3.0', '6.0'], run.stderr
