"""Learning across tasks: the outer loop.

Source: Section 2, Algorithm 2. One outer step draws a meta-batch of tasks,
adapts to the support set of each, and updates the shared parameters by the
gradient of the mean query loss through the adaptation.

Tasks are divided over devices, and seeds are `vmap`ped on every device.
Neither changes a seed's results, up to the order of summation: task i of step
n depends only on the seed, n and i.
"""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Annotated, Any, cast, ClassVar, NamedTuple

import jax
from jax import flatten_util
from jax import lax
import jax.numpy as jnp
import optax

from modular_hyperteacher import errors
from modular_hyperteacher import randomness
from modular_hyperteacher.learning import estimates
from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.untrusted import rules

DEVICE_AXIS = 'devices'
Metrics = Mapping[str, jax.Array]


@dataclasses.dataclass(frozen=True, kw_only=True)
class OuterSettings(rules.Record):
  """What every way of learning across tasks sets."""

  BLOCK: ClassVar[str] = 'model.outer'

  learning_rate: rules.Positive  # The largest one.
  # The maximum global norm of the gradient.
  clip_norm: (
      Annotated[float, rules.positive(', or None for no clipping')] | None
  )
  meta_batch_size: rules.Count  # B, tasks per step, over all devices.
  num_outer_steps: rules.Count  # Steps over which a learning rate changes.


@dataclasses.dataclass(frozen=True, kw_only=True)
class OuterConfig(OuterSettings):
  """The settings of the bilevel outer loop."""

  weight_decay: rules.NotNegative  # AdamW's, of learned meta-parameters.
  # Steps with a gradient that is not finite are skipped and counted, but at
  # most this many in a row. 0 never skips.
  max_consecutive_skips: Annotated[int, rules.at_least(0)]
  num_outer_steps: rules.Count | None = None
  # Fraction of the learning rate at the end of a cosine decay; 1 for none.
  final_fraction: rules.Share = 1.0
  # For learned gates, whose own AdamW decays no weights and clips their
  # gradients apart.
  gate_learning_rate: rules.Positive = 0.0075
  decay_vectors: bool = True  # Whether weight decay applies to biases etc.
  # Tasks per gradient computation; None for all of a device's tasks. Bounds
  # memory; changes results by rounding only.
  task_chunk_size: int | None = None
  # How the gradient is estimated: 'unrolled' differentiates through the
  # adaptation. Studies add other names, with subclasses of this one.
  gradient: str = estimates.UNROLLED

  def make_estimate(self, problem: estimates.Problem) -> estimates.Estimate:
    """Returns the estimate of a task's gradient."""
    return estimates.unrolled(problem)


class TrainState(NamedTuple):
  """The state that an outer step updates."""

  step: jax.Array  # [] int32, outer steps done
  meta_params: models.MetaParams
  opt_state: optax.OptState


# (state, task_params, data_key) -> the new state, and metrics. Runs inside a
# mapped axis named DEVICE_AXIS.
Step = Callable[[TrainState, Any, jax.Array], tuple[TrainState, Metrics]]


class Training(NamedTuple):
  """Training as pure functions of one seed; see `programs.System`."""

  init: Callable[[jax.Array], TrainState]
  step: Step


class Learner(NamedTuple):
  """The algorithm of one experiment, as pure functions of one seed."""

  init: Callable[[jax.Array], TrainState]
  step: Step
  adapt: estimates.AdaptToTask
  # As `adapt` -> ({metric: scalar}, adapted parameters).
  evaluate_task: Callable[
      [models.MetaParams, tasks.TaskParams, tasks.Task, jax.Array],
      tuple[Metrics, models.FastParams],
  ]


