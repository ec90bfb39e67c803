"""Trains a sweep under SLURM, as job arrays that submitit submits.

  python -m launch.slurm --config=configs/fig3b.py:paper --partition=gpu \\
      --gpus=1 --time_min=480 --results=/shared/results

A job that is preempted or close to its time limit saves, is queued again, and
resumes from its checkpoint. Stopping this command does not stop the jobs. The
same command later queues unfinished runs once more and watches them. If several
jobs hold the same run, the first to start trains it and the others skip it.
"""

from collections.abc import Iterable
import os
import re
import subprocess
import sys
import time
from typing import Any

from modular_hyperteacher import files
from modular_hyperteacher.cli import interrupts

if __name__ == '__main__':
  interrupts.exit_at_once()

from absl import flags

from modular_hyperteacher import errors
from modular_hyperteacher.launch import attempts
from modular_hyperteacher.launch import plan as plans
from modular_hyperteacher.launch import progress as progresses
from modular_hyperteacher.launch import worker
from modular_hyperteacher.runs import locks
from modular_hyperteacher.runs import preemption
from modular_hyperteacher.runs import runner

submitit = plans.need('submitit', 'slurm')


_POLL_S = 2.0
_LOOK_S = 5.0
_QUEUE_POLL_S = 15.0
# Results on a network file system may become visible a minute later.
_LOST_AFTER_S = 90.0
# SLURM may signal a job this much earlier than requested.
_SIGNAL_SPREAD_S = 60
_ALIVE = 'PENDING,CONFIGURING,RUNNING,SUSPENDED,COMPLETING'
_LEFT = 'the jobs continue without this command; squeue shows them.'


def define_flags() -> None:
  """Defines the flags when the command runs, not at import."""
  flags.DEFINE_string('partition', None, 'Partition of the jobs.')
  flags.DEFINE_integer(
      'time_min', 240, "A job's time limit in minutes.", lower_bound=1
  )
  flags.DEFINE_integer(
      'save_before_s',
      120,
      'A job saves and is requeued this many seconds before its time limit.',
      lower_bound=1,
  )
  flags.DEFINE_integer(
      'requeues',
      100,
      'How many times a job is requeued at its time limit.',
      lower_bound=0,
  )
  flags.DEFINE_integer('cpus', 2, 'Cores per job.', lower_bound=1)
  flags.DEFINE_integer('gpus', 0, 'GPUs per job.', lower_bound=0)
  flags.DEFINE_integer(
      'parallel',
      256,
      'At most this many jobs of an array run at once.',
      lower_bound=1,
  )
  flags.DEFINE_multi_string(
      'slurm', [], 'Option of sbatch, as in --slurm=account=NAME'
  )
  flags.DEFINE_string(
      'jobs', 'slurm_jobs', "Folder for the jobs' logs and pickled arguments."
  )
  flags.DEFINE_bool('wait', True, 'Wait for the jobs and show progress.')


def _make_executor() -> Any:
  if 60 * flags.FLAGS.time_min <= flags.FLAGS.save_before_s + _SIGNAL_SPREAD_S:
    raise errors.UserError(
        f'--time_min is {flags.FLAGS.time_min}, too short for training: jobs'
        f' save {flags.FLAGS.save_before_s} seconds (--save_before_s) before'
        f' that limit, or up to {_SIGNAL_SPREAD_S} seconds earlier. Increase'
        ' --time_min or decrease --save_before_s.'
    )
  folder = files.locate(flags.FLAGS.jobs, '--jobs')
  files.create_folder(folder, '--jobs')
  try:
    executor = submitit.AutoExecutor(
        folder / '%A',
        cluster='slurm',
        slurm_max_num_timeout=flags.FLAGS.requeues,
    )
  except RuntimeError as error:
    raise errors.UserError(
        f'SLURM was not found ({error}); run this command on a login node,'
        ' where sbatch and srun are installed.'
    ) from error
  parameters = {
      'name': 'modular_hyperteacher',
      'timeout_min': flags.FLAGS.time_min,
      'cpus_per_task': flags.FLAGS.cpus,
      'slurm_array_parallelism': flags.FLAGS.parallel,
      'slurm_signal_delay_s': flags.FLAGS.save_before_s,
      'slurm_additional_parameters': (
          {'requeue': True} | dict(map(_option, flags.FLAGS.slurm))
      ),
  }
  if flags.FLAGS.partition:
    parameters['slurm_partition'] = flags.FLAGS.partition
  if flags.FLAGS.gpus:
    parameters['gpus_per_node'] = flags.FLAGS.gpus
  executor.update_parameters(**parameters)
  return executor


def _option(text: str) -> tuple[str, str | bool]:
  """Converts NAME=VALUE or NAME, an option of sbatch, for submitit."""
  name, has_value, value = text.partition('=')
  return name, value if has_value else True


