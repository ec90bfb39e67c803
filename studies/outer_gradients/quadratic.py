"""A bilevel problem in closed form, with the interface of a real one.

  l_in = 1/2 phi' A phi - phi' theta,   l_out = 1/2 |phi - c|^2

with A diagonal. The free phase ends at phi*(theta) = A^-1 theta, so the outer
gradient is A^-1 (phi* - c).
"""

import types
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.learning import estimates
from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.models import base as models
from modular_hyperteacher.studies.outer_gradients import surrogates
from modular_hyperteacher.tasks import base as tasks

CURVATURES = np.geomspace(0.05, 1.0, 20)
_draw = np.random.default_rng(3318)
THETA, C = _draw.normal(size=20), _draw.normal(size=20)


def make_problem(
    curvatures: np.ndarray, num_steps: int, momentum: float = 0.0
) -> estimates.Problem:
  """Returns the problem, whose descents start at zero, with a rate of one.

  Args:
    curvatures: the diagonal of A, [n].
    num_steps: the number of steps of the free phase.
    momentum: the momentum of the inner loop.
  """

  def loss(outputs: jax.Array, batch: tasks.Batch) -> jax.Array:
    fast_params, meta_params = outputs
    if batch.targets.size:
      return 0.5 * jnp.sum((fast_params - batch.targets) ** 2)
    curved = 0.5 * jnp.vdot(curvatures, fast_params**2)
    return curved - jnp.vdot(fast_params, meta_params)

  model = models.MetaModel(
      init=lambda key: jnp.zeros(len(curvatures)),
      init_fast=jnp.zeros_like,
      encode=models.identity_encoding,
      decode=lambda meta_params, fast_params, encoding: jnp.stack(
          [fast_params, meta_params]
      ),
  )
  inner = inner_loop.InnerConfig(
      num_steps=num_steps, learning_rate=1.0, solver='sgd', momentum=momentum
  )
  objective = tasks.Objective(loss, lambda outputs, batch: {})
  only = types.SimpleNamespace(objective=objective)  # No task is drawn.
  return estimates.Problem(cast(Any, only), model, inner)


def make_task(c: np.ndarray) -> tasks.Task:
  """Returns the task whose query set is c."""
  empty = jnp.zeros(0)
  support, query = (
      tasks.Batch(empty, targets, empty) for targets in (empty, jnp.array(c))
  )
  return tasks.Task(support, query, empty)


def gradient(
    rule: outer_loop.OuterConfig,
    problem: estimates.Problem,
    theta: np.ndarray = THETA,
    c: np.ndarray = C,
) -> np.ndarray:
  """Returns a rule's estimate, [n]."""
  estimate = rule.make_estimate(problem)
  found = jax.jit(jax.grad(estimate, has_aux=True), static_argnums=1)(
      jnp.array(theta), None, make_task(c), jax.random.key(0)
  )
  return np.asarray(found[0])


def unrolled(num_steps: int, curvatures: np.ndarray = CURVATURES) -> np.ndarray:
  """Returns the gradient through all steps, in closed form."""
  reached = (1 - (1 - curvatures) ** num_steps) / curvatures
  return reached * (reached * THETA - C)


def closed_form(
    contrast: surrogates.Contrast,
    num_free: int,
    num_last: int,
    beta: float,
    curvatures: np.ndarray = CURVATURES,
) -> np.ndarray:
  """Returns a contrastive rule's estimate, without a descent.

  A descent of T steps on curvatures A leaves (I - A)^T of the way to the
  minimum. As dL / dtheta = -phi, the estimate is -sum_k w_k phi_k / b.
  """
  free = THETA / curvatures * (1 - (1 - curvatures) ** num_free)
  estimate = np.zeros_like(curvatures)
  for multiple, weight in zip(contrast.strengths, contrast.weights):
    strength = multiple * beta
    curved, pull = curvatures + strength, THETA + strength * C
    if contrast.linear:
      curved, pull = curvatures, THETA - strength * (free - C)
    scale = 1 + strength if contrast.rescaled else 1.0
    # Where a negative nudge takes all curvature, every step adds the pull.
    with np.errstate(divide='ignore', invalid='ignore'):
      share = (1 - (1 - curved / scale) ** num_last) / (curved / scale)
    share = np.where(curved == 0, num_last, share)
    end = free + share * (pull - curved * free) / scale
    if multiple == 0 and not contrast.control:
      end = free
    estimate -= weight * end / beta
  return estimate


def exact(curvatures: np.ndarray = CURVATURES) -> np.ndarray:
  """Returns the gradient at the inner minimum, in closed form."""
  return (THETA / curvatures - C) / curvatures


def compare(found: np.ndarray, true: np.ndarray) -> tuple[float, float]:
  """Returns the relative error of an estimate, and its cosine."""
  error = np.linalg.norm(found - true) / np.linalg.norm(true)
  norms = np.linalg.norm(found) * np.linalg.norm(true)
  return float(error), float(found.ravel() @ true.ravel() / norms)
