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
import time

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
  with common.Progress(plan) as progress:
    waiting = dict(zip(jobs, plan.bundles))
    while waiting:
      if received:
        return common.Outcome({}, _LEFT)
      time.sleep(_POLL_S)
      progress.update()
      for job in [job for job in waiting if job.done()]:
        _take_back(job, waiting.pop(job), unfinished)
  return common.Outcome(unfinished)


def _take_back(job, bundle, unfinished):
  try:
    outcomes = job.result()
  except Exception as error:  # pylint: disable=broad-exception-caught
    # Whatever ended it, its log has it in full.
    reason = f'job {job.job_id}: {type(error).__name__}; see {job.paths.stderr}'
    outcomes = {run.run.run_id: reason for run in bundle}
  for run_id, outcome in outcomes.items():
    if outcome != worker.FINISHED:
      unfinished[run_id] = outcome


def _describe() -> str:
  return (
      f'SLURM, {_CPUS.value} cores and {_GPUS.value} GPUs each,'
      f' {_TIME_MIN.value} minutes at a time'
  )


if __name__ == '__main__':
  common.main(launch, _describe)
