"""Trains a sweep on a Ray cluster with CPUs, GPUs or TPUs.

  ray up launch/clusters/ray_gpu.yaml  # or ray_tpu.yaml; see docs/cli.md
  python -m launch.ray_cluster --address=auto --num_gpus=1 \\
      --config=configs/fig3b.py:paper --results=/shared/results

Without --address, Ray is started on this machine. Each run, or each group of
--runs_per_task runs, is a Ray task with its own resources. If a node is lost,
its runs resume on another from their last checkpoint. All machines must see
--results under the same path and have this package installed.
"""

import time
from typing import Any

from modular_hyperteacher.cli import interrupts

if __name__ == '__main__':
  interrupts.exit_at_once()

from absl import flags

from modular_hyperteacher import errors
from modular_hyperteacher.launch import attempts
from modular_hyperteacher.launch import plan as plans
from modular_hyperteacher.launch import progress as progresses
from modular_hyperteacher.launch import worker
from modular_hyperteacher.runs import preemption

ray = plans.need('ray', 'ray')


_POLL_S = 0.5
_SAVING_S = 30.0


def define_flags() -> None:
  """Defines the flags when the command runs, not at import."""
  flags.DEFINE_string(
      'address', None, "The cluster: HOST:PORT, or 'auto' on its head node."
  )
  flags.DEFINE_integer(
      'num_cpus', 1, 'Processor cores per task.', lower_bound=1
  )
  flags.DEFINE_float(
      'num_gpus',
      0,
      'GPUs per task; with 0.5, two tasks share one.',
      lower_bound=0,
  )
  flags.DEFINE_integer('num_tpus', 0, 'TPU chips per task.', lower_bound=0)


class _Tasks:
  """The sweep's Ray tasks."""

  def __init__(self, plan: plans.Plan) -> None:
    self._settings = plans.settings(plan, flags.FLAGS.num_cpus)
    shared = 0 < flags.FLAGS.num_gpus < 1
    variables = plans.share_of_gpu(flags.FLAGS.num_gpus) if shared else {}
    # A process can be divided into devices only once. Ray reuses processes only
    # for tasks with the same variables.
    devices = str(self._settings.num_host_devices)
    variables |= {'MODULAR_HYPERTEACHER_DEVICES': devices}
    self._remote = ray.remote(worker.train_in_ray).options(
        num_cpus=flags.FLAGS.num_cpus,
        num_gpus=flags.FLAGS.num_gpus,
        resources={'TPU': flags.FLAGS.num_tpus}
        if flags.FLAGS.num_tpus
        else None,
        max_retries=0,  # `take_back` decides.
        runtime_env={'env_vars': variables},
    )
    self._running: dict[Any, attempts.Attempt] = {}  # by Ray's reference
    self._later: list[tuple[float, attempts.Attempt]] = []
    self.unfinished: dict[str, str] = {}
    for bundle in plan.bundles:
      self._send(attempts.attempt(bundle))

  def _send(self, attempt: attempts.Attempt) -> None:
    bundle = plans.as_json(attempt.bundle)
    self._running[self._remote.remote(bundle, self._settings)] = attempt

  @property
  def busy(self) -> bool:
    """Whether anything is left to do."""
    return bool(self._running or self._later)

  def wait(self) -> None:
    """Waits a moment for tasks, and sends failed runs again."""
    if not self._running:
      time.sleep(_POLL_S)
    done, _ = ray.wait(list(self._running), timeout=_POLL_S)
    for task in done:
      tried = self._running.pop(task)
      try:
        outcomes = ray.get(task)
      except ray.exceptions.RayError as error:
        outcomes = (str(error).splitlines() or ['lost'])[0]
      for again in attempts.take_back(tried, outcomes, self.unfinished):
        pause = attempts.HELD_AGAIN_S if again.held else 0
        self._later.append((time.monotonic() + pause, again))
    due = [entry for entry in self._later if entry[0] <= time.monotonic()]
    for entry in due:
      self._later.remove(entry)
      self._send(entry[1])

  def stop(self) -> None:
    """Makes all tasks save and end."""
    for task in self._running:
      ray.cancel(task)
    ray.wait(
        list(self._running),
        num_returns=len(self._running),
        timeout=_SAVING_S,
    )


def launch(plan: plans.Plan) -> plans.Outcome:
  """Trains all bundles; returns which runs are unfinished, and why."""
  if not ray.is_initialized():
    # The dashboard can run code, so it must not be open to the network.
    own = {} if flags.FLAGS.address else {'dashboard_host': '127.0.0.1'}
    try:
      ray.init(flags.FLAGS.address or 'local', log_to_driver=False, **own)
    except (OSError, ValueError) as error:
      if not flags.FLAGS.address:
        raise
      raise errors.UserError(
          f'--address is {flags.FLAGS.address}; no cluster answers: {error}'
      ) from error
  with preemption.Guard() as guard:
    tasks = _Tasks(plan)
    with progresses.Progress(plan) as progress:
      while tasks.busy and not guard.received:
        tasks.wait()
        progress.update()
    if number := guard.received:
      tasks.stop()
      return plans.stopped(number)
  return plans.Outcome(tasks.unfinished)


def num_cores() -> int:
  """Returns the number of processor cores per worker."""
  return flags.FLAGS.num_cpus


def describe() -> str:
  """Returns where runs are trained."""
  needs = f'{flags.FLAGS.num_cpus} CPUs'
  if flags.FLAGS.num_gpus:
    needs += f', {flags.FLAGS.num_gpus:g} GPUs'
  if flags.FLAGS.num_tpus:
    needs += f', {flags.FLAGS.num_tpus} TPU chips'
  return f'Ray at {flags.FLAGS.address or "this machine"}, {needs} each'


if __name__ == '__main__':
  define_flags()
  plans.main(launch, describe)
