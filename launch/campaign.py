"""Reproduces published values within a time budget, in the order of a list.

  python -m launch.campaign --budget_h=4 --dry_run   # what would be trained
  python -m launch.campaign --budget_h=4 --workers=2

First it measures how long the first runs of the list take on this device, which
takes about a minute per program; RESULTS/timings keeps the measurements. Then
it prints which runs fit into the budget, and trains in the order of the list.
At the end of the budget, or after Ctrl-C or SIGTERM, all runs are saved; the
same command resumes them. (Under SLURM, after Ctrl-C or SIGTERM, jobs go on
until the end of the budget.) A run is only started if there is time to take and
save a step. If a machine is lost, so are the steps since the last checkpoint,
usually a minute of training.

The default list, `published`, holds all values of Schug et al. (2024) and Lake
(2019) that this package can reproduce. To write your own, see
launch/campaign_list.py. As the list says what is trained, --config, --only and
--runs_per_task are refused.

--on=ray and --on=slurm train on a cluster and accept the flags of
launch.ray_cluster and launch.slurm (see `--on=ray --help`). For the estimates,
set --workers to the number of runs that the cluster trains at once. Time in
SLURM's queue counts as well: the command waits for jobs that start after the
end of the budget, but they train nothing. Runs are sent in groups: all runs of
a group divide a processor's cores in the same way, and the next group starts
when the last one has ended.
"""

import argparse
import importlib
import itertools
import json
import math
import shlex
import subprocess
import sys
import time
from typing import Any

from modular_hyperteacher import files
from modular_hyperteacher.cli import interrupts

if __name__ == '__main__':
  interrupts.exit_at_once()

from absl import flags
import pandas as pd

from modular_hyperteacher import errors
from modular_hyperteacher.cli import command_line
from modular_hyperteacher.devices import host_devices
from modular_hyperteacher.experiments import components
from modular_hyperteacher.experiments import published
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.launch import campaign_list
from modular_hyperteacher.launch import cost
from modular_hyperteacher.launch import local
from modular_hyperteacher.launch import plan as plans
from modular_hyperteacher.launch import schedule
from modular_hyperteacher.launch import timings
from modular_hyperteacher.launch import worker
from modular_hyperteacher.runs import runner

_ENGINES = {
    'local': 'modular_hyperteacher.launch.local',
    'ray': 'modular_hyperteacher.launch.ray_cluster',
    'slurm': 'modular_hyperteacher.launch.slurm',
}
_BUNDLE_MODULE = 'modular_hyperteacher.figures.bundle'
# Measuring a program takes about as long; less idle time is not worth it.
_WORTH_S = 60.0


def define_flags() -> None:
  """Defines the flags when the command runs, not at import."""
  flags.DEFINE_float(
      'budget_h',
      None,
      'Time budget in hours, at the end of which all runs are saved.',
  )
  flags.DEFINE_string(
      'list',
      'published',
      'What to train: published, gpu (for a GPU that is lent for minutes), or a'
      ' file of your own; see launch/campaign_list.py.',
  )
  flags.DEFINE_enum('on', 'local', list(_ENGINES), 'Where to train.')
  flags.DEFINE_string(
      'bundle', None, 'Folder to bundle finished runs into, for figures.'
  )


