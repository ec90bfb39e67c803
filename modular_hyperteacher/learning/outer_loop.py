"""Learning across tasks: the outer loop.

Source: Section 2, Algorithm 2. One outer step draws a meta-batch of tasks,
adapts to the support set of each, and follows the gradient of the mean query
loss, through the adaptation, with respect to what all tasks share.

Tasks are split over devices, seeds are `vmap`ped inside a device. Both leave
the curve of a seed as it is, up to the order of summation: task i of step n
depends on the seed, n and i alone.
"""

import dataclasses
from typing import Any, Callable, Mapping, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import optax

from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.learning import losses
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks

DEVICE_AXIS = 'devices'
Metrics = Mapping[str, jax.Array]


@dataclasses.dataclass(frozen=True)
class OuterConfig:
  """The outer loop's settings.

  Attributes:
    learning_rate: of AdamW.
    weight_decay: of AdamW, on every meta-parameter that is learned.
    clip_norm: the gradient is scaled to this global norm if it is longer;
      None to leave it.
    max_consecutive_skips: a step whose gradient is not finite is skipped and
      counted, unless this many steps in a row were skipped just before it. 0
      never skips.
    meta_batch_size: B, tasks per step, over all devices.
    num_outer_steps: steps over which a learning rate decays.
    final_fraction: share of the learning rate that a cosine decay ends at; 1
      for a constant learning rate.
    task_chunk_size: tasks whose gradient is computed at once; None for all of
      a device's. Bounds memory; changes results by rounding only.
  """

  learning_rate: float
  weight_decay: float
  clip_norm: float | None
  max_consecutive_skips: int
  meta_batch_size: int
  num_outer_steps: int | None = None
  final_fraction: float = 1.0
  task_chunk_size: int | None = None


class TrainState(NamedTuple):
  """What an outer step changes."""

  step: jax.Array  # [] int32, outer steps done
  meta_params: models.MetaParams
  opt_state: optax.OptState


class Learner(NamedTuple):
  """The algorithm of one experiment, as pure functions of one seed."""

  init: Callable[[jax.Array], TrainState]
  # step(state, task_params, data_key) -> state, metrics; inside of a mapped
  # axis named DEVICE_AXIS.
  step: Callable[..., tuple[TrainState, Metrics]]
  # adapt(meta_params, task_params, task, key) -> fast_params, from the task's
  # support set (or its latent, if every inner step draws a fresh one)
  adapt: Callable[..., models.FastParams]
  # judge(meta_params, task_params, task, key) -> metrics of one task,
  # fast_params
  judge: Callable[..., tuple[Metrics, models.FastParams]]


def make_optimizer(
    config: OuterConfig,
    is_learned: Callable[[models.MetaParams], Any] | None = None,
) -> optax.GradientTransformation:
  """Returns clipping, then AdamW, skipped where gradients are not finite.

  Args:
    config: the settings.
    is_learned: `is_learned(meta_params)` marks every leaf that is learned with
      True; the others stay as they are. None if all are learned.
  """
  optimizer = optax.adamw(
      _learning_rate(config), weight_decay=config.weight_decay
  )
  if config.clip_norm is not None:
    clip = optax.clip_by_global_norm(config.clip_norm)
    optimizer = optax.chain(clip, optimizer)
  if is_learned is not None:
    optimizer = optax.multi_transform(
        {True: optimizer, False: optax.set_to_zero()}, is_learned
    )
  return optax.apply_if_finite(optimizer, config.max_consecutive_skips)


def _learning_rate(config):
  if config.final_fraction == 1.0:
    return config.learning_rate
  return optax.cosine_decay_schedule(
      config.learning_rate, config.num_outer_steps, config.final_fraction
  )


def num_skipped(state: TrainState) -> jax.Array:
  """Returns how many outer gradients were not finite so far."""
  return state.opt_state.total_notfinite


class _TaskFunctions(NamedTuple):
  """What is done with one task."""

  start: Callable[..., models.FastParams]  # (meta_params, task)
  # (meta_params, task_params, task, key)
  adapt: Callable[..., models.FastParams]
  score: Callable[..., tuple[jax.Array, Metrics]]  # (meta, fast, batch)


