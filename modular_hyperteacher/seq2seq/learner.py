"""Learning across episodes: one gradient step per batch of episodes.

Source: Section 4.1 of Lake (2019), and the released code. The loss is the
cross-entropy of the query outputs, given the symbols before (teacher forcing),
per symbol. With support loss the support set is asked as well, of a memory
that holds it.
"""

import dataclasses
from typing import Any, Mapping, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import optax

from modular_hyperteacher import errors
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.seq2seq import episodes
from modular_hyperteacher.seq2seq import model as models
from modular_hyperteacher.seq2seq import vocabulary

_ADAM = {'b1': 0.9, 'b2': 0.999, 'eps': 1e-8}


@dataclasses.dataclass(frozen=True)
class OuterConfig:
  """How the network is trained.

  Attributes:
    learning_rate: of Adam, at first.
    decay_after: share of the steps after which it is lower, once.
    decay_factor: by how much it is multiplied then.
    reset_at_decay: whether Adam then starts anew, its moments forgotten.
    clip_norm: the gradients of the decoder, and all others, are scaled to this
      norm if they are longer.
    support_loss: whether the support set is asked, too.
    meta_batch_size: episodes per step, over all devices.
    num_outer_steps: of which `decay_after` is a share.
  """

  learning_rate: float
  decay_after: float
  decay_factor: float
  reset_at_decay: bool
  clip_norm: float
  support_loss: bool
  meta_batch_size: int
  num_outer_steps: int

  def __post_init__(self):
    for field in ('learning_rate', 'decay_factor', 'clip_norm'):
      if not getattr(self, field) > 0:
        raise errors.UserError(
            f'model.outer.{field} is {getattr(self, field)}; it must be'
            ' positive.'
        )
    if not 0 < self.decay_after <= 1:
      raise errors.UserError(
          f'model.outer.decay_after is {self.decay_after}; it must be positive'
          ' and at most 1.'
      )

  @property
  def decay_step(self) -> int:
    """The first step with the lower rate."""
    return round(self.decay_after * self.num_outer_steps)


class Judged(NamedTuple):
  """How well rows were decoded."""

  loss: jax.Array  # [N], sum over the symbols of a row, nats
  num_symbols: jax.Array  # [N], EOS included
  correct: jax.Array  # [N] float, 1 where all of a row is right


def judge(logits: jax.Array, outputs: vocabulary.Sequences) -> Judged:
  """Returns how logits [T, N, V] compare with targets.

  Greedy decoding yields exactly the target if, with the target's symbols
  given, each next one of them is the likeliest: until a first mistake, both
  see the same symbols. So `correct` needs no decoding.
  """
  targets, mask = outputs.tokens.T, outputs.mask.T
  log_probs = jax.nn.log_softmax(logits)
  chosen = jnp.take_along_axis(log_probs, targets[..., None], -1)[..., 0]
  is_right = jnp.argmax(logits, -1) == targets
  return Judged(
      loss=-jnp.where(mask, chosen, 0.0).sum(0),
      num_symbols=outputs.lengths,
      correct=(is_right | ~mask).all(0).astype(jnp.float32),
  )


def make_optimizer(config: OuterConfig) -> optax.GradientTransformation:
  """Returns clipping, half by half, then Adam; it counts non-finite steps."""
  rate = optax.piecewise_constant_schedule(
      config.learning_rate, {config.decay_step: config.decay_factor}
  )
  clip = optax.clip_by_global_norm(config.clip_norm)
  adam = optax.scale_by_adam(**_ADAM)
  if config.reset_at_decay:
    adam = _reset_at(adam, config.decay_step)
  return optax.apply_if_finite(
      optax.chain(
          optax.partition({True: clip, False: clip}, _mark_decoder),
          adam,
          optax.scale_by_learning_rate(rate),
      ),
      max_consecutive_errors=0,
  )


def _mark_decoder(params):
  """Returns a tree like the parameters, True where they are the decoder's."""
  return {
      module: dict.fromkeys(leaves, models.is_decoders(module))
      for module, leaves in params.items()
  }


class _ResetState(NamedTuple):
  count: jax.Array
  inner: Any


def _reset_at(transform, step):
  """Returns a transformation that forgets its state at a step."""

  def init(params):
    return _ResetState(jnp.zeros((), jnp.int32), transform.init(params))

  def update(updates, state, params=None):
    fresh = transform.init(updates)
    inner = jax.tree.map(
        lambda new, old: jnp.where(state.count == step, new, old),
        fresh,
        state.inner,
    )
    updates, inner = transform.update(updates, inner, params)
    return updates, _ResetState(state.count + 1, inner)

  return optax.GradientTransformation(init, update)


class Learner(NamedTuple):
  """Training as pure functions of one seed; see `programs.System`."""

  init: Any
  step: Any


def make(
    world: episodes.EpisodeDistribution,
    network: models.Model,
    config: OuterConfig,
) -> Learner:
  """Returns how a network learns from a world's episodes."""
  optimizer = make_optimizer(config)

  def init(key):
    params = network.init(key)
    return outer_loop.TrainState(
        jnp.zeros((), jnp.int32), params, optimizer.init(params)
    )

  def loss(params, world_params, key):
    episode_key, dropout_key = jax.random.split(key)
    episode = world.sample(world_params, episode_key)
    asked = episode.query
    if config.support_loss:
      asked = vocabulary.Pairs(
          *map(vocabulary.concatenate, episode.support, episode.query)
      )
    decoded, _ = network.apply(
        params, dropout_key, episode.support, asked, True
    )
    return summarise(judge(decoded.logits, asked.outputs))

  def step(state, world_params, data_key):
    step_key = jax.random.fold_in(data_key, state.step)
    keys = outer_loop.device_shard(
        jax.random.split(step_key, config.meta_batch_size)
    )

    def add_episode(total, key):
      (_, metrics), grads = jax.value_and_grad(loss, has_aux=True)(
          state.meta_params, world_params, key
      )
      return jax.tree.map(jnp.add, total, grads), metrics

    zeros = jax.tree.map(jnp.zeros_like, state.meta_params)
    total, metrics = lax.scan(add_episode, zeros, keys)
    grads, metrics = lax.pmean(
        (
            jax.tree.map(lambda x: x / len(keys), total),
            jax.tree.map(jnp.mean, metrics),
        ),
        outer_loop.DEVICE_AXIS,
    )
    updates, opt_state = optimizer.update(
        grads, state.opt_state, state.meta_params
    )
    params = optax.apply_updates(state.meta_params, updates)
    metrics['gradient_norm'] = optax.tree.norm(grads)
    return outer_loop.TrainState(state.step + 1, params, opt_state), metrics

  return Learner(init, step)


def summarise(judged: Judged) -> tuple[jax.Array, Mapping[str, jax.Array]]:
  """Returns the loss per symbol, nats, and the share of rows that are right."""
  loss = judged.loss.sum() / judged.num_symbols.sum()
  return loss, {'loss': loss, 'accuracy': judged.correct.mean()}
