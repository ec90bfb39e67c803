"""Evaluation: adapt to fixed tasks of every split, and average.

Source: Appendix C.2.2. Validation and test tasks combine modules as in
training; OOD tasks combine them as no training task did. The tasks of a run
are the same at every evaluation.
"""

import math
from typing import Any, Callable, Mapping

import jax
from jax import lax
import jax.numpy as jnp

from modular_hyperteacher import randomness
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.tasks import base as tasks

Evaluation = Mapping[str, jax.Array]  # metric -> [splits], mean over tasks


def make_evaluate(
    task: tasks.TaskDistribution,
    learner: outer_loop.Learner,
    num_tasks: int,
    task_chunk_size: int | None,
) -> Callable[[Any, tasks.TaskParams, jax.Array], Evaluation]:
  """Returns `evaluate(meta_params, task_params, key) -> Evaluation`, one seed.

  To be called inside of a mapped axis named `outer_loop.DEVICE_AXIS`, over
  whose devices the tasks of each split are divided. One program serves all
  splits, as only drawing the task differs between them.

  Args:
    task: the distribution to draw from.
    learner: what adapts and judges.
    num_tasks: tasks per split, over all devices.
    task_chunk_size: tasks adapted to at once, or None; bounds memory.
  """
  splits = task.evaluation_splits
  samplers = [
      lambda params, key, split=split: task.sample(params, key, split)
      for split in splits
  ]

  def evaluate(meta_params, task_params, key):
    def judge_one(split_index, task_key):
      sample_key, adapt_key = jax.random.split(task_key)
      drawn = lax.switch(split_index, samplers, task_params, sample_key)
      metrics, _ = learner.judge(meta_params, drawn, adapt_key)
      return metrics

    def judge_split(split_index_and_key):
      split_index, split_key = split_index_and_key
      keys = outer_loop.device_shard(jax.random.split(split_key, num_tasks))
      chunk_size = math.gcd(len(keys), task_chunk_size or len(keys))
      metrics = lax.map(
          lambda task_key: judge_one(split_index, task_key),
          keys,
          batch_size=chunk_size,
      )
      return lax.pmean(jax.tree.map(jnp.mean, metrics), outer_loop.DEVICE_AXIS)

    split_keys = jnp.stack([randomness.stream(key, name) for name in splits])
    return lax.map(judge_split, (jnp.arange(len(splits)), split_keys))

  return evaluate
