"""Many outer steps: when to log, to evaluate and to save.

The loop only sequences. Between its compiled calls it is always in a state
that can be saved: parameters after some step, and all rows up to that step.
Several processes run the same loop in step with each other; the first saves.
"""

import time
from typing import Any, Callable, Mapping, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import checkpoints
from modular_hyperteacher import errors
from modular_hyperteacher import processes
from modular_hyperteacher import results
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.learning import programs

# Long enough that dispatch costs nothing, short enough to show progress.
_SECONDS_PER_CALL = 1.0


class Saved(NamedTuple):
  """What a checkpoint holds; seeds in front."""

  state: outer_loop.TrainState  # [R, ...]
  best_params: Any  # [R, ...], at the lowest validation loss so far
  best_loss: np.ndarray  # [R] float32


# Split -> metric -> [R]
Analysed = Mapping[str, Mapping[str, np.ndarray]]


class Progress(NamedTuple):
  """What the loop tells whoever watches it."""

  step: int
  metrics: dict[str, np.ndarray]  # 'split/metric' -> [R]; empty between logs


class Trainer:
  """Trains all seeds of one experiment and records what happens."""

  def __init__(
      self,
      compiled: programs.Programs,
      folder: results.RunFolder,
      *,
      seeds: tuple[int, ...],
      evaluation_splits: tuple[str, ...],
      empty: dict[str, np.ndarray],
      num_outer_steps: int,
      evaluate_every: int,
      log_every: int,
      checkpoint_every_s: float,
      analyse: Callable[[Any, Any], Analysed] | None,
      call: Callable[..., Any],
      watch: Callable[[Progress], None],
      agree: Callable[[int], int] = lambda value: value,
      check_lock: Callable[[], None] = lambda: None,
  ):
    """Prepares to train; resumes if the folder holds a checkpoint.

    Args:
      compiled: the programs to run.
      folder: where rows and checkpoints go.
      seeds: in the order of the programs' seed axis.
      evaluation_splits: in the order of the programs' split axis.
      empty: split -> [R] bool; metrics of an empty split are missing.
      num_outer_steps: where to stop.
      evaluate_every: outer steps between evaluations; the last step is
        always evaluated.
      log_every: outer steps between rows of training metrics.
      checkpoint_every_s: seconds between checkpoints.
      analyse: `analyse(meta_params [R, ...], adapted [R, kept splits, tasks,
        ...])`, on the host, after the last step; None to measure nothing more.
      call: `call(function, *args)` runs device work and may raise to stop.
      watch: told after every compiled call.
      agree: returns the first process's value, between compiled calls; may
        raise to stop all processes there.
      check_lock: raises if the folder has become another's to write to.
    """
    self._programs = compiled
    self._folder = folder
    self._seeds = seeds
    self._splits = evaluation_splits
    self._empty = empty
    self._num_outer_steps = num_outer_steps
    self._evaluate_every = evaluate_every
    self._log_every = log_every
    self._checkpoint_every_s = checkpoint_every_s
    self._analyse = analyse
    self._call = call
    self._watch = watch
    self._agree = agree
    self._check_lock = check_lock
    self._checkpoints = checkpoints.Checkpoints(folder.checkpoints)
    self._steps_per_call = 1
    self._rows: list[tuple] = []
    self._last_evaluated = -1
    self._start()

  @property
  def step(self) -> int:
    """Outer steps done."""
    return int(programs.fetch(self._state.step)[0])

  @property
  def rows(self) -> list[tuple]:
    """All rows so far, in the order of `results.COLUMNS`."""
    return self._rows

  def _start(self):
    self._state = self._programs.init()
    self._best_params = self._state.meta_params
    self._best_loss = np.full(len(self._seeds), np.inf, np.float32)
    saved = self._checkpoints.restore(self._snapshot())
    if saved is not None:
      self._state = programs.replicate(saved.state)
      self._best_params = programs.replicate(saved.best_params)
      self._best_loss = saved.best_loss
      if processes.is_first():
        self._restore_rows()
      self._last_evaluated = int(
          processes.from_first(np.array(self._last_evaluated))
      )
    self._saved_at = time.monotonic()

  def _restore_rows(self):
    if not self._folder.has_metrics:  # They are written before a checkpoint.
      raise errors.UserError(
          f'--results: {self._folder.path} has a checkpoint of step'
          f' {self.step}, but its metrics.csv is missing; put it back, or delete'
          ' the folder to start again.'
      )
    rows = self._folder.read_metrics()
    rows = rows[rows['step'] <= self.step]
    evaluated = rows['split'] != 'train'
    if self._is_ahead(rows):
      rows = rows[~evaluated | (rows['step'] < self.step)]
    self._rows = list(rows.itertuples(index=False, name=None))
    steps = rows.loc[evaluated, 'step']
    self._last_evaluated = int(steps.max()) if len(steps) else -1

  def _is_ahead(self, rows):
    """Whether rows tell of a better evaluation than the checkpoint knows.

    Then the run was killed after it had written them, and before it saved
    again a step that it had saved without evaluating.
    """
    valid = rows[(rows['split'] == 'valid') & (rows['metric'] == 'loss')]
    lowest = valid.groupby('seed')['value'].min().reindex(self._seeds)
    return bool((lowest.to_numpy(np.float32) < self._best_loss).any())

  def _snapshot(self) -> Saved:
    return Saved(
        programs.fetch(self._state),
        programs.fetch(self._best_params),
        self._best_loss,
    )

  def run(self) -> None:
    """Trains to the last step, evaluates there, and saves."""
    self._call(self._programs.compile, self._state)
    self._evaluate_if_due()
    while self.step < self._num_outer_steps:
      self._take_steps()
      self._evaluate_if_due()
      if time.monotonic() - self._saved_at > self._checkpoint_every_s:
        self.save()
    self.save()

  def save(self) -> None:
    """Writes rows, then a checkpoint of the same step.

    In this order, a kill in between leaves rows that are too many, which
    resuming cuts, and never too few. Of several processes, the first writes.
    """
    if processes.is_first():
      self._check_lock()
      self._folder.write_metrics(self._rows)
      self._checkpoints.save(self.step, self._snapshot())
    self._saved_at = time.monotonic()

  def _take_steps(self):
    step = self.step
    boundary = min(
        self._num_outer_steps,
        _next_multiple(step, self._log_every),
        _next_multiple(step, self._evaluate_every),
    )
    num_steps = self._agree(min(boundary - step, self._steps_per_call))
    started = time.monotonic()
    state, metrics = self._call(self._train, num_steps)
    self._adjust_call_length(num_steps, time.monotonic() - started)
    self._state = state
    step += num_steps
    if step % self._log_every == 0 or step == self._num_outer_steps:
      skipped = programs.fetch(outer_loop.num_skipped(state))
      metrics = programs.fetch(metrics) | {'num_skipped': skipped}
      self._record(step, 'train', metrics)
    else:
      self._watch(Progress(step, {}))

  def _train(self, num_steps):
    return jax.block_until_ready(self._programs.train(self._state, num_steps))

  def _adjust_call_length(self, num_steps, seconds):
    """Doubles or halves; the first call, which compiles, teaches nothing."""
    if num_steps < self._steps_per_call:
      return
    if seconds < _SECONDS_PER_CALL / 2:
      self._steps_per_call *= 2
    elif seconds > 2 * _SECONDS_PER_CALL:
      self._steps_per_call = max(self._steps_per_call // 2, 1)

  def _evaluate_if_due(self):
    step = self.step
    due = step % self._evaluate_every == 0 or step == self._num_outer_steps
    # A run stopped during an evaluation has taken the step already.
    if step == 0 or not due or step == self._last_evaluated:
      return
    metrics, adapted = self._call(
        lambda: jax.block_until_ready(
            self._programs.evaluate(self._state.meta_params)
        )
    )
    metrics = programs.fetch(metrics)
    by_split = {
        split: {name: values[:, i] for name, values in metrics.items()}
        for i, split in enumerate(self._splits)
    }
    if self._analyse is not None and step == self._num_outer_steps:
      analysed = self._call(
          self._analyse,
          programs.fetch(self._state.meta_params),
          programs.fetch_divided(adapted),
      )
      for split, split_metrics in analysed.items():
        by_split[split] |= split_metrics
    self._keep_best(by_split['valid']['loss'])
    self._last_evaluated = step
    for split, split_metrics in by_split.items():
      split_metrics = {
          name: np.where(self._empty[split], np.nan, values)
          for name, values in split_metrics.items()
      }
      self._record(step, split, split_metrics)

  def _keep_best(self, loss):
    better = loss < self._best_loss

    def choose(new, old):
      mask = better.reshape((1, -1) + (1,) * (new.ndim - 2))
      return jnp.where(mask, new, old)

    self._best_params = jax.tree.map(
        choose, self._state.meta_params, self._best_params
    )
    self._best_loss = np.where(better, loss, self._best_loss)

  def _record(self, step, split, metrics):
    for name, values in metrics.items():
      for seed, value in zip(self._seeds, values):
        self._rows.append((step, seed, split, name, float(value)))
    self._watch(
        Progress(step, {f'{split}/{n}': v for n, v in metrics.items()})
    )


def _next_multiple(value: int, interval: int) -> int:
  return (value // interval + 1) * interval