def make_learner(
    task: tasks.TaskDistribution,
    objective: losses.Objective,
    model: models.MetaModel,
    inner: inner_loop.InnerConfig,
    outer: OuterConfig,
) -> Learner:
  """Returns the bilevel learner of one model on one task distribution."""
  functions = _make_task_functions(task, objective, model, inner)
  gradient = _make_gradient(task, functions, outer)
  optimizer = make_optimizer(outer, model.is_learned)

  def init(key):
    meta_params = model.init(key)
    return TrainState(
        jnp.zeros((), jnp.int32), meta_params, optimizer.init(meta_params)
    )

  def step(state, task_params, data_key):
    step_key = jax.random.fold_in(data_key, state.step)
    keys = device_shard(jax.random.split(step_key, outer.meta_batch_size))
    grads, metrics = lax.pmean(
        gradient(state.meta_params, task_params, keys), DEVICE_AXIS
    )
    updates, opt_state = optimizer.update(
        grads, state.opt_state, state.meta_params
    )
    meta_params = optax.apply_updates(state.meta_params, updates)
    metrics['gradient_norm'] = optax.tree.norm(grads)
    return TrainState(state.step + 1, meta_params, opt_state), metrics

  def judge(meta_params, task_params, drawn, key):
    start = functions.start(meta_params, drawn)
    fast_params = functions.adapt(meta_params, task_params, drawn, key)
    before, _ = functions.score(meta_params, start, drawn.support)
    after, _ = functions.score(meta_params, fast_params, drawn.support)
    _, metrics = functions.score(meta_params, fast_params, drawn.query)
    metrics |= {'support_loss_before': before, 'support_loss_after': after}
    return metrics, fast_params

  return Learner(init, step, functions.adapt, judge)


def _make_task_functions(task, objective, model, inner):
  """Adapting to a task, and scoring adapted parameters on a batch."""
  solve = inner_loop.make_adapt(model, objective, inner)

  def start(meta_params, drawn):
    if model.infer is None:
      return model.init_fast(meta_params)
    return model.infer(meta_params, drawn.support)

  def encode(meta_params, batch):
    return batch._replace(inputs=model.encode(meta_params, batch.inputs))

  def adapt(meta_params, task_params, drawn, key):
    if inner.fresh_support:

      def draw(step_key):
        support, _ = task.sample_examples(
            task_params, step_key, drawn.latent, 'train'
        )
        return encode(meta_params, support)

    else:
      draw = inner_loop.from_support(
          encode(meta_params, drawn.support), inner.batch_size
      )
    return solve(meta_params, draw, key, start(meta_params, drawn))

  def score(meta_params, fast_params, batch):
    encoding = model.encode(meta_params, batch.inputs)
    outputs = model.decode(meta_params, fast_params, encoding)
    loss = objective.loss(outputs, batch)
    return loss, {'loss': loss, **objective.metrics(outputs, batch)}

  return _TaskFunctions(start, adapt, score)


def _make_gradient(task, functions, outer):
  """Returns `gradient(meta_params, task_params, keys)`, a mean over tasks.

  One key per task. Chunk after chunk of tasks is drawn, adapted to and
  differentiated; only the sum of gradients is kept.
  """

  def mean_loss(meta_params, task_params, keys):
    def one_task(key):
      sample_key, adapt_key = jax.random.split(key)
      drawn = task.sample(task_params, sample_key, 'train')
      fast_params = functions.adapt(
          meta_params, task_params, drawn, adapt_key
      )
      return functions.score(meta_params, fast_params, drawn.query)

    loss, metrics = jax.vmap(one_task)(keys)
    return loss.mean(), jax.tree.map(jnp.mean, metrics)

  def gradient(meta_params, task_params, keys):
    chunk_size = min(outer.task_chunk_size or len(keys), len(keys))
    chunks = keys.reshape(-1, chunk_size)

    def add_chunk(total, chunk_keys):
      grads, metrics = jax.grad(mean_loss, has_aux=True)(
          meta_params, task_params, chunk_keys
      )
      return jax.tree.map(jnp.add, total, grads), metrics

    zeros = jax.tree.map(jnp.zeros_like, meta_params)
    total, metrics = lax.scan(add_chunk, zeros, chunks)
    return (
        jax.tree.map(lambda x: x / len(chunks), total),
        jax.tree.map(jnp.mean, metrics),
    )

  return gradient


def device_shard(tree: Any) -> Any:
  """Returns this device's share of a tree whose leaves have B in front."""
  num_devices = lax.axis_size(DEVICE_AXIS)

  def shard(x):
    share = x.shape[0] // num_devices
    start = lax.axis_index(DEVICE_AXIS) * share
    return lax.dynamic_slice_in_dim(x, start, share)

  return jax.tree.map(shard, tree)

