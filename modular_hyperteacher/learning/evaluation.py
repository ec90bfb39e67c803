"""Evaluation: adapt to fixed tasks of every split, and average.

Source: Appendix C.2.2. Validation and test tasks combine modules as in
training; OOD tasks combine them as no training task did. The tasks of a run
are the same at every evaluation.
"""

import functools
import math
from typing import Callable, Mapping

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import randomness
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks

Evaluation = Mapping[str, jax.Array]  # metric -> [splits], mean over tasks


def make_draw_latents(
    task: tasks.TaskDistribution, num_tasks: int
) -> Callable[[tasks.TaskParams, jax.Array], jax.Array]:
  """Returns a function that draws the latents of a seed's evaluation tasks.

  `draw(task_params, key)` returns `[splits, tasks, L, M]`, the splits being
  `task.evaluation_splits`. Each has a stream of its own, so that another list
  of splits would not change the tasks of any.
  """

  @jax.jit
  def draw(task_params, key):
    latents = []
    for split in task.evaluation_splits:
      keys = jax.random.split(randomness.stream(key, split), num_tasks)
      sample = functools.partial(task.sample_latent, split=split)
      latents.append(jax.vmap(sample, (None, 0))(task_params, keys))
    return jnp.stack(latents)

  return draw


def make_evaluate(
    task: tasks.TaskDistribution,
    learner: outer_loop.Learner,
    task_chunk_size: int | None,
    kept_splits: tuple[str, ...] = (),
) -> Callable[..., tuple[Evaluation, models.FastParams]]:
  """Returns `evaluate(meta_params, task_params, latents, key)`.

  For one seed, inside of a mapped axis named `outer_loop.DEVICE_AXIS`, over
  whose devices the tasks of each split are divided. `latents` is what
  `make_draw_latents`' function returned; the key draws examples and inner
  batches. It returns the metrics of all splits, and the adapted parameters of
  this device's tasks, `[kept splits, tasks / D, ...]`.

  Args:
    task: the distribution to draw from.
    learner: what adapts and judges.
    task_chunk_size: tasks adapted to at once, or None; bounds memory.
    kept_splits: whose adapted parameters are returned.
  """
  # All evaluation splits draw examples alike, so any of them will do.
  split = task.evaluation_splits[0]
  slots = np.array([
      kept_splits.index(name) if name in kept_splits else len(kept_splits)
      for name in task.evaluation_splits
  ])

  def evaluate(meta_params, task_params, latents, key):
    def judge_task(latent_and_key):
      latent, task_key = latent_and_key
      example_key, adapt_key = jax.random.split(task_key)
      support, query = task.sample_examples(
          task_params, example_key, latent, split
      )
      drawn = tasks.Task(support, query, latent)
      return learner.judge(meta_params, task_params, drawn, adapt_key)

    def judge_split(kept, split_inputs):
      split_latents, split_key, slot = split_inputs
      keys = jax.random.split(split_key, len(split_latents))
      share = outer_loop.device_shard((split_latents, keys))
      num_tasks = share[1].shape[0]
      metrics, fast_params = lax.map(
          judge_task,
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
    _, shapes = jax.eval_shape(judge_task, (latents[0, 0], key))
    kept = jax.tree.map(
        lambda x: jnp.zeros((len(kept_splits), share) + x.shape, x.dtype),
        shapes if kept_splits else (),
    )
    kept, metrics = lax.scan(judge_split, kept, split_inputs)
    return metrics, kept

  return evaluate