class _Campaign:
  """The runs of a list, and how long they take."""

  def __init__(self, lines: list[campaign_list.Line], engine: Any) -> None:
    hours: Any = flags.FLAGS.budget_h  # Not None: see `_check`.
    self._ends_at = time.time() + 3600 * hours
    self._lines = lines
    self._engine = engine
    self._num_workers = flags.FLAGS.workers or 1
    if engine is local:
      self._num_workers = local.num_workers()
    self._root = command_line.read_root()
    specs = [spec for line in lines for spec in line.runs]
    for spec in specs:
      components.allow(spec.config)
    # By the hash of the config: lines can share a run.
    self._runs: dict[str, runner.PlannedRun] = {}
    for spec, run in zip(specs, runner.plan(specs, self._root)):
      self._runs.setdefault(sweeps.hash_of(spec.run_id), run)
    self._timings: dict[str, timings.Timing] = {}  # by program
    self._failed_programs: set[str] = set()
    self._failures: dict[str, str] = {}  # run id or bundling -> why

  def _unfinished(
      self, line: campaign_list.Line | None = None
  ) -> list[runner.PlannedRun]:
    """Returns the unfinished runs of a line, or of all lines."""
    runs = self._runs.values()
    if line is not None:
      runs = [self._runs[sweeps.hash_of(spec.run_id)] for spec in line.runs]
    return [run for run in runs if not run.folder.finished]

  def _need(self, run: runner.PlannedRun) -> schedule.Need | None:
    timing = self._timings.get(timings.program(run.spec.config))
    return timing and schedule.Need(
        timing.startup_s + timing.step_s,
        timing.remaining_s(run.spec.config, cost.saved_step(run)),
    )

  def _schedule(self) -> tuple[dict[str, float | None], float]:
    """Returns run id -> end of each measured run; and idle seconds."""
    runs = [
        run
        for run in self._unfinished()
        if timings.program(run.spec.config) not in self._failed_programs
    ]
    ends, idle_s = schedule.schedule(
        map(self._need, runs), self._num_workers, self._ends_at - time.time()
    )
    return dict(zip((run.spec.run_id for run in runs), ends)), idle_s

  def measure(self) -> plans.Outcome:
    """Measures programs, in the order of the list, until the budget is full."""
    # Twice as many each time, because starting workers takes seconds.
    for number in (self._num_workers * 2**i for i in itertools.count()):
      known = self._timings.keys() | self._failed_programs
      missing: dict[str, runner.PlannedRun] = {}
      for run in self._unfinished():
        program = timings.program(run.spec.config)
        if program not in known and len(missing) < number:
          missing.setdefault(program, run)
      if not missing or (known and self._schedule()[1] < _WORTH_S):
        break
      print(f'measuring {len(missing)} programs', flush=True)
      outcome = self._launch([*missing.values()], {'measure': True})
      if outcome.left:
        return outcome
      for program, run in missing.items():
        result = outcome.unfinished.get(run.spec.run_id, worker.OUT_OF_TIME)
        if result.startswith('{'):
          self._timings[program] = timings.Timing(**json.loads(result))
        elif result != worker.OUT_OF_TIME:
          self._failed_programs.add(program)
          self._failures[run.spec.run_id] = result
      if time.time() > self._ends_at:
        break
    return plans.Outcome({})

  def train(self) -> plans.Outcome:
    """Trains the runs that fit into the budget."""
    ends, _ = self._schedule()
    lead_s = {
        run.spec.run_id: need.lead_s
        for run in self._unfinished()
        if ends.get(run.spec.run_id) is not None and (need := self._need(run))
    }
    chosen = [run for run in self._unfinished() if run.spec.run_id in lead_s]
    outcome = self._launch(chosen, {'lead_s': lead_s})
    for run_id, why in outcome.unfinished.items():
      if why != worker.OUT_OF_TIME:
        self._failures[run_id] = why
    return outcome

  def _launch(
      self, runs: list[runner.PlannedRun], limits: dict[str, Any]
  ) -> plans.Outcome:
    """Sends runs to workers, in order, and waits for them."""
    cores = self._engine.num_cores()
    unfinished = {}
    for _, group in itertools.groupby(
        runs, lambda run: host_devices.suit([run.spec.config], cores)
    ):
      part = list(group)
      sweep = command_line.Sweep([run.spec for run in part], [], self._root)
      bundles = [[run] for run in part]
      limits = {'ends_at': self._ends_at, **limits}
      outcome = self._engine.launch(plans.Plan(sweep, part, bundles, limits))
      if outcome.left:
        return outcome
      unfinished |= outcome.unfinished
    return plans.Outcome(unfinished)

  def describe(self) -> str:
    """Returns a table of what the budget suffices for."""
    ends, _ = self._schedule()
    budget_s = self._ends_at - time.time()
    rows, bought = [], set()
    for line in self._lines:
      runs = self._unfinished(line)
      when = [ends.get(run.spec.run_id) or math.inf for run in runs]
      needs = [self._need(run) for run in runs]
      last_s = max(when, default=0.0)
      bought.update(line.values if last_s <= budget_s else ())
      rows.append({
          'hours': sum(n.total_s / 3600 if n else math.nan for n in needs),
          'cumulative': last_s / 3600 if last_s < math.inf else math.nan,
          'state': (
              'finished'
              if not runs
              else 'fits'
              if last_s <= budget_s
              else 'starts'
              if min(when) < math.inf
              else ''
          ),
          'values': len(line.values),
          'published values': line.patterns,
          'line': line.text,
      })
    table = pd.DataFrame(rows)
    return (
        f'with {flags.FLAGS.budget_h:g} hours: {len(bought)} of'
        f' {len(published.ids())} published values, on'
        f' {self._engine.describe()}\n'
        + table.to_string(index=False, na_rep='', float_format='{:.2f}'.format)
    )

  def report(self) -> int:
    """Prints what is finished and bundles it; returns the exit code."""
    reached = {
        value
        for line in self._lines
        if not self._unfinished(line)
        for value in line.values
    }
    print(
        f'{len(self._unfinished())} of {len(self._runs)} runs are left;'
        f' {len(reached)} of {len(published.ids())} published values have all'
        ' their runs'
    )
    done = [run for run in self._runs.values() if run.folder.finished]
    for folder in dict.fromkeys(run.folder.path.parent for run in done):
      command = [
          *('-m', _BUNDLE_MODULE, f'--results={self._root}'),
          *(f'--experiment={folder.parent.name}', f'--preset={folder.name}'),
      ]
      if flags.FLAGS.bundle:
        command = [sys.executable, *command, f'--output={flags.FLAGS.bundle}']
        code = subprocess.run(command, check=False).returncode
        if code:
          self._failures[f'bundling {folder}'] = f'exit code {code}'
      else:
        print(f'to bundle: python {shlex.join(command)}')
    return self.print_failures()

  def print_failures(self) -> int:
    """Prints what failed; returns the exit code."""
    for run_id, why in self._failures.items():
      print(f'error: {run_id}: {why}', file=sys.stderr)
    return 1 if self._failures else 0