def make_optimizer(
    config: OuterConfig,
    is_learned: Callable[[models.MetaParams], Any] | None = None,
    is_gate: Callable[[models.MetaParams], Any] | None = None,
) -> optax.GradientTransformation:
  """Returns AdamW with clipping; skips or counts gradients not finite.

  `is_learned(meta_params)` is True for every learned leaf, False for fixed
  ones; None if all are learned. `is_gate(meta_params)` is True for gates.
  """
  optimizer = _adamw(config, config.learning_rate, config.weight_decay)
  if is_learned is not None:
    optimizer = optax.multi_transform(
        {True: optimizer, False: optax.set_to_zero()}, is_learned
    )
  if is_gate is not None:
    # Weight decay would pull gates towards zero, where they switch.
    gates = _adamw(config, config.gate_learning_rate, weight_decay=0.0)
    optimizer = optax.multi_transform({True: gates, False: optimizer}, is_gate)
  return optax.apply_if_finite(optimizer, config.max_consecutive_skips)


def _adamw(
    config: OuterConfig, learning_rate: float, weight_decay: float
) -> optax.GradientTransformation:
  """Returns AdamW with the config's clipping and decay of the rate."""
  rate: optax.ScalarOrSchedule = learning_rate
  if config.final_fraction != 1.0:
    num_steps = config.num_outer_steps
    if num_steps is None:
      raise errors.UserError(
          'model.outer.num_outer_steps is None; a final_fraction needs it.'
      )
    rate = optax.cosine_decay_schedule(
        learning_rate, num_steps, config.final_fraction
    )
  return adamw(rate, weight_decay, config.clip_norm, config.decay_vectors)


def adamw(
    learning_rate: optax.ScalarOrSchedule,
    weight_decay: float,
    clip_norm: float | None,
    decay_vectors: bool = False,
) -> optax.GradientTransformation:
  """Returns AdamW, which decays matrices, and vectors if asked.

  `clip_norm` bounds the norm of all gradients together; None does not clip.
  """
  mask = None if decay_vectors else is_matrix
  optimizer = optax.adamw(learning_rate, weight_decay=weight_decay, mask=mask)
  if clip_norm is None:
    return optimizer
  return optax.chain(optax.clip_by_global_norm(clip_norm), optimizer)


def is_matrix(params: Any) -> Any:
  """Returns a tree like the parameters, False for vectors and numbers.

  Haiku's biases, scales and offsets are vectors, also if stacked over layers.
  """
  vectors = 'b', 'scale', 'offset'
  return jax.tree_util.tree_map_with_path(
      lambda path, x: x.ndim > 1
      and getattr(path[-1] if path else None, 'key', '') not in vectors,
      params,
  )


def num_skipped(state: TrainState) -> jax.Array:
  """Returns the number of outer gradients so far that were not finite."""
  return cast(optax.ApplyIfFiniteState, state.opt_state).total_notfinite


def make_learner(
    task_distribution: tasks.TaskDistribution,
    model: models.MetaModel,
    inner: inner_loop.InnerConfig,
    outer: OuterConfig,
) -> Learner:
  """Returns the bilevel learner of one model on one task distribution."""
  shared_inputs = task_distribution.shared_inputs
  errors.require(
      inner.fresh_support or not shared_inputs,
      'task.shared_inputs',
      shared_inputs,
      'without model.inner.fresh_support it must be False',
  )
  problem = estimates.Problem(task_distribution, model, inner)
  estimate = outer.make_estimate(problem)

  def mean_loss(
      meta_params: models.MetaParams,
      task_params: tasks.TaskParams,
      keys: jax.Array,
      step_key: jax.Array,
  ) -> estimates.Loss:
    estimate_task = estimate
    if shared_inputs:
      # `vmap` does not map it, so the inputs have no axis of tasks.
      inputs_key = randomness.stream(step_key, 'shared_inputs')
      shared = problem._replace(inputs_key=inputs_key)
      estimate_task = outer.make_estimate(shared)

    def one_task(key: jax.Array) -> estimates.Loss:
      sample_key, adapt_key = jax.random.split(key)
      task = task_distribution.sample(task_params, sample_key, 'train')
      return estimate_task(meta_params, task_params, task, adapt_key)

    loss, metrics = jax.vmap(one_task)(keys)
    return loss.mean(), jax.tree.map(jnp.mean, metrics)

  def evaluate_task(
      meta_params: models.MetaParams,
      task_params: tasks.TaskParams,
      task: tasks.Task,
      key: jax.Array,
  ) -> tuple[Metrics, models.FastParams]:
    initial, _ = problem.start(meta_params, task, key)
    fast_params = problem.adapt(meta_params, task_params, task, key)
    before, _ = problem.score(meta_params, initial, task.support)
    after, _ = problem.score(meta_params, fast_params, task.support)
    _, metrics = problem.score(meta_params, fast_params, task.query)
    metrics |= {'support_loss_before': before, 'support_loss_after': after}
    if model.gate is not None:
      metrics |= gate_sparsity(model.gate(meta_params))
    return metrics, fast_params

  training = make_training(
      model.init,
      mean_loss,
      make_optimizer(outer, model.is_learned, model.is_gate),
      outer.meta_batch_size,
      outer.task_chunk_size,
  )
  return Learner(*training, problem.adapt, evaluate_task)


