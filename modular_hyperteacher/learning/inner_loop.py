"""The inner loop, which adapts a model to one task.

Source: Section 2, Algorithm 2. The fast parameters follow the gradient of the
loss on the task's support set:

  phi_0 = init_fast(theta), or the model's prediction from the support set
  phi_{t+1} = AdamW(phi_t, grad_phi loss(phi_t, theta; support))

Instead of AdamW there may be plain gradient descent, and a model may multiply
updates by gates (`models.base.MetaModel.gate`).

The outer gradient flows through all of it, including the optimiser; with first
order, only through phi_0 and the gates. If the inner problem is solved to its
optimum, as the theory assumes (Section 3), the second-order part of the outer
gradient vanishes. The adapted parameters may then be treated as constants, and
a least-squares solver may replace AdamW.
"""

from collections.abc import Callable
import dataclasses
import math
from typing import Annotated, Any, cast, ClassVar, NamedTuple

import jax
from jax import flatten_util
from jax import lax
import jax.numpy as jnp
import optax

from modular_hyperteacher import errors
from modular_hyperteacher.learning import levenberg_marquardt
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.untrusted import rules

# key -> the batch of one inner step, with encodings in place of inputs.
Draw = Callable[[jax.Array], tasks.Batch]
_Carry = tuple[models.FastParams, optax.OptState]
SOLVERS = ('adamw', 'sgd', 'levenberg_marquardt')
# Up to this many fast parameters, updating them as one vector is faster than
# leaf by leaf: fewer operations outweigh the copies.
_MAX_JOINED = 2**13
# Number of fresh batches sampled together; affects speed, not results.
_DRAWN_AHEAD = 25


@dataclasses.dataclass(frozen=True)
class InnerConfig(rules.Record):
  """The inner loop's settings."""

  BLOCK: ClassVar[str] = 'model.inner'

  # Or iterations of Levenberg-Marquardt; 0 for no adaptation, as for a model
  # that predicts its fast parameters.
  num_steps: int
  learning_rate: float = 0.0  # AdamW's or SGD's.
  weight_decay: rules.NotNegative = 0.0  # AdamW's, of every fast parameter.
  # AdamW adds it to the second moment inside the square root, whose second
  # derivative at zero otherwise makes outer gradients NaN.
  eps_root: rules.NotNegative = 0.0
  # Support examples per step, drawn with replacement; None for all, every step.
  batch_size: (
      Annotated[int, rules.at_least(1, ', or None for the whole support set')]
      | None
  ) = None
  # Levenberg-Marquardt, for objectives that are sums of squares, uses the whole
  # support set and, of the settings above, only `num_steps`.
  solver: Annotated[str, rules.one_of(SOLVERS)] = 'adamw'
  # Whether the outer gradient flows through the adaptation.
  second_order: bool = True
  # Whether every step sees a new support set of the task.
  fresh_support: bool = False
  # Whether every task starts from its own standard normal draw rather than from
  # the model's initial fast parameters.
  random_start: bool = False
  # Whether the outer gradient takes inner updates as constants, but flows
  # through the initial fast parameters and the gates. With neither order,
  # adapted parameters are constants, so MAML learns nothing.
  first_order: bool = False
  momentum: rules.BelowOne = 0.0  # SGD's.

  def __post_init__(self) -> None:
    super().__post_init__()
    self.require(
        self.batch_size is None or not self.fresh_support,
        'batch_size',
        'with fresh_support it must be None',
    )
    self.require(
        not (self.first_order and self.second_order),
        'first_order',
        'with second_order it must be False',
    )
    needed: dict[str, Any] = {} if self.solver == 'sgd' else {'momentum': 0}
    if self.solver == 'levenberg_marquardt':
      orders = {'second_order': False, 'first_order': False}
      needed |= orders | {'fresh_support': False, 'batch_size': None}
    elif self.num_steps and self.solver == 'sgd':
      needed |= {'weight_decay': 0, 'eps_root': 0}
    for field, value in needed.items():
      rule = f'with solver {self.solver} it must be {value}'
      self.require(getattr(self, field) == value, field, rule)
    if self.num_steps and self.solver != 'levenberg_marquardt':
      fits = 0 < self.learning_rate < math.inf
      self.require(fits, 'learning_rate', 'it must be positive')


def check(
    config: InnerConfig, objective: tasks.Objective, model: models.MetaModel
) -> None:
  """Raises UserError if this inner loop cannot adapt a model to a task."""
  if config.solver == 'adamw':
    errors.require(
        config.eps_root > 0 or not (config.second_order and config.num_steps),
        'model.inner.eps_root',
        config.eps_root,
        'it must be positive, or outer gradients are NaN',
    )
  elif config.solver == 'levenberg_marquardt':
    field, value = 'model.inner.solver', f"'{config.solver}'"
    rule = 'the loss of this task is not a sum of squares, so choose adamw'
    errors.require(objective.residuals, field, value, rule)
    rule = 'this model has gates or a penalty, so choose adamw'
    errors.require(not (model.gate or model.penalty), field, value, rule)


