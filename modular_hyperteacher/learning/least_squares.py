"""Small nonlinear least-squares problems, solved by Levenberg-Marquardt.

Source: Nocedal and Wright, "Numerical Optimization", Chapter 10.3. With
residuals r and their Jacobian J, an iteration solves

  (J^T J + damping * scale * I) delta = -J^T r

and takes the step if it lowers the squared norm of r. Damping then falls, so
that steps approach Gauss and Newton's, which end at a solution without error
in a few iterations; otherwise it rises and the step is tried shorter.
"""

from typing import Callable

import jax
from jax import lax
import jax.numpy as jnp
from jax.scipy import linalg

_FIRST_DAMPING = 1e-2
# Below, rounding of J^T J in float32 decides the step.
_LEAST_DAMPING = 1e-6
_FALL, _RISE = 0.1, 10.0


def minimise(
    residuals: Callable[[jax.Array], jax.Array],
    start: jax.Array,
    num_iterations: int,
) -> jax.Array:
  """Returns what minimises the squared norm of the residuals, locally.

  Args:
    residuals: `[P] -> [N]`, differentiable almost everywhere.
    start: `[P]`, where to start; P should be small, as a P x P system is
      solved in every iteration.
    num_iterations: accepted and refused steps together.

  Returns:
    `[P]`; its squared residuals are no larger than at the start.
  """
  identity = jnp.eye(start.size, dtype=start.dtype)

  def evaluate(point):
    value, jacobian = residuals(point), jax.jacfwd(residuals)(point)
    return value @ value, jacobian.T @ jacobian, jacobian.T @ value

  def iterate(carry, _):
    point, current, damping = carry
    loss, curvature, gradient = current
    scale = jnp.max(jnp.diagonal(curvature))
    # A problem without curvature at this point has no step to offer.
    scale = jnp.where(scale > 0, scale, 1.0)
    system = curvature + damping * scale * identity
    factor = linalg.cho_factor(system)
    proposal = point - linalg.cho_solve(factor, gradient)
    proposed = evaluate(proposal)
    better = proposed[0] < loss  # False for NaN.
    point, current = jax.tree.map(
        lambda new, old: jnp.where(better, new, old),
        (proposal, proposed),
        (point, current),
    )
    damping = jnp.where(
        better, jnp.maximum(damping * _FALL, _LEAST_DAMPING), damping * _RISE
    )
    return (point, current, damping), None

  damping = jnp.asarray(_FIRST_DAMPING, start.dtype)
  carry = start, evaluate(start), damping
  (point, _, _), _ = lax.scan(iterate, carry, length=num_iterations)
  return point
