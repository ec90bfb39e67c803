"""Estimates of the outer gradient of a task.

`unrolled` differentiates the query loss through the adaptation (Section 2,
Algorithm 2). Studies add others.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import optax

from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks

UNROLLED = 'unrolled'
Loss = tuple[jax.Array, dict[str, jax.Array]]  # loss, metric -> scalar

# (meta_params, task_params, task, key) -> parameters adapted to the support
# set, or to fresh ones drawn from the latent.
AdaptToTask = Callable[
    [models.MetaParams, tasks.TaskParams, tasks.Task, jax.Array],
    models.FastParams,
]

# As `AdaptToTask` -> a number whose gradient by the meta-parameters is the
# estimate, and metrics. So the mean over many tasks is differentiated at once,
# and no task's gradient is stored.
Estimate = Callable[
    [models.MetaParams, tasks.TaskParams, tasks.Task, jax.Array], Loss
]


class Problem(NamedTuple):
  """What an estimate of the outer gradient is made from."""

  task_distribution: tasks.TaskDistribution
  model: models.MetaModel
  inner: inner_loop.InnerConfig
  # The key of the inputs of inner steps, if tasks share them.
  inputs_key: jax.Array | None = None

  def start(
      self, meta_params: models.MetaParams, task: tasks.Task, key: jax.Array
  ) -> tuple[models.FastParams, jax.Array]:
    """Returns a task's initial fast parameters, and the key of its steps."""
    if self.model.infer is None:
      fast_params = self.model.init_fast(meta_params)
    else:
      fast_params = self.model.infer(meta_params, task.support)
    if not self.inner.random_start:
      return fast_params, key
    key, start_key = jax.random.split(key)
    normal = optax.tree.random_like(
        start_key, fast_params, sampler=jax.random.normal
    )
    return normal, key

  def adapt(
      self,
      meta_params: models.MetaParams,
      task_params: tasks.TaskParams,
      task: tasks.Task,
      key: jax.Array,
  ) -> models.FastParams:
    """Returns the adapted parameters, as `AdaptToTask`."""

    def encode(batch: tasks.Batch) -> tasks.Batch:
      inputs = self.model.encode(meta_params, batch.inputs)
      return batch._replace(inputs=inputs)

    def draw_fresh(step_key: jax.Array) -> tasks.Batch:
      support, _ = self.task_distribution.sample_examples(
          task_params, step_key, task.latent, 'train'
      )
      return encode(support)

    if self.inner.fresh_support:
      draw = draw_fresh
    else:
      support = encode(task.support)
      draw = inner_loop.from_support(support, self.inner.batch_size)
    fast_params, key = self.start(meta_params, task, key)
    draw_key = key if self.inputs_key is None else self.inputs_key
    objective = self.task_distribution.objective
    inner = inner_loop.InnerLoop(self.model, objective, self.inner)
    return inner.adapt(meta_params, fast_params, draw, draw_key)

  def score(
      self,
      meta_params: models.MetaParams,
      fast_params: models.FastParams,
      batch: tasks.Batch,
  ) -> Loss:
    """Returns the loss on a batch, and metrics."""
    outputs = self.model.predict(meta_params, fast_params, batch.inputs)
    metrics = self.task_distribution.objective.measure(outputs, batch)
    return metrics['loss'], metrics


def unrolled(problem: Problem) -> Estimate:
  """Returns the query loss, differentiated through the adaptation."""

  def estimate(
      meta_params: models.MetaParams,
      task_params: tasks.TaskParams,
      task: tasks.Task,
      key: jax.Array,
  ) -> Loss:
    fast_params = problem.adapt(meta_params, task_params, task, key)
    return problem.score(meta_params, fast_params, task.query)

  return estimate
