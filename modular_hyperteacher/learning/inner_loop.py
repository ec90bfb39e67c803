"""Adaptation to one task: the inner loop, written once for every model.

Source: Section 2, Algorithm 2. From where the model starts, the fast
parameters follow the gradient of the loss on the task's support set:

  phi_0 = init_fast(theta), or what a model predicts from the support set
  phi_{t+1} = AdamW(phi_t, grad_phi loss(phi_t, theta; support))

It is differentiable throughout, the optimiser's own arithmetic included, so
the outer gradient is of second order. Where the inner problem is solved to its
optimum, as the theory assumes (Section 3), the second-order part vanishes:
there the adapted parameters count as constants, and a solver of least-squares
problems may take the optimiser's place.
"""

import dataclasses
import math
from typing import Callable

import jax
from jax import flatten_util
from jax import lax
import optax

from modular_hyperteacher.learning import least_squares
from modular_hyperteacher.learning import losses
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks

Draw = Callable[[jax.Array], tasks.Batch]
# Up to this size, updating all fast parameters as one vector is faster than
# leaf by leaf: the number of operations counts, not that of numbers copied.
_MAX_JOINED = 2**13
# Batches of fresh examples that are drawn at once; the same whatever it is.
_DRAWN_AHEAD = 25

# (meta_params, draw, key, start=None)
Adapt = Callable[..., models.FastParams]


SOLVERS = ('adamw', 'levenberg_marquardt')


@dataclasses.dataclass(frozen=True)
class InnerConfig:
  """The inner loop's settings.

  Attributes:
    num_steps: inner steps, or iterations of Levenberg-Marquardt; 0 to take
      what a model predicts as it is.
    learning_rate: of AdamW.
    weight_decay: of AdamW, on every fast parameter.
    eps_root: added to the second moment under the root. Without it the second
      derivative of the root at zero makes outer gradients NaN.
    batch_size: support examples per step, drawn with replacement; None for
      the whole support set at every step.
    solver: 'adamw', or 'levenberg_marquardt' for objectives that are sums of
      squares; the latter takes the whole support set and none of the settings
      above but `num_steps`.
    second_order: whether the outer gradient flows through the adaptation.
    fresh_support: whether every step sees a new support set of the task.
    random_start: whether a task starts from a standard normal draw of its own
      rather than from where the model starts.
  """

  num_steps: int
  learning_rate: float = 0.0
  weight_decay: float = 0.0
  eps_root: float = 0.0
  batch_size: int | None = None
  solver: str = 'adamw'
  second_order: bool = True
  fresh_support: bool = False
  random_start: bool = False


def make_optimizer(config: InnerConfig) -> optax.GradientTransformation:
  """Returns the inner loop's AdamW."""
  return optax.adamw(
      config.learning_rate,
      eps_root=config.eps_root,
      weight_decay=config.weight_decay,
  )


def make_adapt(
    model: models.MetaModel, objective: losses.Objective, config: InnerConfig
) -> Adapt:
  """Returns `adapt(meta_params, draw, key, start=None) -> fast_params`.

  `start` are the fast parameters to adapt, None for where the model starts
  with any task. `draw(key)` returns the batch of one inner step, with
  *encodings* in place of inputs. See `from_support` for a finite support set; a
  world that offers fresh examples at every step draws those.
  """
  make_solver = {
      'adamw': _make_descend,
      'levenberg_marquardt': _make_least_squares,
  }[config.solver]
  solve = make_solver(model, objective, config)

  def adapt(meta_params, draw, key, start=None):
    fast_params = model.init_fast(meta_params) if start is None else start
    if config.num_steps == 0:
      return fast_params
    if config.random_start:
      key, start_key = jax.random.split(key)
      fast_params = optax.tree.random_like(
          start_key, fast_params, sampler=jax.random.normal
      )
    if config.second_order:
      return solve(meta_params, fast_params, draw, key)
    fixed = lax.stop_gradient((meta_params, fast_params))
    return lax.stop_gradient(solve(*fixed, draw, key))

  return adapt


def _make_descend(model, objective, config):
  """Returns gradient descent with AdamW, from given fast parameters."""

  def support_loss(fast_params, meta_params, batch):
    outputs = model.decode(meta_params, fast_params, batch.inputs)
    return objective.loss(outputs, batch)

  def descend(meta_params, fast_params, draw, key):
    optimizer = make_optimizer(config)
    if models.num_params(fast_params) <= _MAX_JOINED:
      optimizer = optax.flatten(optimizer)

    def step(carry, batch):
      fast_params, opt_state = carry
      gradient = jax.grad(support_loss)(fast_params, meta_params, batch)
      updates, opt_state = optimizer.update(gradient, opt_state, fast_params)
      return (optax.apply_updates(fast_params, updates), opt_state), None

    def draw_and_step(carry, step_key):
      return step(carry, draw(step_key))

    def draw_and_take_steps(carry, keys):
      return lax.scan(step, carry, jax.vmap(draw)(keys))

    carry = fast_params, optimizer.init(fast_params)
    step_keys = jax.random.split(key, config.num_steps)
    if config.second_order:
      # The backward pass gathers a drawn batch again rather than keep it: it is
      # the largest thing in a step, and there may be a hundred steps.
      body = jax.checkpoint(
          draw_and_step,
          prevent_cse=False,
          policy=lambda primitive, *_, **__: primitive is not lax.gather_p,
      )
    elif config.fresh_support:
      # A task's examples are few: drawing some batches at once costs little
      # more than drawing one.
      ahead = math.gcd(config.num_steps, _DRAWN_AHEAD)
      body, step_keys = draw_and_take_steps, step_keys.reshape(-1, ahead)
    else:
      body = draw_and_step
    (fast_params, _), _ = lax.scan(body, carry, step_keys)
    return fast_params

  return descend


def _make_least_squares(model, objective, config):
  """Returns Levenberg-Marquardt on one batch, from given fast parameters."""

  def solve(meta_params, fast_params, draw, key):
    batch = draw(key)
    start, unravel = flatten_util.ravel_pytree(fast_params)

    def residuals(flat):
      outputs = model.decode(meta_params, unravel(flat), batch.inputs)
      return objective.residuals(outputs, batch)

    flat = least_squares.minimise(residuals, start, config.num_steps)
    return unravel(flat)

  return solve


def from_support(support: tasks.Batch, batch_size: int | None) -> Draw:
  """Returns a `draw` of `batch_size` examples with replacement, or of all."""

  def draw(key):
    if batch_size is None:
      return support
    num_support = support.targets.shape[0]
    rows = jax.random.randint(key, (batch_size,), 0, num_support)
    return tasks.take(support, rows)

  return draw
