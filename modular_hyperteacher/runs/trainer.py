"""The training loop: outer steps, logging, evaluation, checkpoints.

Between two compiled calls the loop can always be saved: it holds the parameters
after some step and all rows up to that step. Several processes run the same
loop in lockstep; the first saves.
"""

from collections.abc import Callable, Mapping
import dataclasses
import sys
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.devices import multihost
from modular_hyperteacher.experiments import settings
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.learning import programs
from modular_hyperteacher.runs import checkpoints
from modular_hyperteacher.runs import preemption
from modular_hyperteacher.runs import run_folder
from modular_hyperteacher.untrusted import tables

# Long enough to hide the cost of dispatch, short enough to show progress.
_SECONDS_PER_CALL = 1.0


class Saved(NamedTuple):
  """The content of a checkpoint; the leading axis is the seed."""

  state: outer_loop.TrainState  # [R, ...]
  best_params: Any  # [R, ...], at the lowest validation loss so far
  best_loss: np.ndarray  # [R] float32


class Progress(NamedTuple):
  """Progress of the training loop, for callbacks."""

  step: int
  metrics: dict[str, np.ndarray]  # 'split/metric' -> [R]; empty between logs


@dataclasses.dataclass(eq=False)
class Trainer:
  """Trains all seeds of one experiment; records metrics and checkpoints.

  It begins at the checkpoint of the folder, if there is one.

  Attributes:
    compiled: the programs to run, for the experiment's seeds and evaluation
      splits in their order.
    folder: where rows and checkpoints go.
    experiment: what to train, and when to log, evaluate and save.
    empty: split -> [R] bool; metrics of an empty split are missing.
    guard: runs what is computed on the devices; raises to stop the loop.
    watch: receives the progress after every compiled call.
    check_lock: raises if another process has taken over the run.
    analyse: analysis on the host, at evaluations that `settings.is_analysed`
      picks and at the last, or at all if the system is `analysed_always`.
    on_saved: receives the step of every checkpoint, on the first process.
    rows: all rows so far, in the order of `run_folder.COLUMNS`.
  """

  compiled: programs.Programs
  folder: run_folder.RunFolder
  experiment: settings.Experiment
  empty: Mapping[str, np.ndarray]
  guard: preemption.Guard
  watch: Callable[[Progress], None]
  check_lock: Callable[[], None]
  analyse: programs.Analyse | None = None
  on_saved: Callable[[int], None] = lambda step: None
  rows: list[tuple] = dataclasses.field(default_factory=list)

  def __post_init__(self) -> None:
    self._training = self.experiment.training
    self._execution = self.experiment.execution
    self._checkpoints = checkpoints.Checkpoints(self.folder.checkpoints)
    self._steps_per_call = 1
    self._last_evaluated = -1
    self._state = self.compiled.init()
    self._best_params = self._state.meta_params
    self._best_loss = np.full(len(self._training.seeds), np.inf, np.float32)
    saved = self._checkpoints.restore(self._snapshot())
    if saved is not None:
      self._state = programs.replicate(saved.state)
      self._best_params = programs.replicate(saved.best_params)
      self._best_loss = saved.best_loss
      if multihost.is_primary():
        self._restore_rows(self._checkpoints.rows)
      self._last_evaluated = int(
          multihost.broadcast_from_primary(np.array(self._last_evaluated))
      )
    self._saved_at = time.monotonic()

  @property
  def step(self) -> int:
    """Outer steps done."""
    return int(programs.fetch(self._state.step)[0])

  def _restore_rows(self, content: bytes) -> None:
    """Uses the checkpoint's rows; rewrites metrics.csv if it lacks some."""
    path = self.folder.checkpoints / str(self.step)
    rows = tables.parse(path, content, run_folder.COLUMNS)
    self.rows = list(rows.itertuples(index=False, name=None))
    if not self.folder.has_metrics(content):
      print(
          f'warning: metrics.csv in {self.folder.path} lacks rows up to step'
          f' {self.step}; restored from the checkpoint.',
          file=sys.stderr,
          flush=True,
      )
      self.folder.write_metrics(self.rows)
    steps = rows.loc[rows['split'] != 'train', 'step']
    self._last_evaluated = int(steps.max()) if len(steps) else -1

  def _snapshot(self) -> Saved:
    return Saved(
        programs.fetch(self._state),
        programs.fetch(self._best_params),
        self._best_loss,
    )

  def run(self) -> None:
    """Trains to the last step, evaluates there, and saves."""
    self.guard.call(self.compiled.compile, self._state)
    self._evaluate_if_due()
    while self.step < self._training.num_outer_steps:
      self._take_steps()
      self._evaluate_if_due()
      if time.monotonic() - self._saved_at > self._execution.checkpoint_every_s:
        self.save()
    self.save()

  def save(self) -> None:
    """Writes metrics.csv, then a checkpoint with the same rows.

    In this order, a kill in between leaves surplus rows, which resuming drops.
    Of several processes, only the first writes.
    """
    if multihost.is_primary():
      self.check_lock()
      rows = self.folder.write_metrics(self.rows)
      self._checkpoints.save(self.step, self._snapshot(), rows)
      self.on_saved(self.step)
    self._saved_at = time.monotonic()

  def _take_steps(self) -> None:
    step = self.step
    # The next step at which something is logged or evaluated.
    periods = self._execution.log_every, self._training.evaluate_every
    nexts = ((step // period + 1) * period for period in periods)
    boundary = min(self._training.num_outer_steps, *nexts)
    num_steps = self.guard.agree(min(boundary - step, self._steps_per_call))
    started = time.monotonic()
    state, metrics = self.guard.call(self._train, num_steps)
    self._adjust_call_length(num_steps, time.monotonic() - started)
    self._state = state
    step += num_steps
    if self._is_due(step, self._execution.log_every):
      skipped = programs.fetch(outer_loop.num_skipped(state))
      metrics = programs.fetch(metrics) | {'num_skipped': skipped}
      self._record(step, 'train', metrics)
    else:
      self.watch(Progress(step, {}))

  def _is_due(self, step: int, period: int) -> bool:
    """Whether an action takes place every so many steps, and at the last."""
    return step % period == 0 or step == self._training.num_outer_steps

  def _train(
      self, num_steps: int
  ) -> tuple[outer_loop.TrainState, outer_loop.Metrics]:
    return jax.block_until_ready(self.compiled.train(self._state, num_steps))

  def _adjust_call_length(self, num_steps: int, seconds: float) -> None:
    """Doubles or halves the steps per call, to approach the target time."""
    if num_steps < self._steps_per_call:
      return
    if seconds < _SECONDS_PER_CALL / 2:
      self._steps_per_call *= 2
    elif seconds > 2 * _SECONDS_PER_CALL:
      self._steps_per_call = max(self._steps_per_call // 2, 1)

  def _evaluate_if_due(self) -> None:
    step = self.step
    evaluate_every = self._training.evaluate_every
    due = self._is_due(step, evaluate_every)
    # A resumed run may have evaluated this step.
    if step == 0 or not due or step == self._last_evaluated:
      return
    metrics, adapted = self.guard.call(
        lambda: jax.block_until_ready(
            self.compiled.evaluate(self._state.meta_params)
        )
    )
    metrics = programs.fetch(metrics)
    by_split = {
        split: {name: values[:, i] for name, values in metrics.items()}
        for i, split in enumerate(self.experiment.system.evaluation_splits)
    }
    is_analysed = (
        self.experiment.system.analysed_always
        or step == self._training.num_outer_steps
        or settings.is_analysed(step, evaluate_every)
    )
    if self.analyse and is_analysed:
      analysed = self.guard.call(
          self.analyse,
          programs.fetch(self._state.meta_params),
          programs.fetch_divided(adapted),
      )
      for split, split_metrics in analysed.items():
        by_split[split] |= split_metrics
    self._keep_best(by_split['valid']['loss'])
    self._last_evaluated = step
    for split, split_metrics in by_split.items():
      split_metrics = {
          name: np.where(self.empty[split], np.nan, values)
          for name, values in split_metrics.items()
      }
      self._record(step, split, split_metrics)

  def _keep_best(self, loss: np.ndarray) -> None:
    # The latest parameters, as long as no loss was finite.
    better = (loss < self._best_loss) | ~np.isfinite(self._best_loss)

    def choose(new: jax.Array, old: jax.Array) -> jax.Array:
      mask = better.reshape((1, -1) + (1,) * (new.ndim - 2))
      return jnp.where(mask, new, old)

    self._best_params = jax.tree.map(
        choose, self._state.meta_params, self._best_params
    )
    self._best_loss = np.where(better, loss, self._best_loss)

  def _record(
      self, step: int, split: str, metrics: dict[str, np.ndarray]
  ) -> None:
    for name, values in metrics.items():
      for seed, value in zip(self._training.seeds, values):
        self.rows.append((step, seed, split, name, float(value)))
    self.watch(Progress(step, {f'{split}/{n}': v for n, v in metrics.items()}))
