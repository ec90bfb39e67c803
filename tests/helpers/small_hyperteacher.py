"""A small hyperteacher, its tasks and targets; shared by tests."""

from collections.abc import Callable
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks import hyperteacher

X, H, Y = 5, 6, 4


@functools.lru_cache
def make(**overrides: Any) -> tasks.TaskDistribution:
  fields: dict[str, Any] = dict(
      num_modules=4,
      max_active=2,
      # Faster to compile than random support.
      task_support='non_compositional',
      fraction_ood=0.25,
      input_dim=X,
      output_dim=Y,
      teacher_hidden_dim=H,
      teacher_num_hidden=3,
      num_support=12,
      num_query=8,
      temperature=0.3,
      num_standardisation=50,
  )
  return hyperteacher.make(**(fields | overrides))


@functools.lru_cache
def init(
    world: tasks.TaskDistribution, seed: int = 0
) -> hyperteacher.HyperteacherParams:
  return world.init(jax.random.key(seed))


def sample(
    world: tasks.TaskDistribution,
) -> Callable[[Any, jax.Array], tasks.Task]:
  # Not compiled: the operations of all worlds here are compiled once.
  return lambda params, key: world.sample(params, key, 'train')


def examples(
    world: tasks.TaskDistribution,
) -> Callable[[Any, jax.Array, Any], tuple[tasks.Batch, tasks.Batch]]:
  return lambda params, key, latent: world.sample_examples(
      params, key, latent, 'train'
  )


def targets(
    world: tasks.TaskDistribution,
    params: hyperteacher.HyperteacherParams,
    latent: Any,
    seed: int = 0,
) -> np.ndarray:
  """Returns the targets of all examples, [S + Q, Y]."""
  batches = examples(world)(params, jax.random.key(seed), jnp.asarray(latent))
  return np.concatenate([batch.targets for batch in batches])
