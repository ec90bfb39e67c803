"""Estimates of the outer gradient, as gradients of surrogates.

Source: Zucchet*, Schug* et al. (2022), "A contrastive rule for meta-learning".
Inner loss l_in(phi, theta), outer loss l_out(phi, theta), augmented loss

  L(phi, theta, b) = l_in + b l_out

A surrogate is a number whose gradient with respect to theta, with all phi held
constant, is the estimate. So no rule differentiates through a descent:

  contrastive: sum_k w_k L(phi_k, theta, s_k b) / b,  phi_k ~ argmin L(., s_k b)
  implicit:    l_out - grad_phi l_in(phi, theta)' v,  v ~ H^-1 grad_phi l_out
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax import flatten_util
from jax import lax
import jax.numpy as jnp
import optax

from modular_hyperteacher.learning import estimates
from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks

Loss = Callable[[models.FastParams], jax.Array]
Carry = tuple[models.FastParams, optax.OptState]
# (product with H [P] -> [P], gradient of the outer loss [P]) -> v, [P].
Solve = Callable[[Callable[[jax.Array], jax.Array], jax.Array], jax.Array]


class Losses(NamedTuple):
  """A task's losses as functions of its fast parameters, given theta."""

  inner: Loss
  outer: Loss


# theta -> the losses of one task.
Bind = Callable[[models.MetaParams], Losses]


class Contrast(NamedTuple):
  """Which phases a contrastive rule compares.

  Attributes:
    strengths: s_k, multiples of beta; 0 is the free phase and stands first.
    weights: w_k, whose sum is 0 and whose sum of w_k s_k is 1.
    control: whether the phase of strength 0 goes on as long as the nudged ones,
      which cancels what an unfinished free phase would still move.
    linear: whether the nudge is the gradient of the outer loss after the free
      phase, in place of the outer loss.
    rescaled: whether nudged phases descend L / (1 + s_k b).
  """

  strengths: tuple[float, ...]
  weights: tuple[float, ...]
  control: bool = False
  linear: bool = False
  rescaled: bool = False


CONTRASTS = {
    'contrastive_standard': Contrast((0, 1), (-1, 1)),
    'contrastive_symmetric': Contrast((1, -1), (0.5, -0.5)),
    'contrastive_second_order': Contrast((0, 1, 2), (-1.5, 2, -0.5)),
    'contrastive_rescaled': Contrast((0, 1), (-1, 1), rescaled=True),
    'contrastive_control': Contrast((0, 1), (-1, 1), control=True),
    'linearised_control': Contrast((0, 1), (-1, 1), control=True, linear=True),
}


def bind(problem: estimates.Problem, task: tasks.Task) -> Bind:
  """Returns a task's losses, whose examples are encoded once."""
  model, objective = problem.model, problem.task_distribution.objective
  inner = inner_loop.InnerLoop(model, objective, problem.inner)

  def at(meta_params: models.MetaParams) -> Losses:
    support, query = (
        batch._replace(inputs=model.encode(meta_params, batch.inputs))
        for batch in (task.support, task.query)
    )
    return Losses(
        lambda fast: inner.support_loss(fast, meta_params, support),
        lambda fast: objective.loss(
            model.decode(meta_params, fast, query.inputs), query
        ),
    )

  return at


def descend(
    loss: Loss,
    optimizer: optax.GradientTransformation,
    carry: Carry,
    num_steps: int | jax.Array,
) -> Carry:
  """Returns parameters and the optimiser's state after some steps.

  It can be differentiated in reverse if the number of steps is static.
  """

  def step(_: jax.Array, carry: Carry) -> Carry:
    fast_params, state = carry
    gradient = jax.grad(loss)(fast_params)
    updates, state = optimizer.update(gradient, state, fast_params)
    return optax.apply_updates(fast_params, updates), state

  return lax.fori_loop(0, num_steps, step, carry)


