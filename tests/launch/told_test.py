"""What a launcher tells: workers that died, and fields that are wrong."""

import pathlib

import pytest

from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.launch import attempts
from modular_hyperteacher.runs import runner
from tests.helpers import commands
from tests.helpers import launch_flags
from tests.helpers import small_sweep
from tests.helpers import training


def test_deaths_of_workers_are_told(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
  """One line for each run that the worker had; the last says it gives up."""
  launch_flags.parse()
  runs = sweeps.expand(small_sweep.get_config('smoke'))[:2]
  ids = [run.run_id for run in runs]
  waiting = [attempts.attempt(runner.plan(runs, tmp_path))]
  told: dict[str, list[str]] = {run_id: [] for run_id in ids}
  unfinished: dict[str, str] = {}
  while waiting:
    tried, *waiting = waiting
    waiting += attempts.take_back(tried, 'killed by SIGKILL', unfinished)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(tried.bundle)
    for run, line in zip(tried.bundle, lines, strict=True):
      assert run.spec.run_id in line and 'SIGKILL' in line
      told[run.spec.run_id].append(line)
  assert sorted(unfinished) == sorted(ids)
  for lines in told.values():
    assert ['given up' in line for line in lines] == [
        *[False] * (len(lines) - 1),
        True,
    ]


@pytest.mark.parametrize(
    'dry_run', [[], pytest.param(['--dry_run'], marks=pytest.mark.slow)]
)
def test_wrong_fields_are_refused_once(
    tmp_path: pathlib.Path, dry_run: list[str]
) -> None:
  """Before any worker starts, and before anything is priced."""
  process = commands.start(
      '--config=tests/helpers/small_sweep.py',
      f'--results={tmp_path}/results',
      '--config.training.seeds=(1,1)',
      *dry_run,
      module='launch.local',
  )
  output, _ = process.communicate(timeout=100)
  training.assert_refused(process.returncode, output, 'training.seeds')
  assert len(output.splitlines()) == 1
  assert not list(tmp_path.iterdir())
