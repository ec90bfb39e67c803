"""The network: encoders, a key-value memory, a decoder with attention.

Source: Section 3 of Lake (2019), with details from the authors' released code.
The memory's keys encode the support inputs, its values the support outputs, one
vector per sequence. Every step t of an encoded query attends to the memory,

  A_t = softmax(Q_t K^T / sqrt(H)),  C_t = tanh(W [Q_t; A_t V] + b),

and the decoder turns the contexts C into the output. Without a memory, Q itself
is decoded: a standard sequence-to-sequence network.
"""

from collections.abc import Callable
import dataclasses
import math
from typing import Any, ClassVar, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp

from modular_hyperteacher.studies.meta_seq2seq import layers
from modular_hyperteacher.studies.meta_seq2seq import lstm
from modular_hyperteacher.studies.meta_seq2seq import vocabulary
from modular_hyperteacher.untrusted import rules

Params = Any
# The module whose gradients are clipped separately from all others.
DECODER = 'decoder'


@dataclasses.dataclass(frozen=True)
class _Sizes(rules.Record):
  """The fields of both networks."""

  BLOCK: ClassVar[str] = 'model'

  input_vocab: vocabulary.Vocabulary
  output_vocab: vocabulary.Vocabulary
  hidden_dim: rules.Count  # H, everywhere.
  num_layers: rules.Layers  # In every LSTM.
  dropout_rate: rules.BelowOne  # On embeddings, and between layers.
  # Whether the decoder's attention ignores padding; as released, it does not.
  mask_padding: bool


@dataclasses.dataclass(frozen=True)
class MetaSeq2Seq(_Sizes):
  """The network with a memory."""

  use_memory: ClassVar[bool] = True
  # False for a decoder that sees only its initial state, the context of the
  # query's last step.
  use_decoder_attention: bool


@dataclasses.dataclass(frozen=True)
class Seq2Seq(_Sizes):
  """A standard sequence-to-sequence network: the same, without a memory."""

  use_memory: ClassVar[bool] = False
  use_decoder_attention: ClassVar[bool] = True


ModelConfig = MetaSeq2Seq | Seq2Seq


class Context(NamedTuple):
  """The decoder's information about a query."""

  steps: jax.Array  # [T, N, H]
  mask: jax.Array  # [T, N] bool, which steps the decoder may attend to
  start: jax.Array  # [N, H], the decoder's initial state
  memory_attention: jax.Array | None  # [T, N, I], sums to one over I


class Decoded(NamedTuple):
  """The decoder's output for a query, under teacher forcing."""

  logits: jax.Array  # [T, N, V]
  attention: jax.Array | None  # [T, N, T of inputs], sums to one over these


# (params, key, support, query, is_training) -> outputs for N query rows under
# teacher forcing, and their contexts. `key` is for dropout, None if not
# training. `support` has I rows. `is_training` turns dropout on and must be
# static.
Apply = Callable[
    [Params, jax.Array | None, vocabulary.Pairs, vocabulary.Pairs, bool],
    tuple[Decoded, Context],
]


class Model(NamedTuple):
  """A network, as pure functions."""

  config: ModelConfig
  init: Callable[[jax.Array], Params]
  apply: Apply


def make(config: ModelConfig) -> Model:
  """Returns the network's functions."""

  def apply(
      support: vocabulary.Pairs, query: vocabulary.Pairs, is_training: bool
  ) -> tuple[Decoded, Context]:
    rate = config.dropout_rate if is_training else 0.0
    context = _Encoder(config, rate)(support, query.inputs)
    return _Decoder(config, rate)(context, query.outputs), context

  transformed = hk.transform(apply)

  def init(key: jax.Array) -> Params:
    one = vocabulary.Sequences(
        jnp.zeros((1, 1), jnp.int32), jnp.ones((1,), jnp.int32)
    )
    pairs = vocabulary.Pairs(one, one)
    return transformed.init(key, pairs, pairs, False)

  return Model(config, init, transformed.apply)