def make_optimizer(config: InnerConfig) -> optax.GradientTransformation:
  """Returns the inner loop's optimiser, AdamW or SGD."""
  if config.solver == 'sgd':
    return optax.sgd(config.learning_rate, config.momentum or None)
  return optax.adamw(
      config.learning_rate,
      eps_root=config.eps_root,
      weight_decay=config.weight_decay,
  )


class InnerLoop(NamedTuple):
  """The inner loop of a model, on tasks of one objective."""

  model: models.MetaModel
  objective: tasks.Objective
  config: InnerConfig

  def adapt(
      self,
      meta_params: models.MetaParams,
      fast_params: models.FastParams,
      draw: Draw,
      key: jax.Array,
  ) -> models.FastParams:
    """Returns fast parameters adapted to a task, given where they start.

    See `from_support` for the `draw` of a finite support set.
    """
    config = self.config
    if config.num_steps == 0:
      return fast_params
    least_squares = config.solver == 'levenberg_marquardt'
    solve = self._least_squares if least_squares else self._descend
    if config.second_order or config.first_order:
      return solve(meta_params, fast_params, draw, key)
    fixed = lax.stop_gradient((meta_params, fast_params))
    return lax.stop_gradient(solve(*fixed, draw, key))

  def support_loss(
      self,
      fast_params: models.FastParams,
      meta_params: models.MetaParams,
      batch: tasks.Batch,
  ) -> jax.Array:
    """Returns what the inner loop descends, the model's penalty included.

    The batch has encodings in place of inputs.
    """
    outputs = self.model.decode(meta_params, fast_params, batch.inputs)
    loss = self.objective.loss(outputs, batch)
    if self.model.penalty is not None:
      loss += self.model.penalty(meta_params, fast_params)
    return loss

  def _descend(
      self,
      meta_params: models.MetaParams,
      fast_params: models.FastParams,
      draw: Draw,
      key: jax.Array,
  ) -> models.FastParams:
    """Adapts by gradient descent with AdamW or SGD."""
    gate = None if self.model.gate is None else self.model.gate(meta_params)
    optimizer = make_optimizer(self.config)
    if models.num_params(fast_params) <= _MAX_JOINED:
      optimizer = optax.flatten(optimizer)

    def step(carry: _Carry, batch: tasks.Batch) -> tuple[_Carry, None]:
      fast_params, opt_state = carry
      gradient = jax.grad(self.support_loss)(fast_params, meta_params, batch)
      updates, opt_state = optimizer.update(gradient, opt_state, fast_params)
      if self.config.first_order:
        updates = lax.stop_gradient(updates)
      if gate is not None:
        # Gates act on finished updates: AdamW would rescale gated gradients,
        # and its weight decay would move weights whose gate is closed.
        updates = jax.tree.map(jnp.multiply, updates, gate)
      return (optax.apply_updates(fast_params, updates), opt_state), None

    def body(carry: _Carry, step_key: jax.Array) -> tuple[_Carry, Any]:
      if self.config.fresh_support and not self.config.second_order:
        return lax.scan(step, carry, jax.vmap(draw)(step_key))
      return step(carry, draw(step_key))

    carry = fast_params, optimizer.init(fast_params)
    step_keys = jax.random.split(key, self.config.num_steps)
    if self.config.second_order:
      # The backward pass gathers batches again instead of storing them: a batch
      # is the largest array of a step, and there may be a hundred steps.
      body = jax.checkpoint(
          body,
          prevent_cse=False,
          policy=lambda primitive, *_, **__: primitive is not lax.gather_p,
      )
    elif self.config.fresh_support:
      # Batches are small: drawing several together costs little more than one.
      ahead = math.gcd(self.config.num_steps, _DRAWN_AHEAD)
      step_keys = step_keys.reshape(-1, ahead)
    (fast_params, _), _ = lax.scan(body, carry, step_keys)
    return fast_params

  def _least_squares(
      self,
      meta_params: models.MetaParams,
      fast_params: models.FastParams,
      draw: Draw,
      key: jax.Array,
  ) -> models.FastParams:
    """Adapts by Levenberg-Marquardt on a single batch."""
    residuals_of = cast(tasks.Loss, self.objective.residuals)  # See `check`.
    batch = draw(key)
    start, unravel = flatten_util.ravel_pytree(fast_params)

    def residuals(flat: jax.Array) -> jax.Array:
      outputs = self.model.decode(meta_params, unravel(flat), batch.inputs)
      return residuals_of(outputs, batch)

    flat = levenberg_marquardt.minimise(residuals, start, self.config.num_steps)
    return unravel(flat)


def from_support(support: tasks.Batch, batch_size: int | None) -> Draw:
  """Returns a `draw` of `batch_size` examples with replacement, or of all."""

  def draw(key: jax.Array) -> tasks.Batch:
    if batch_size is None:
      return support
    num_support = support.targets.shape[0]
    rows = jax.random.randint(key, (batch_size,), 0, num_support)
    return tasks.take(support, rows)

  return draw