def launch(plan: plans.Plan) -> plans.Outcome:
  """Queues all bundles; returns which runs are unfinished, and why."""
  with preemption.Guard() as guard:
    jobs = _Jobs(plan)
    if not flags.FLAGS.wait:
      return plans.Outcome({}, *jobs.leave())
    with progresses.Progress(plan) as progress:
      while jobs.busy:
        if guard.received:
          return plans.Outcome({}, *jobs.leave())
        time.sleep(_POLL_S)
        progress.update()
        jobs.update()
  return plans.Outcome(jobs.unfinished)


class _Jobs:
  """The sweep's SLURM jobs, and the runs that other launchers hold."""

  def __init__(self, plan: plans.Plan) -> None:
    self._settings = plans.settings(plan, flags.FLAGS.cpus)
    self._executor = _make_executor()
    self._queue = _Queue()
    self._locks = locks.Locks()
    self._queued: dict[Any, attempts.Attempt] = {}  # by job
    self._held: list[attempts.Attempt] = []
    self._looked = time.monotonic()
    # Jobs that are sent together.
    self._size = self._largest = _max_array_size()
    self._accepted = False  # whether SLURM has ever accepted a job
    self._refusal = ''
    self.unfinished: dict[str, str] = {}
    self._left = [attempts.attempt(bundle) for bundle in plan.bundles]
    self._send()

  @property
  def busy(self) -> bool:
    """Whether anything is left to wait for."""
    return bool(self._left or self._queued or self._held)

  def leave(self) -> tuple[str, int]:
    """Returns a message and exit code for ending before the jobs do."""
    if not self._left:
      return _LEFT, 0
    return f'{len(self._left)} jobs could not be queued; {_LEFT}', 1

  def update(self) -> None:
    """Reads results and queues failed runs again; call it often."""
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
    """Returns attempts at runs that other launchers no longer hold."""
    held, free = [], []
    for one in self._held:
      left = [run for run in one.bundle if not run.folder.finished]
      if any(self._locks.holder(run.folder) is None for run in left):
        free.append(attempts.attempt(left, one.failures))
      elif left:
        held.append(one)
    self._held = held
    return free

  def _send(self) -> None:
    """Queues what is left, as far as SLURM accepts it now."""
    while self._left:
      part = self._left[: self._size]
      try:
        jobs = self._executor.submit_array([
            worker.Job(plans.as_json(one.bundle), self._settings)
            for one in part
        ])
      except submitit.core.utils.FailedJobError as error:
        if len(part) > 1:  # A limit on a user's jobs refuses the whole array.
          self._size = len(part) // 2
          continue
        reason = ' '.join(str(error).split())
        if not self._accepted:
          raise errors.UserError(f'SLURM accepts no jobs: {reason}') from error
        if reason != self._refusal:
          print(
              f'warning: SLURM accepts no more jobs: {reason}', file=sys.stderr
          )
        self._refusal = reason
        return
      self._accepted, self._refusal = True, ''
      print(f'queued {len(jobs)} jobs from {jobs[0].job_id} on', flush=True)
      self._queued.update(zip(jobs, part))
      del self._left[: len(part)]
      self._size = min(2 * self._size, self._largest)


def _outcomes(job: Any, bundle: list[runner.PlannedRun]) -> dict[str, str]:
  """Returns run id -> outcome of a job that has ended."""
  if not job.paths.result_pickle.exists():
    # Cancelled or killed; the owner may not want it queued again.
    error = 'left the queue without a result'
  else:
    try:
      return job.result()
    except Exception as problem:  # pylint: disable=broad-exception-caught
      error = type(problem).__name__
  reason = f'job {job.job_id}: {error}; see {job.paths.stderr}'
  return {run.spec.run_id: reason for run in bundle}


def _max_array_size() -> int:
  """Returns the maximum size of a job array; SLURM's default if unknown."""
  answer = _ask('scontrol', 'show', 'config') or ''
  found = re.search(r'^MaxArraySize\s*=\s*(\d+)', answer, re.MULTILINE)
  return max(1, int(found.group(1)) if found else 1000)


def _ask(*command: str) -> str | None:
  """Returns the output of a SLURM command, or None if it fails."""
  try:
    return subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout
  except (OSError, subprocess.CalledProcessError):
    return None


def _queued() -> set[str] | None:
  """Returns the ids of this user's jobs and arrays; None without an answer."""
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
  """Finds jobs that left SLURM's queue without a result.

  submitit asks SLURM's accounting about jobs. Without accounting, it waits for
  ever for a job that was cancelled or killed. With it, it reports jobs as lost
  that SLURM requeues after the failure of a node.
  """

  def __init__(self) -> None:
    self._asked = time.monotonic()
    self._silent = False
    self._missing_since: dict[str, float] = {}

  def lost(self, job_ids: Iterable[str]) -> set[str]:
    """Returns the jobs that have been out of the queue for `_LOST_AFTER_S`."""
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
  """Returns the number of processor cores per worker."""
  return flags.FLAGS.cpus


def describe() -> str:
  """Returns where runs are trained."""
  return (
      f'SLURM, {flags.FLAGS.cpus} cores and {flags.FLAGS.gpus} GPUs each,'
      f' {flags.FLAGS.time_min} minutes at a time'
  )


if __name__ == '__main__':
  define_flags()
  plans.main(launch, describe)