class _Encoder(hk.Module):
  """Encodes queries and a support set as contexts."""

  def __init__(self, config: ModelConfig, rate: float) -> None:
    super().__init__(name='encoder')
    self._config = config
    sizes = config.hidden_dim, config.num_layers, rate
    self._read = layers.SequenceEncoder(
        config.input_vocab.size, *sizes, 'input_encoder'
    )
    self._write = layers.SequenceEncoder(
        config.output_vocab.size, *sizes, 'output_encoder'
    )
    self._combine = layers.linear(
        2 * config.hidden_dim, config.hidden_dim, 'combine'
    )

  def __call__(
      self, support: vocabulary.Pairs, inputs: vocabulary.Sequences
  ) -> Context:
    mask = inputs.mask.T
    if not self._config.mask_padding:
      mask = jnp.ones_like(mask)
    if not self._config.use_memory:
      steps, last = self._read(inputs)
      return Context(steps, mask, last, None)
    # Support inputs and queries share weights, so they form one batch.
    num_items = support.inputs.lengths.shape[0]
    steps, last = self._read(vocabulary.concatenate(support.inputs, inputs))
    queries, keys = steps[:, num_items:], last[:num_items]  # [T, N, H], [I, H]
    _, values = self._write(support.outputs)
    scale = 1 / math.sqrt(self._config.hidden_dim)
    scores = jnp.einsum('tnh,ih->tni', queries, keys) * scale
    attention = jax.nn.softmax(scores)
    retrieved = jnp.einsum('tni,ih->tnh', attention, values)
    steps = jnp.tanh(self._combine(jnp.concatenate([queries, retrieved], -1)))
    start = steps[inputs.lengths - 1, jnp.arange(len(inputs.lengths))]
    return Context(steps, mask, start, attention)


class _Decoder(hk.Module):
  """Decodes contexts into outputs, one symbol at a time.

  Attention is not fed back into the LSTM. So with teacher forcing, only the
  LSTM itself is sequential.
  """

  def __init__(self, config: ModelConfig, rate: float) -> None:
    super().__init__(name=DECODER)
    self._config = config
    self._rate = rate
    hidden_dim, vocab = config.hidden_dim, config.output_vocab
    self._embedding = layers.Embedding(vocab.size, hidden_dim)
    self._layers = [
        layers.Lstm(hidden_dim, f'layer_{i}') for i in range(config.num_layers)
    ]
    self._combine = layers.linear(2 * hidden_dim, hidden_dim, 'combine')
    self._readout = layers.linear(hidden_dim, vocab.size, 'readout')

  def __call__(
      self, context: Context, targets: vocabulary.Sequences
  ) -> Decoded:
    """Decodes with teacher forcing."""
    mask = targets.mask.T
    start = jnp.full((1, mask.shape[1]), self._config.output_vocab.sos)
    symbols = jnp.concatenate([start, targets.tokens.T[:-1]])
    hidden = self._embedding(symbols)
    state = lstm.State(context.start, context.start)
    for layer in self._layers:
      projected = layer.project(layers.dropout(hidden, self._rate))
      (hidden,) = lstm.scan((projected,), (layer.weights,), (mask,), (state,))
    return self._read_out(hidden, context)

  def _read_out(self, hidden: jax.Array, context: Context) -> Decoded:
    """Returns logits and attention for states [T, N, H]."""
    if not self._config.use_decoder_attention:
      return Decoded(self._readout(hidden), None)
    scale = 1 / math.sqrt(self._config.hidden_dim)
    scores = jnp.einsum('jnh,tnh->jnt', hidden, context.steps) * scale
    scores = jnp.where(context.mask.T[None], scores, -jnp.inf)
    attention = jax.nn.softmax(scores)
    attended = jnp.einsum('jnt,tnh->jnh', attention, context.steps)
    combined = jnp.tanh(self._combine(jnp.concatenate([hidden, attended], -1)))
    return Decoded(self._readout(combined), attention)