def _check(argv: list[str]) -> None:
  """Raises UserError for arguments that a campaign does not accept."""
  command_line.check_words(argv)
  for name in ('config', 'only', 'runs_per_task'):
    if flags.FLAGS[name].present:
      raise errors.UserError(
          f'--{name} cannot be used in a campaign; edit the file of --list.'
      )
  hours = flags.FLAGS.budget_h
  is_finite = hours is not None and 0 < hours < math.inf
  rule = 'it must be a positive number of hours'
  errors.require(is_finite, '--budget_h', hours, rule)
  if 'wait' in flags.FLAGS and not flags.FLAGS.wait:
    raise errors.UserError('--nowait cannot be used in a campaign.')
  if flags.FLAGS.bundle and not flags.FLAGS.dry_run:
    folder = files.locate(flags.FLAGS.bundle, '--bundle')
    files.create_folder(folder, '--bundle')


def _run(engine: Any) -> int:
  lines = campaign_list.read(campaign_list.find(flags.FLAGS.list))
  campaign = _Campaign(lines, engine)
  outcome = campaign.measure()
  if not outcome.left:
    print(campaign.describe(), flush=True)
    if flags.FLAGS.dry_run:
      return campaign.print_failures()
    outcome = campaign.train()
  if outcome.left:
    print(outcome.left, file=sys.stderr)
    return outcome.exit_code
  return campaign.report()


def _import_engine() -> Any:
  """Imports the launcher that --on names."""
  parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
  parser.add_argument('--on', '-on')
  known, _ = parser.parse_known_args()
  return importlib.import_module(_ENGINES.get(known.on, _ENGINES['local']))


if __name__ == '__main__':
  _engine = _import_engine()
  define_flags()
  local.define_flags()  # --workers, for estimates
  if _engine is not local:
    _engine.define_flags()
  plans.run_command(lambda: _run(_engine), _check)
