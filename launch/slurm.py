"""A sweep over SLURM, as an array of jobs, through submitit.

  python -m launch.slurm --config=configs/fig3b.py:paper --partition=gpu \\
      --gpus=1 --time_min=480 --results=/shared/results

A job that is preempted, or that comes near its time limit, saves first and is
queued again; it goes on from its checkpoint. Stopping this command leaves the
jobs alone, and the same command later watches or completes what is left:
whatever runs is locked, whatever is finished is skipped.
"""

import pathlib
import signal
import subprocess
import time
from typing import Iterable

from absl import flags
import submitit

from launch import common
from launch import worker
from modular_hyperteacher import interrupt

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
    'parallel', 256, 'How many jobs run at once.', lower_bound=1
)
_SLURM = flags.DEFINE_multi_string(
    'slurm', [], 'More options of sbatch, as --slurm=account=NAME; repeat.'
)
_JOBS = flags.DEFINE_string(
    'jobs', 'slurm_jobs', "Folder for the jobs' logs and pickled arguments."
)
_WAIT = flags.DEFINE_bool('wait', True, 'Wait for the jobs, show progress.')

_POLL_S = 2.0
_QUEUE_POLL_S = 15.0
# Results on a shared file system may be seen this much later.
_LOST_AFTER_S = 60.0
_LOST = 'left the queue without a result'
_LEFT = 'the jobs go on by themselves; squeue shows them.'


def _make_executor() -> submitit.AutoExecutor:
  executor = submitit.AutoExecutor(
      pathlib.Path(_JOBS.value) / '%A',
      cluster='slurm',
      slurm_max_num_timeout=_REQUEUES.value,
  )
  parameters = {
      'name': 'modular_hyperteacher',
      'timeout_min': _TIME_MIN.value,
      'cpus_per_task': _CPUS.value,
      'slurm_array_parallelism': _PARALLEL.value,
      'slurm_signal_delay_s': _SAVE_BEFORE_S.value,
      'slurm_additional_parameters': {'requeue': True}
      | dict(option.split('=', 1) for option in _SLURM.value),
  }
  if _PARTITION.value:
    parameters['slurm_partition'] = _PARTITION.value
  if _GPUS.value:
    parameters['gpus_per_node'] = _GPUS.value
  executor.update_parameters(**parameters)
  return executor


def launch(plan: common.Plan) -> common.Outcome:
  """Queues all bundles; returns what could not be finished."""
  settings = common.settings(plan, _CPUS.value)
  work = [
      worker.Job(common.as_json(bundle), settings) for bundle in plan.bundles
  ]
  jobs = _make_executor().submit_array(work)
  print(f'queued as job array {jobs[0].job_id.split("_")[0]}', flush=True)
  if not _WAIT.value:
    return common.Outcome({}, _LEFT)
  received = []
  for number in interrupt.SIGNALS:
    signal.signal(number, lambda signum, frame: received.append(signum))
  unfinished = {}
  queue = _Queue()
  with common.Progress(plan) as progress:
    waiting = dict(zip(jobs, plan.bundles))
    while waiting:
      if received:
        return common.Outcome({}, _LEFT)
      time.sleep(_POLL_S)
      progress.update()
      for job in [job for job in waiting if job.done()]:
        unfinished |= _unfinished(job, waiting.pop(job))
      lost = queue.lost(job.job_id for job in waiting)
      for job in [job for job in waiting if job.job_id in lost]:
        unfinished |= _blame(job, waiting.pop(job), _LOST)
  return common.Outcome(unfinished)


class _Queue:
  """Tells which jobs left SLURM's queue without a word.

  submitit asks SLURM's accounting what became of a job. Where there is none,
  it would wait for ever for the result of one that was cancelled or killed.
  """

  def __init__(self):
    self._asked = time.monotonic()
    self._missing_since = {}

  def lost(self, job_ids: Iterable[str]) -> set[str]:
    """Returns those that SLURM has not had for `_LOST_AFTER_S`."""
    now = time.monotonic()
    if now - self._asked < _QUEUE_POLL_S:
      return set()
    self._asked = now
    try:
      answer = subprocess.run(
          ['squeue', '--me', '--noheader', '--array', '--format=%F_%K'],
          capture_output=True,
          text=True,
          check=True,
      )
    except (OSError, subprocess.CalledProcessError):
      return set()  # SLURM does not answer now; it knows its jobs later.
    queued = answer.stdout.split()
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


def _unfinished(job, bundle) -> dict[str, str]:
  """Returns what a job that is done did not finish, and why."""
  try:
    outcomes = job.result()
  except Exception as error:  # pylint: disable=broad-exception-caught
    return _blame(job, bundle, type(error).__name__)
  return {
      run_id: outcome
      for run_id, outcome in outcomes.items()
      if outcome != worker.FINISHED
  }


def _blame(job, bundle, reason) -> dict[str, str]:
  """Returns a reason for each run of a job, whose log has it in full."""
  reason = f'job {job.job_id}: {reason}; see {job.paths.stderr}'
  return {run.run.run_id: reason for run in bundle}


def _describe() -> str:
  return (
      f'SLURM, {_CPUS.value} cores and {_GPUS.value} GPUs each,'
      f' {_TIME_MIN.value} minutes at a time'
  )


if __name__ == '__main__':
  common.main(launch, _describe)