def contrastive(
    losses_at: Bind,
    meta_params: models.MetaParams,
    free: models.FastParams,
    contrast: Contrast,
    beta: jax.typing.ArrayLike,
    optimizer: optax.GradientTransformation,
    num_steps: int | jax.Array,
    max_outer_loss: float | None = None,
) -> jax.Array:
  """Returns the surrogate of a contrastive rule.

  Args:
    losses_at: the losses of the task.
    meta_params: theta.
    free: fast parameters after the free phase.
    contrast: the phases.
    beta: the strength of the nudge.
    optimizer: the optimizer of the nudged phases, which all start from its
      initial state.
    num_steps: the number of steps of the nudged phases.
    max_outer_loss: above it, the outer loss no longer nudges; None for never.
  """

  def clip(loss: jax.Array) -> jax.Array:
    return loss if max_outer_loss is None else jnp.minimum(loss, max_outer_loss)

  free = lax.stop_gradient(free)
  fixed, losses = losses_at(lax.stop_gradient(meta_params)), losses_at(
      meta_params
  )
  pull = jax.grad(fixed.outer)(free)

  def nudge(strength: jax.Array) -> models.FastParams:
    def loss(fast_params: models.FastParams) -> jax.Array:
      if contrast.linear:  # Linear in the parameters, so never clipped.
        outer = optax.tree.vdot(pull, fast_params)
      else:
        outer = clip(fixed.outer(fast_params))
      augmented = fixed.inner(fast_params) + strength * outer
      return augmented / (1 + strength) if contrast.rescaled else augmented

    start = free, optimizer.init(free)
    return descend(loss, optimizer, start, num_steps)[0]

  strengths: Any = beta * jnp.array(contrast.strengths)
  has_free = 0 in contrast.strengths and not contrast.control
  ends = jax.vmap(nudge)(strengths[1:] if has_free else strengths)
  if has_free:
    ends = jax.tree.map(lambda x, y: jnp.concatenate([x[None], y]), free, ends)

  def augmented(
      fast_params: models.FastParams, strength: jax.Array
  ) -> jax.Array:
    inner = losses.inner(fast_params)
    if contrast.linear:
      return inner
    return inner + strength * clip(losses.outer(fast_params))

  values = jax.vmap(augmented)(lax.stop_gradient(ends), strengths)
  surrogate = jnp.vdot(jnp.array(contrast.weights), values) / beta
  return surrogate + losses.outer(free) if contrast.linear else surrogate


def implicit(
    losses_at: Bind,
    meta_params: models.MetaParams,
    free: models.FastParams,
    solve: Solve,
) -> jax.Array:
  """Returns the surrogate of the implicit function theorem.

  Args:
    losses_at: the losses of the task.
    meta_params: theta.
    free: fast parameters after the free phase.
    solve: how to approximate v.
  """
  flat, unravel = flatten_util.ravel_pytree(lax.stop_gradient(free))
  fixed, losses = losses_at(lax.stop_gradient(meta_params)), losses_at(
      meta_params
  )

  def slope_of(loss: Loss) -> Callable[[jax.Array], jax.Array]:
    return jax.grad(lambda x: loss(unravel(x)))

  def product(vector: jax.Array) -> jax.Array:
    return jax.jvp(slope_of(fixed.inner), (flat,), (vector,))[1]

  v = lax.stop_gradient(solve(product, slope_of(fixed.outer)(flat)))
  mixed = jnp.vdot(slope_of(losses.inner)(flat), v)
  return losses.outer(unravel(flat)) - mixed


def conjugate_gradients(num_iterations: int) -> Solve:
  """Returns conjugate gradients from zero.

  They stop where H has no positive curvature: when they have converged, and
  where H is indefinite, as that of a network may be.
  """

  def solve(
      product: Callable[[jax.Array], jax.Array], target: jax.Array
  ) -> jax.Array:
    def step(carry: Any, _: None) -> tuple[Any, None]:
      x, residual, direction = carry
      image = product(direction)
      curvature = jnp.vdot(direction, image)
      moves = curvature > 0
      square = jnp.vdot(residual, residual)
      size = jnp.where(moves, square / jnp.where(moves, curvature, 1.0), 0.0)
      x, left = x + size * direction, residual - size * image
      ratio = jnp.vdot(left, left) / jnp.where(square > 0, square, 1.0)
      return (x, left, jnp.where(moves, left + ratio * direction, 0.0)), None

    start = jnp.zeros_like(target), target, target
    return lax.scan(step, start, length=num_iterations)[0][0]

  return solve


def neumann(num_terms: int, rate: float) -> Solve:
  """Returns v = rate sum_{j <= num_terms} (I - rate H)^j grad l_out."""

  def solve(
      product: Callable[[jax.Array], jax.Array], target: jax.Array
  ) -> jax.Array:
    def step(carry: Any, _: None) -> tuple[Any, None]:
      total, term = carry
      term = term - rate * product(term)
      return (total + term, term), None

    total, _ = lax.scan(step, (target, target), length=num_terms)[0]
    return rate * total

  return solve
