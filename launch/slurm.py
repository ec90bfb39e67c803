"""A sweep over SLURM, as arrays of jobs, through submitit.

  python -m launch.slurm --config=configs/fig3b.py:paper --partition=gpu \\
      --gpus=1 --time_min=480 --results=/shared/results

A job that is preempted, or that comes near its time limit, saves first and is
queued again; it goes on from its checkpoint. Stopping this command leaves the
jobs alone. The same command later queues what is not finished once more, and
watches it: whichever job comes first trains a run, and the others leave it.
"""

from collections.abc import Iterable
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from typing import Any

from absl import flags

from launch import attempts
from launch import plan as plans
from launch import progress as progresses
from launch import worker
from modular_hyperteacher import errors
from modular_hyperteacher.runs import locks
from modular_hyperteacher.runs import preemption
from modular_hyperteacher.runs import runner

submitit = plans.need('submitit', 'slurm')

_PARTITION = flags.DEFINE_string('partition', None, 'Where to queue.')
_TIME_MIN = flags.DEFINE_integer(
    'time_min', 240, "A job's time limit in minutes.", lower_bound=1
)
_SAVE_BEFORE_S = flags.DEFINE_integer(
    'save_before_s',
    120,
    'How long before its time limit a job saves and is queued again.',
    lower_bound=1,
)
_REQUEUES = flags.DEFINE_integer(
    'requeues', 100, 'How often a job may reach its time limit.', lower_bound=0
)
_CPUS = flags.DEFINE_integer('cpus', 2, 'Cores per job.', lower_bound=1)
_GPUS = flags.DEFINE_integer('gpus', 0, 'GPUs per job.', lower_bound=0)
_PARALLEL = flags.DEFINE_integer(
    'parallel', 256, 'How many jobs of an array run at once.', lower_bound=1
)
_SLURM = flags.DEFINE_multi_string(
    'slurm', [], 'More options of sbatch, as --slurm=account=NAME; repeat.'
)
_JOBS = flags.DEFINE_string(
    'jobs', 'slurm_jobs', "Folder for the jobs' logs and pickled arguments."
)
_WAIT = flags.DEFINE_bool('wait', True, 'Wait for the jobs, show progress.')

_POLL_S = 2.0
_LOOK_S = 5.0
_QUEUE_POLL_S = 15.0
# Results on a shared file system (NFS) may be seen a minute later.
_LOST_AFTER_S = 90.0
# SLURM may signal a job this much earlier than it was asked to.
_SIGNAL_SPREAD_S = 60
_ALIVE = 'PENDING,CONFIGURING,RUNNING,SUSPENDED,COMPLETING'
_LEFT = 'the jobs go on by themselves; squeue shows them.'


def _make_executor() -> Any:
  if 60 * _TIME_MIN.value <= _SAVE_BEFORE_S.value + _SIGNAL_SPREAD_S:
    raise errors.UserError(
        f'--time_min is {_TIME_MIN.value}: jobs would be told to save'
        f' {_SAVE_BEFORE_S.value} seconds (--save_before_s) before that limit,'
        f' and up to {_SIGNAL_SPREAD_S} seconds earlier, so they would never'
        ' get on. Allow more minutes, or save later.'
    )
  try:
    executor = submitit.AutoExecutor(
        pathlib.Path(_JOBS.value) / '%A',
        cluster='slurm',
        slurm_max_num_timeout=_REQUEUES.value,
    )
  except RuntimeError as error:
    raise errors.UserError(
        f'SLURM is not to be found here ({error}); start this command where'
        ' sbatch and srun are, on a login node.'
    ) from error
  parameters = {
      'name': 'modular_hyperteacher',
      'timeout_min': _TIME_MIN.value,
      'cpus_per_task': _CPUS.value,
      'slurm_array_parallelism': _PARALLEL.value,
      'slurm_signal_delay_s': _SAVE_BEFORE_S.value,
      'slurm_additional_parameters': (
          {'requeue': True} | dict(map(_option, _SLURM.value))
      ),
  }
  if _PARTITION.value:
    parameters['slurm_partition'] = _PARTITION.value
  if _GPUS.value:
    parameters['gpus_per_node'] = _GPUS.value
  executor.update_parameters(**parameters)
  return executor


def _option(text: str) -> tuple[str, str | bool]:
  """Returns an option of sbatch, NAME=VALUE or NAME, as submitit has it."""
  name, has_value, value = text.partition('=')
  return name, value if has_value else True


def launch(plan: plans.Plan) -> plans.Outcome:
  """Queues all bundles; returns what could not be finished."""
  received: list[int] = []
  for number in preemption.SIGNALS:
    signal.signal(number, lambda signum, frame: received.append(signum))
  jobs = _Jobs(plan)
  if not _WAIT.value:
    return plans.Outcome({}, *jobs.leave())
  with progresses.Progress(plan) as progress:
    while jobs.busy:
      if received:
        return plans.Outcome({}, *jobs.leave())
      time.sleep(_POLL_S)
      progress.update()
      jobs.update()
  return plans.Outcome(jobs.unfinished)


