"""The network: encoders, a key-value memory, a decoder with attention.

Source: Section 3 of Lake (2019), and the authors' released code where it says
more. The support inputs are the memory's keys, the support outputs its values,
each a sequence's encoding as one vector. Every step t of an encoded query
looks into the memory,

  A_t = softmax(Q_t K^T / sqrt(H)),  C_t = tanh(W [Q_t; A_t V] + b),

and the contexts C are decoded into the output. Without a memory, Q itself is
decoded: a standard sequence-to-sequence network.
"""

import dataclasses
import math
from typing import Any, Callable, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp

from modular_hyperteacher import errors
from modular_hyperteacher.seq2seq import layers
from modular_hyperteacher.seq2seq import lstm
from modular_hyperteacher.seq2seq import vocabulary

Params = Any
# Modules whose gradients are clipped together, and apart from all others.
DECODER = 'decoder'


@dataclasses.dataclass(frozen=True)
class ModelConfig:
  """The network.

  Attributes:
    input_vocab: V, of inputs.
    output_vocab: V, of outputs.
    hidden_dim: H, everywhere.
    num_layers: of every LSTM.
    dropout_rate: on embeddings, and between layers.
    use_memory: False for a standard sequence-to-sequence network.
    use_decoder_attention: False for a decoder that starts from the context of
      the query's end, and sees nothing else.
    mask_padding: whether the decoder's attention leaves out padding. In the
      released code it does not.
  """

  input_vocab: vocabulary.Vocabulary
  output_vocab: vocabulary.Vocabulary
  hidden_dim: int
  num_layers: int
  dropout_rate: float
  use_memory: bool
  use_decoder_attention: bool
  mask_padding: bool


class Context(NamedTuple):
  """What the decoder knows of a query."""

  steps: jax.Array  # [T, N, H]
  mask: jax.Array  # [T, N] bool, which steps the decoder may look at
  start: jax.Array  # [N, H], its first state
  memory_attention: jax.Array | None  # [T, N, I], sums to one over I


class Decoded(NamedTuple):
  """What the decoder makes of a query, given the targets before."""

  logits: jax.Array  # [T, N, V]
  attention: jax.Array | None  # [T, N, T of inputs], sums to one over these


class Model(NamedTuple):
  """Pure functions; `is_training` turns dropout on and must be static."""

  config: ModelConfig
  init: Callable[[jax.Array], Params]
  # apply(params, key, support, query, is_training) -> Decoded, Context;
  # `support` and `query` are vocabulary.Pairs.
  apply: Callable[..., tuple[Decoded, Context]]
  # decode_greedily(params, support, query_inputs, num_steps) -> [N, num_steps]
  decode_greedily: Callable[..., jax.Array]


def make_meta_seq2seq(
    *,
    input_vocab: vocabulary.Vocabulary,
    output_vocab: vocabulary.Vocabulary,
    hidden_dim: int,
    num_layers: int,
    dropout_rate: float,
    use_decoder_attention: bool,
    mask_padding: bool,
) -> Model:
  """Returns the network with a memory; for the arguments see `ModelConfig`."""
  return make(
      ModelConfig(
          input_vocab,
          output_vocab,
          hidden_dim,
          num_layers,
          dropout_rate,
          use_memory=True,
          use_decoder_attention=use_decoder_attention,
          mask_padding=mask_padding,
      )
  )


def make_seq2seq(
    *,
    input_vocab: vocabulary.Vocabulary,
    output_vocab: vocabulary.Vocabulary,
    hidden_dim: int,
    num_layers: int,
    dropout_rate: float,
    mask_padding: bool,
) -> Model:
  """Returns a standard network, the same without a memory."""
  return make(
      ModelConfig(
          input_vocab,
          output_vocab,
          hidden_dim,
          num_layers,
          dropout_rate,
          use_memory=False,
          use_decoder_attention=True,
          mask_padding=mask_padding,
      )
  )


def make(config: ModelConfig) -> Model:
  """Returns the network's functions.

  Raises:
    ValueError: for impossible sizes.
  """
  for field in ('hidden_dim', 'num_layers'):
    if getattr(config, field) < 1:
      raise errors.UserError(
          f'model.{field} is {getattr(config, field)}; it must be positive.'
      )
  if not 0 <= config.dropout_rate < 1:
    raise errors.UserError(
        f'model.dropout_rate is {config.dropout_rate}; it must be at least 0'
        ' and less than 1.'
    )

  def network():
    def context(support, query_inputs, rate):
      return _Encoder(config, rate)(support, query_inputs)

    def apply(support, query, is_training):
      rate = config.dropout_rate if is_training else 0.0
      found = context(support, query.inputs, rate)
      decoder = _Decoder(config, rate)
      return decoder(found, query.outputs), found

    def decode_greedily(support, query_inputs, num_steps):
      decoder = _Decoder(config, 0.0)
      return decoder.greedy(context(support, query_inputs, 0.0), num_steps)

    def init():
      one = vocabulary.Sequences(
          jnp.zeros((1, 1), jnp.int32), jnp.ones((1,), jnp.int32)
      )
      pairs = vocabulary.Pairs(one, one)
      return apply(pairs, pairs, False)

    return init, (apply, decode_greedily)

  transformed = hk.multi_transform(network)
  apply, decode_greedily = transformed.apply
  return Model(
      config=config,
      init=transformed.init,
      apply=apply,
      decode_greedily=lambda params, *args: decode_greedily(
          params, None, *args
      ),
  )


