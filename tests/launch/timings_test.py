"""Timings of runs: arithmetic and cache."""

import pathlib
from typing import Any

import pytest

from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.launch import timings
from modular_hyperteacher.runs import preemption
from modular_hyperteacher.runs import runner
from tests.helpers import small_sweep


def test_a_run_takes_its_steps_evaluations_and_a_start() -> None:
  timing = timings.Timing(startup_s=7.0, step_s=0.1, evaluation_s=2.0)
  config = {'training': {'num_outer_steps': 100, 'evaluate_every': 30}}
  # At 30, 60, 90 and at the last step.
  assert timing.remaining_s(config, 0) == pytest.approx(7 + 10 + 4 * 2)
  assert timing.remaining_s(config, 65) == pytest.approx(7 + 3.5 + 2 * 2)
  config['training'] |= {'num_outer_steps': 250, 'evaluate_every': 100}
  assert timing.remaining_s(config, 150) == pytest.approx(7 + 10 + 2 * 2)


def test_a_program_is_measured_once_per_device(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  runs = sweeps.expand(small_sweep.get_config())
  planned = runner.plan(runs, tmp_path)
  measured = []

  def measure(*_: Any) -> timings.Timing:
    measured.append(0)
    return timings.Timing(len(measured), 0.1, 0.2)

  monkeypatch.setattr(timings, '_measure', measure)
  cache = tmp_path / 'timings'

  def look_up(i: int) -> float:
    with preemption.Guard() as guard:
      return timings.measure(planned[i], guard, cache).startup_s

  assert [look_up(0), look_up(0)] == [1, 1]
  assert look_up(1) == 1  # The same program, with another seed.
  (path,) = cache.iterdir()
  path.write_text('{"timing"')  # By a disk that was full.
  assert [look_up(0), look_up(0)] == [2, 2]
  # Another share of a GPU is another device.
  monkeypatch.setenv('XLA_PYTHON_CLIENT_MEM_FRACTION', '0.450')
  assert [look_up(0), look_up(0)] == [3, 3]
  runs[0].config['task']['num_support'] += 1
  assert look_up(0) == 4


@pytest.mark.launch
def test_measuring_writes_nothing_but_the_cache(tmp_path: pathlib.Path) -> None:
  runs = sweeps.expand(small_sweep.get_config())[:1]
  (planned,) = runner.plan(runs, tmp_path)
  with preemption.Guard() as guard:
    timing = timings.measure(planned, guard, tmp_path / 'timings')
  assert all(seconds > 0 for seconds in timing)
  assert [path.name for path in tmp_path.iterdir()] == ['timings']