class _Jobs:
  """The sweep's jobs at SLURM, and the runs that other launchers have."""

  def __init__(self, plan: plans.Plan) -> None:
    self._settings = plans.settings(plan, _CPUS.value)
    self._executor = _make_executor()
    self._queue = _Queue()
    self._locks = locks.Locks()
    self._queued: dict[Any, attempts.Attempt] = {}  # by job
    self._held: list[attempts.Attempt] = []
    self._looked = time.monotonic()
    self._accepted = False  # whether SLURM ever took a job
    self._refusal = ''
    self.unfinished: dict[str, str] = {}
    self._left = [attempts.attempt(bundle) for bundle in plan.bundles]
    self._send()

  @property
  def busy(self) -> bool:
    """Whether anything is left to wait for."""
    return bool(self._left or self._queued or self._held)

  def leave(self) -> tuple[str, int]:
    """Returns what to say on leaving the jobs alone, and the exit code."""
    if not self._left:
      return _LEFT, 0
    return f'{len(self._left)} jobs could not be queued; {_LEFT}', 1

  def update(self) -> None:
    """Takes results, and queues again what is worth it; call it often."""
    if time.monotonic() - self._looked < _LOOK_S:
      return
    self._looked = time.monotonic()
    again = []
    lost = self._queue.lost(job.job_id for job in self._queued)
    for job in list(self._queued):
      if job.paths.result_pickle.exists() or job.job_id in lost:
        tried = self._queued.pop(job)
        outcomes = _outcomes(job, tried.bundle)
        again += attempts.take_back(tried, outcomes, self.unfinished)
    self._held += [one for one in again if one.held]
    self._left += [one for one in again if not one.held] + self._let_go()
    self._send()

  def _let_go(self) -> list[attempts.Attempt]:
    """Returns attempts at runs that other launchers no longer have."""
    held, free = [], []
    for one in self._held:
      left = [run for run in one.bundle if not run.folder.finished]
      if any(self._locks.is_free(run.folder) for run in left):
        free.append(attempts.attempt(left, one.failures))
      elif left:
        held.append(one)
    self._held = held
    return free

  def _send(self) -> None:
    """Queues what is left; what SLURM does not take now is left."""
    size = _max_array_size() if self._left else 1
    while self._left:
      part = self._left[:size]
      try:
        jobs = self._executor.submit_array([
            worker.Job(plans.as_json(one.bundle), self._settings)
            for one in part
        ])
      except submitit.core.utils.FailedJobError as error:
        reason = ' '.join(str(error).split())
        if not self._accepted:
          raise errors.UserError(f'SLURM takes no jobs: {reason}') from error
        if reason != self._refusal:
          print(f'warning: SLURM takes no more: {reason}', file=sys.stderr)
        self._refusal = reason
        return
      self._accepted, self._refusal = True, ''
      print(f'queued {len(jobs)} jobs, {jobs[0].job_id} on', flush=True)
      self._queued.update(zip(jobs, part))
      del self._left[:size]


def _outcomes(job: Any, bundle: list[runner.PlannedRun]) -> dict[str, str]:
  """Returns what became of the runs of a job that has ended."""
  if not job.paths.result_pickle.exists():
    # Cancelled, or killed. To queue it again could be against its owner's will.
    error = 'left the queue without a result'
  else:
    try:
      return job.result()
    except Exception as problem:  # pylint: disable=broad-exception-caught
      error = type(problem).__name__
  # Whatever ended it, its log has it in full.
  reason = f'job {job.job_id}: {error}; see {job.paths.stderr}'
  return {run.spec.run_id: reason for run in bundle}


def _max_array_size() -> int:
  """Returns how many jobs an array may have; SLURM's default if in doubt."""
  answer = _ask('scontrol', 'show', 'config') or ''
  found = re.search(r'^MaxArraySize\s*=\s*(\d+)', answer, re.MULTILINE)
  return max(1, int(found.group(1)) if found else 1000)


def _ask(*command: str) -> str | None:
  """Returns what a command of SLURM's says, or None if it fails."""
  try:
    return subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout
  except (OSError, subprocess.CalledProcessError):
    return None


def _queued() -> set[str] | None:
  """Returns the ids of this user's jobs at SLURM; None if it does not answer.

  For jobs of an array, the array's id is among them.
  """
  answer = _ask(
      'squeue',
      '--all',
      '--array',
      '--noheader',
      f'--user={os.getuid()}',
      f'--states={_ALIVE}',
      '--format=%F %F_%K',
  )
  return None if answer is None else set(answer.split())


class _Queue:
  """Tells which jobs left SLURM's queue without a word.

  submitit asks SLURM's accounting what became of a job. Where there is none,
  it would wait for ever for the result of one that was cancelled or killed; and
  where there is, it takes jobs that SLURM queues again after a node's failure
  for lost.
  """

  def __init__(self) -> None:
    self._asked = time.monotonic()
    self._silent = False
    self._missing_since: dict[str, float] = {}

  def lost(self, job_ids: Iterable[str]) -> set[str]:
    """Returns those that SLURM has not had for `_LOST_AFTER_S`."""
    now = time.monotonic()
    if now - self._asked < _QUEUE_POLL_S:
      return set()
    self._asked = now
    queued = _queued()
    if queued is None:
      if not self._silent:
        print('warning: squeue does not answer; waiting.', file=sys.stderr)
      self._silent = True
      return set()
    self._silent = False
    self._missing_since = {
        job_id: self._missing_since.get(job_id, now)
        for job_id in job_ids
        if job_id not in queued
    }
    return {
        job_id
        for job_id, since in self._missing_since.items()
        if now - since >= _LOST_AFTER_S
    }


def num_cores() -> int:
  """Returns the processor cores of a worker."""
  return _CPUS.value


def describe() -> str:
  """Returns where runs are trained."""
  return (
      f'SLURM, {_CPUS.value} cores and {_GPUS.value} GPUs each,'
      f' {_TIME_MIN.value} minutes at a time'
  )


if __name__ == '__main__':
  plans.main(launch, describe)