def is_decoders(module_name: str) -> bool:
  """Whether a haiku module is part of the decoder, by its name."""
  return module_name.split('/')[0] == DECODER


class _Encoder(hk.Module):
  """Queries and support set -> contexts."""

  def __init__(self, config: ModelConfig, rate: float):
    super().__init__(name='encoder')
    self._config = config
    sizes = config.hidden_dim, config.num_layers, rate
    self._read = layers.SequenceEncoder(
        config.input_vocab.size, *sizes, 'input_encoder'
    )
    self._write = layers.SequenceEncoder(
        config.output_vocab.size, *sizes, 'output_encoder'
    )
    self._combine = layers.Linear(config.hidden_dim, 'combine')

  def __call__(
      self, support: vocabulary.Pairs, inputs: vocabulary.Sequences
  ) -> Context:
    mask = inputs.mask.T
    if not self._config.mask_padding:
      mask = jnp.ones_like(mask)
    if not self._config.use_memory:
      steps, last = self._read(inputs)
      return Context(steps, mask, last, None)
    # The same weights read support inputs and queries: in one batch.
    num_items = support.inputs.lengths.shape[0]
    rows = vocabulary.concatenate(support.inputs, inputs)
    steps, last = self._read(rows)
    _, values = self._write(support.outputs)
    return self._look_up(
        steps[:, num_items:], last[:num_items], values, inputs.lengths, mask
    )

  def _look_up(self, queries, keys, values, lengths, mask):
    scale = 1 / math.sqrt(self._config.hidden_dim)
    scores = jnp.einsum('tnh,ih->tni', queries, keys) * scale
    attention = jax.nn.softmax(scores)
    found = jnp.einsum('tni,ih->tnh', attention, values)
    steps = jnp.tanh(self._combine(jnp.concatenate([queries, found], -1)))
    start = steps[lengths - 1, jnp.arange(len(lengths))]
    return Context(steps, mask, start, attention)


class _Decoder(hk.Module):
  """Contexts -> outputs, symbol by symbol.

  What attention finds is not fed back into the LSTM, so that, with the
  targets given, only the LSTM itself runs step by step.
  """

  def __init__(self, config: ModelConfig, rate: float):
    super().__init__(name=DECODER)
    self._config = config
    self._rate = rate
    hidden_dim, vocab = config.hidden_dim, config.output_vocab
    self._embedding = layers.Embedding(vocab.size, hidden_dim, 'embedding')
    self._layers = [
        layers.Lstm(hidden_dim, f'layer_{i}') for i in range(config.num_layers)
    ]
    self._combine = layers.Linear(hidden_dim, 'combine')
    self._readout = layers.Linear(vocab.size, 'readout')

  def __call__(
      self, context: Context, targets: vocabulary.Sequences
  ) -> Decoded:
    """Decodes with the symbols before every step given."""
    mask = targets.mask.T
    start = jnp.full((1, mask.shape[1]), self._config.output_vocab.sos)
    symbols = jnp.concatenate([start, targets.tokens.T[:-1]])
    hidden = self._embedding(symbols)
    state = lstm.State(context.start, context.start)
    for layer in self._layers:
      projected = layer.project(layers.dropout(hidden, self._rate))
      (hidden,) = lstm.scan(
          (projected,), (layer.weights,), (mask,), (state,)
      )
    return self._read_out(hidden, context)

  def greedy(self, context: Context, num_steps: int) -> jax.Array:
    """Returns the likeliest symbols, each given those chosen before.

    Returns:
      [N, num_steps]; what follows the first EOS has no meaning.
    """
    num_rows = context.start.shape[0]
    state = lstm.State(context.start, context.start)

    def step(carry, _):
      symbols, states = carry
      hidden, new_states = self._embedding(symbols), []
      for layer, state in zip(self._layers, states):
        state = lstm.cell(layer.project(hidden), layer.weights, state)
        new_states.append(state)
        hidden = state.h
      logits = self._read_out(hidden[None], context).logits[0]
      symbols = jnp.argmax(logits, -1).astype(jnp.int32)
      return (symbols, tuple(new_states)), symbols

    first = jnp.full((num_rows,), self._config.output_vocab.sos, jnp.int32)
    states = (state,) * len(self._layers)
    _, chosen = hk.scan(step, (first, states), None, num_steps)
    return chosen.T

  def _read_out(self, hidden, context):
    """Returns logits of states [T, N, H], and where attention went."""
    if not self._config.use_decoder_attention:
      return Decoded(self._readout(hidden), None)
    scale = 1 / math.sqrt(self._config.hidden_dim)
    scores = jnp.einsum('jnh,tnh->jnt', hidden, context.steps) * scale
    scores = jnp.where(context.mask.T[None], scores, -jnp.inf)
    attention = jax.nn.softmax(scores)
    found = jnp.einsum('jnt,tnh->jnh', attention, context.steps)
    combined = jnp.tanh(self._combine(jnp.concatenate([hidden, found], -1)))
    return Decoded(self._readout(combined), attention)
