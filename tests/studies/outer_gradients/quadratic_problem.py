"""The problem of `quadratic`, with the interface of a real one."""

import types
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.learning import estimates
from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.models import base as models
from modular_hyperteacher.studies.outer_gradients import quadratic
from modular_hyperteacher.tasks import base as tasks


def make_problem(num_steps: int) -> estimates.Problem:
  """Returns the problem, whose free phase takes so many steps.

  Descents start at zero, with a rate of one.
  """

  def loss(outputs: jax.Array, batch: tasks.Batch) -> jax.Array:
    fast_params, meta_params = outputs
    if batch.targets.size:
      return 0.5 * jnp.sum((fast_params - batch.targets) ** 2)
    curved = 0.5 * jnp.vdot(quadratic.CURVATURES, fast_params**2)
    return curved - jnp.vdot(fast_params, meta_params)

  model = models.MetaModel(
      init=lambda key: jnp.zeros(len(quadratic.CURVATURES)),
      init_fast=jnp.zeros_like,
      encode=models.identity_encoding,
      decode=lambda meta_params, fast_params, encoding: jnp.stack(
          [fast_params, meta_params]
      ),
  )
  inner = inner_loop.InnerConfig(
      num_steps=num_steps, learning_rate=1.0, solver='sgd'
  )
  objective = tasks.Objective(loss, lambda outputs, batch: {})
  only = types.SimpleNamespace(objective=objective)  # No task is drawn.
  return estimates.Problem(cast(Any, only), model, inner)


def make_task() -> tasks.Task:
  """Returns the task whose query set is c."""
  empty = jnp.zeros(0)
  support, query = (
      tasks.Batch(empty, targets, empty)
      for targets in (empty, jnp.array(quadratic.C))
  )
  return tasks.Task(support, query, empty)


def gradient(
    rule: outer_loop.OuterConfig, problem: estimates.Problem
) -> np.ndarray:
  """Returns a rule's estimate, [n]."""
  estimate = rule.make_estimate(problem)
  found = jax.jit(jax.grad(estimate, has_aux=True), static_argnums=1)(
      jnp.array(quadratic.THETA), None, make_task(), jax.random.key(0)
  )
  return np.asarray(found[0])
