"""Evaluation: adapts to fixed tasks of every split and averages the metrics.

Source: Appendix C.2.2. Validation and test tasks use combinations of modules
that occur in training; OOD tasks use held-out combinations. A run's tasks are
the same at every evaluation.
"""

from collections.abc import Callable
import math
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import randomness
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.learning import programs
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks


def make_draw_tasks(
    task_distribution: tasks.TaskDistribution, num_tasks: int
) -> Callable[[jax.Array], programs.SeedTasks]:
  """Returns a function that draws a seed's tasks from its root key.

  Latents are `[splits, tasks, L, M]`, in the order of `evaluation_splits`. Each
  split has its own stream, so its tasks do not depend on the other splits.
  """

  @jax.jit
  def draw_latents(task_params: tasks.TaskParams, key: jax.Array) -> jax.Array:
    latents = []
    for split in task_distribution.evaluation_splits:
      keys = jax.random.split(randomness.stream(key, split), num_tasks)
      sample = jax.vmap(
          lambda key, split=split: task_distribution.sample_latent(
              task_params, key, split
          )
      )
      latents.append(sample(keys))
    return jnp.stack(latents)

  def draw(root: jax.Array) -> programs.SeedTasks:
    task_params = task_distribution.init(randomness.stream(root, 'task'))
    key = randomness.stream(root, 'evaluation_latents')
    return programs.SeedTasks(task_params, draw_latents(task_params, key))

  return draw


def make_evaluate(
    task_distribution: tasks.TaskDistribution,
    learner: outer_loop.Learner,
    task_chunk_size: int | None,
    kept_splits: tuple[str, ...] = (),
) -> programs.Evaluate:
  """Returns the evaluation of one seed.

  It takes the latents from `make_draw_tasks` and returns means over tasks,
  with the adapted parameters of this device's tasks in the kept splits,
  `[kept splits, tasks / D, ...]`. The key draws examples and inner batches.
  Tasks are adapted to in chunks, to bound memory.
  """
  # All evaluation splits draw examples in the same way, so use any.
  split = task_distribution.evaluation_splits[0]
  slots = np.array([
      kept_splits.index(name) if name in kept_splits else len(kept_splits)
      for name in task_distribution.evaluation_splits
  ])

  def evaluate(
      meta_params: models.MetaParams,
      task_params: tasks.TaskParams,
      latents: jax.Array,
      key: jax.Array,
  ) -> tuple[programs.Evaluation, Any]:
    def evaluate_task(
        latent_and_key: tuple[jax.Array, jax.Array],
    ) -> tuple[outer_loop.Metrics, models.FastParams]:
      latent, task_key = latent_and_key
      example_key, adapt_key = jax.random.split(task_key)
      support, query = task_distribution.sample_examples(
          task_params, example_key, latent, split
      )
      task = tasks.Task(support, query, latent)
      return learner.evaluate_task(meta_params, task_params, task, adapt_key)

    def evaluate_split(
        kept: Any,
        split_inputs: tuple[jax.Array, jax.Array, jax.typing.ArrayLike],
    ) -> tuple[Any, outer_loop.Metrics]:
      split_latents, split_key, slot = split_inputs
      keys = jax.random.split(split_key, len(split_latents))
      share = outer_loop.device_shard((split_latents, keys))
      num_tasks = share[1].shape[0]
      metrics, fast_params = lax.map(
          evaluate_task,
          share,
          batch_size=math.gcd(num_tasks, task_chunk_size or num_tasks),
      )
      if kept_splits:
        kept = jax.tree.map(
            lambda all_, new: all_.at[slot].set(new, mode='drop'),
            kept,
            fast_params,
        )
      mean = jax.tree.map(jnp.mean, metrics)
      return kept, lax.pmean(mean, outer_loop.DEVICE_AXIS)

    split_inputs = latents, jax.random.split(key, len(latents)), slots
    share = latents.shape[1] // lax.axis_size(outer_loop.DEVICE_AXIS)
    _, shapes = jax.eval_shape(evaluate_task, (latents[0, 0], key))
    kept = jax.tree.map(
        lambda x: jnp.zeros((len(kept_splits), share) + x.shape, x.dtype),
        shapes if kept_splits else (),
    )
    kept, metrics = lax.scan(evaluate_split, kept, split_inputs)
    return metrics, kept

  return evaluate
