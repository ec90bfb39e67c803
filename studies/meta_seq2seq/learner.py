"""Learning across episodes: one gradient step per batch of episodes.

Source: Section 4.1 of Lake (2019), and the released code. The loss is the
cross-entropy per symbol of the query outputs, with teacher forcing. With
support loss, the support set is predicted as well, from a memory that holds it.
"""

from collections.abc import Mapping
import dataclasses
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.studies.meta_seq2seq import episodes
from modular_hyperteacher.studies.meta_seq2seq import model as models
from modular_hyperteacher.studies.meta_seq2seq import vocabulary
from modular_hyperteacher.untrusted import rules


@dataclasses.dataclass(frozen=True, kw_only=True)
class OuterConfig(outer_loop.OuterSettings):
  """How the network is trained, by Adam."""

  # Fraction of the steps after which the learning rate decays, once.
  decay_after: Annotated[
      float, rules.that(lambda x: 0 < x <= 1, 'positive and at most 1')
  ]
  decay_factor: rules.Positive  # The rate is multiplied by this.
  reset_at_decay: bool  # Whether to reset Adam's moments at the decay.
  # Maximum norm of the decoder's gradient and, separately, of all others'.
  clip_norm: rules.Positive
  support_loss: bool  # Whether to predict the support set, too.

  @property
  def decay_step(self) -> int:
    """The first step with the decayed rate."""
    return round(self.decay_after * self.num_outer_steps)


class RowScores(NamedTuple):
  """How well rows were decoded."""

  loss: jax.Array  # [N], sum over a row's symbols, nats
  num_symbols: jax.Array  # [N], EOS included
  correct: jax.Array  # [N] float, 1 if all symbols of a row are right


def evaluate_rows(
    logits: jax.Array, outputs: vocabulary.Sequences
) -> RowScores:
  """Compares logits [T, N, V] with the target outputs.

  Up to the first mistake, greedy decoding and teacher forcing see the same
  symbols. So greedy decoding yields the target exactly if every target symbol
  is the most likely under teacher forcing, and `correct` needs no decoding.
  """
  targets, mask = outputs.tokens.T, outputs.mask.T
  log_probs = jax.nn.log_softmax(logits)
  chosen = jnp.take_along_axis(log_probs, targets[..., None], -1)[..., 0]
  is_right = jnp.argmax(logits, -1) == targets
  return RowScores(
      loss=-jnp.where(mask, chosen, 0.0).sum(0),
      num_symbols=outputs.lengths,
      correct=(is_right | ~mask).all(0).astype(jnp.float32),
  )


def make_optimizer(config: OuterConfig) -> optax.GradientTransformation:
  """Clips the decoder's and the other gradients separately, then runs Adam.

  Steps with a non-finite gradient are counted, not skipped.
  """
  rate = optax.piecewise_constant_schedule(
      config.learning_rate, {config.decay_step: config.decay_factor}
  )
  clip = optax.clip_by_global_norm(config.clip_norm)
  adam = optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-8)
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


def _mark_decoder(params: Any) -> Any:
  """Returns a tree like the parameters, True for those of the decoder."""
  return {
      module: dict.fromkeys(leaves, module.split('/')[0] == models.DECODER)
      for module, leaves in params.items()
  }


class _ResetState(NamedTuple):
  count: jax.Array  # [] int32, steps done
  inner: optax.OptState


def _reset_at(
    transform: optax.GradientTransformation, step: int
) -> optax.GradientTransformation:
  """Returns a transformation whose state is reset at a step."""

  def init(params: optax.Params) -> _ResetState:
    return _ResetState(jnp.zeros((), jnp.int32), transform.init(params))

  def update(
      updates: optax.Updates,
      state: Any,
      params: optax.Params | None = None,
  ) -> tuple[optax.Updates, _ResetState]:
    inner = optax.tree.where(
        state.count == step, transform.init(updates), state.inner
    )
    updates, inner = transform.update(updates, inner, params)
    return updates, _ResetState(state.count + 1, inner)

  return optax.GradientTransformation(init, update)


def make(
    distribution: episodes.EpisodeDistribution,
    network: models.Model,
    config: OuterConfig,
) -> outer_loop.Training:
  """Returns how a network learns from a distribution of episodes."""

  def loss(
      params: models.Params,
      task_params: Any,
      keys: jax.Array,
      step_key: jax.Array,
  ) -> tuple[jax.Array, outer_loop.Metrics]:
    del step_key
    (key,) = keys
    episode_key, dropout_key = jax.random.split(key)
    episode = distribution.sample(task_params, episode_key)
    rows = episode.query
    if config.support_loss:
      rows = vocabulary.Pairs(
          *map(vocabulary.concatenate, episode.support, episode.query)
      )
    decoded, _ = network.apply(params, dropout_key, episode.support, rows, True)
    return summarise(evaluate_rows(decoded.logits, rows.outputs))

  return outer_loop.make_training(
      network.init,
      loss,
      make_optimizer(config),
      config.meta_batch_size,
      task_chunk_size=1,
  )


def summarise(scores: RowScores) -> tuple[jax.Array, Mapping[str, jax.Array]]:
  """Returns the loss per symbol, nats, and metrics with the row accuracy."""
  loss = scores.loss.sum() / scores.num_symbols.sum()
  return loss, {'loss': loss, 'accuracy': scores.correct.mean()}