def make_training(
    init_params: Callable[[jax.Array], Any],
    loss: Callable[
        [models.MetaParams, Any, jax.Array, jax.Array],
        tuple[jax.Array, Metrics],
    ],
    optimizer: optax.GradientTransformation,
    meta_batch_size: int,
    task_chunk_size: int | None,
) -> Training:
  """Returns training by the mean gradient over the tasks of a meta-batch.

  All devices together take `meta_batch_size` tasks per step. To bound memory, a
  device processes at most `task_chunk_size` of its tasks at a time, None for
  all, and keeps only the sum of gradients.

  `loss(params, task_params, keys, step_key)` returns the mean loss of the tasks
  of these keys, and mean metrics; `step_key` is the same for all of a step.
  """

  def init(key: jax.Array) -> TrainState:
    params = init_params(key)
    return TrainState(jnp.zeros((), jnp.int32), params, optimizer.init(params))

  def step(
      state: TrainState, task_params: Any, data_key: jax.Array
  ) -> tuple[TrainState, Metrics]:
    params = state.meta_params
    step_key = jax.random.fold_in(data_key, state.step)
    keys = device_shard(jax.random.split(step_key, meta_batch_size))
    most = min(task_chunk_size or len(keys), len(keys))
    chunk_size = max(n for n in range(1, most + 1) if len(keys) % n == 0)
    chunks = keys.reshape(-1, chunk_size)

    def add_chunk(total: Any, chunk: jax.Array) -> tuple[Any, Metrics]:
      grads, metrics = jax.grad(loss, has_aux=True)(
          params, task_params, chunk, step_key
      )
      return jax.tree.map(jnp.add, total, grads), metrics

    zeros = jax.tree.map(jnp.zeros_like, params)
    total, metrics = lax.scan(add_chunk, zeros, chunks)
    grads, metrics = lax.pmean(
        (
            jax.tree.map(lambda x: x / len(chunks), total),
            jax.tree.map(jnp.mean, metrics),
        ),
        DEVICE_AXIS,
    )
    updates, opt_state = optimizer.update(grads, state.opt_state, params)
    params = optax.apply_updates(params, updates)
    metrics['gradient_norm'] = optax.tree.norm(grads)
    return TrainState(state.step + 1, params, opt_state), metrics

  return Training(init, step)


def gate_sparsity(gate: Any) -> dict[str, jax.Array]:
  """Returns the share of gates that are closed, which are 0, and by layer.

  Keys are 'closed', and 'closed_{layer}' such as 'closed_linear_1'.
  """

  def closed(tree: Any) -> jax.Array:
    flat, _ = flatten_util.ravel_pytree(tree)
    return (flat == 0).mean()

  return {'closed': closed(gate)} | {
      f'closed_{layer.rpartition("/")[2]}': closed(gates)
      for layer, gates in gate.items()
  }


def device_shard(tree: Any) -> Any:
  """Returns this device's share of a tree of arrays [B, ...]."""
  num_devices = lax.axis_size(DEVICE_AXIS)

  def shard(x: jax.Array) -> jax.Array:
    share = x.shape[0] // num_devices
    start = lax.axis_index(DEVICE_AXIS) * share
    return lax.dynamic_slice_in_dim(x, start, share)

  return jax.tree.map(shard, tree)
