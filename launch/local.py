"""Trains a sweep in worker processes on this machine.

  python -m launch.local --config=configs/fig3b.py --workers=2

Workers divide the processor's cores among them, and the GPUs if there are any.
A worker trains one run after the other and reuses compiled programs. A worker
that dies is replaced, and its run resumes. SIGTERM and Ctrl-C save all runs;
the same command resumes them.
"""

import json
import math
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
import time
from typing import cast, IO, TypeAlias

from modular_hyperteacher.cli import interrupts

if __name__ == '__main__':
  interrupts.exit_at_once()

from absl import flags
import numpy as np

from modular_hyperteacher.devices import host_devices
from modular_hyperteacher.launch import attempts
from modular_hyperteacher.launch import plan as plans
from modular_hyperteacher.launch import progress as progresses
from modular_hyperteacher.launch import worker
from modular_hyperteacher.runs import preemption

_VISIBLE = 'CUDA_VISIBLE_DEVICES'
# A worker's cores and environment variables.
_Slot: TypeAlias = tuple[list[int], dict[str, str]]


def define_flags() -> None:
  """Defines the flags when the command runs, not at import."""
  flags.DEFINE_integer(
      'workers',
      None,
      'Number of workers, each of which trains one run at a time. Default: one'
      ' per GPU; without a GPU, one.',
      lower_bound=1,
      upper_bound=1000,
  )


def make_slots(
    number: int | None, cores: list[int], gpus: list[str]
) -> list[_Slot]:
  """Returns every worker's cores and environment variables.

  Without a number of workers, there is one per GPU, or one without GPUs.
  """
  number = number or len(gpus) or 1
  shares = np.array_split(np.array(cores), number)
  slots = []
  for i, share in enumerate(shares):
    own = [int(core) for core in share] or [cores[i % len(cores)]]
    variables = {_VISIBLE: gpus[i % len(gpus)]} if gpus else {}
    if number > len(gpus) > 0:
      variables |= plans.share_of_gpu(1 / math.ceil(number / len(gpus)))
    slots.append((own, variables))
  return slots


def _gpus() -> list[str]:
  visible = os.environ.get(_VISIBLE)
  if visible is not None:
    return [name for name in visible.split(',') if name]
  devices = pathlib.Path('/dev').glob('nvidia[0-9]*')
  return sorted(path.name.removeprefix('nvidia') for path in devices)


def _slots() -> list[_Slot]:
  return make_slots(flags.FLAGS.workers, host_devices.cores(), _gpus())


class _Worker:
  """A worker process, which is restarted when it dies."""

  def __init__(self, slot: _Slot, settings: worker.Settings) -> None:
    self._cores, self._variables = slot
    self._settings = settings
    self._process: subprocess.Popen[str] | None = None

  def train(self, bundle: list) -> dict[str, str] | str:
    """Returns the outcomes of runs, or a message on how the worker died."""
    process = self._process
    lines = [bundle]
    if process is None or process.poll() is not None:
      process = self._process = self._start()
      lines = [self._settings, bundle]
    # Neither pipe is None: see `_start`.
    try:
      for line in lines:
        print(json.dumps(line), file=process.stdin, flush=True)
      answer = cast(IO[str], process.stdout).readline()
    except (BrokenPipeError, ValueError):  # It died, or `stop` closed the pipe.
      answer = ''
    if not answer.endswith('\n'):
      try:
        code = process.wait(timeout=10)  # Python takes seconds to exit.
      except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()  # or `poll` may still find it alive
      if code < 0:
        return f'its worker was killed by {signal.Signals(-code).name}'
      return f'its worker ended with exit code {code}'
    return json.loads(answer)

  def _start(self) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, '-m', 'modular_hyperteacher.launch.worker']
        + [f'--cores={json.dumps(self._cores)}'],
        env=os.environ | self._variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # Ctrl-C reaches the launcher, which passes it on.
        start_new_session=True,
    )

  def stop(self, save: bool) -> None:
    """Ends the worker after its run; or at once, and saves it."""
    if self._process is None:
      return
    if save and self._process.poll() is None:
      # After SIGINT, a worker that is still importing prints a traceback.
      self._process.terminate()
    try:
      cast(IO[str], self._process.stdin).close()
    except BrokenPipeError:
      pass


class _Pool:
  """Workers that share a queue of bundles."""

  def __init__(self, plan: plans.Plan, slots: list[_Slot]) -> None:
    settings = plans.settings(plan, num_cores())
    self._workers = [_Worker(slot, settings) for slot in slots]
    self._queue: queue.Queue[attempts.Attempt] = queue.Queue()
    for bundle in plan.bundles:
      self._queue.put(attempts.attempt(bundle))
    self.unfinished: dict[str, str] = {}
    self.fault: Exception | None = None  # what ended a thread
    self._stopping = threading.Event()
    self._threads = [
        threading.Thread(target=self._run, args=(one,), daemon=True)
        for one in self._workers
    ]
    for thread in self._threads:
      thread.start()

  @property
  def busy(self) -> bool:
    """Whether anything is left to do."""
    return any(thread.is_alive() for thread in self._threads)

  def _run(self, one: _Worker) -> None:
    try:
      self._serve(one)
    except Exception as fault:  # pylint: disable=broad-exception-caught
      self.fault = fault
    one.stop(save=False)

  def _serve(self, one: _Worker) -> None:
    # Another worker's bundle may be queued again until all are done.
    while self._queue.unfinished_tasks and not self._stopping.is_set():
      try:
        tried = self._queue.get(timeout=0.1)
      except queue.Empty:
        continue
      try:
        outcomes = one.train(plans.as_json(tried.bundle))
      except OSError as error:  # No memory for a process, for instance.
        outcomes = f'its worker cannot be started ({error.strerror})'
      if self._stopping.is_set():
        break
      for again in attempts.take_back(tried, outcomes, self.unfinished):
        self._stopping.wait(attempts.HELD_AGAIN_S if again.held else 0)
        self._queue.put(again)
      self._queue.task_done()

  def stop(self) -> None:
    """Stops all workers, which save, and waits for them."""
    self._stopping.set()
    while self.busy:
      for one in self._workers:
        one.stop(save=True)
      time.sleep(0.5)  # A worker between two runs ignores signals.


def launch(plan: plans.Plan) -> plans.Outcome:
  """Trains all bundles; returns which runs are unfinished, and why."""
  with preemption.Guard() as guard:
    pool = _Pool(plan, _slots())
    try:
      with progresses.Progress(plan) as progress:
        while pool.busy and not (guard.received or pool.fault):
          time.sleep(0.2)
          progress.update()
    finally:
      pool.stop()
    if pool.fault:
      raise pool.fault
    if number := guard.received:
      return plans.stopped(number)
  return plans.Outcome(pool.unfinished)


def num_cores() -> int:
  """Returns the number of processor cores per worker."""
  return min(len(cores) for cores, _ in _slots())


def num_workers() -> int:
  """Returns the number of runs trained at once."""
  return len(_slots())


def describe() -> str:
  """Returns where runs are trained."""
  slots = _slots()
  shares = ', '.join(
      f'cores {cores}'
      + (f' and GPU {variables[_VISIBLE]}' if _VISIBLE in variables else '')
      for cores, variables in slots
  )
  return f'{len(slots)} workers on this machine ({shares})'


if __name__ == '__main__':
  define_flags()
  plans.main(launch, describe)
