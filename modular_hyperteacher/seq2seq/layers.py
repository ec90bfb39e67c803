"""Layers: as in PyTorch, whose initial values the published networks had.

Source: the authors' released code. Embeddings are standard normal; weights and
biases of LSTMs are uniform on ±1/sqrt(H), those of linear layers on
±1/sqrt(fan_in). PyTorch's cells have two biases, which only ever occur as
their sum: here they are one, drawn as the sum of two.
"""

import math

import haiku as hk
import jax
import jax.numpy as jnp

from modular_hyperteacher.seq2seq import lstm
from modular_hyperteacher.seq2seq import vocabulary

State = lstm.State


def dropout(x: jax.Array, rate: float) -> jax.Array:
  """Returns x with a share of its entries zero, the others scaled up."""
  return hk.dropout(hk.next_rng_key(), rate, x) if rate else x


class Embedding(hk.Module):
  """A vector per symbol: [...] -> [..., H]."""

  def __init__(self, vocab_size: int, hidden_dim: int, name: str):
    super().__init__(name=name)
    self._shape = vocab_size, hidden_dim

  def __call__(self, tokens: jax.Array) -> jax.Array:
    table = hk.get_parameter(
        'table', self._shape, init=hk.initializers.RandomNormal()
    )
    # Vocabularies are small: a product with one-hots is faster than gathering
    # rows, above all in the backward pass.
    return jax.nn.one_hot(tokens, self._shape[0]) @ table


class Linear(hk.Module):
  """A linear layer: [..., X] -> [..., Y]."""

  def __init__(self, output_dim: int, name: str):
    super().__init__(name=name)
    self._output_dim = output_dim

  def __call__(self, inputs: jax.Array) -> jax.Array:
    fan_in = inputs.shape[-1]
    init = _uniform(fan_in)
    weights = hk.get_parameter('w', (fan_in, self._output_dim), init=init)
    bias = hk.get_parameter('b', (self._output_dim,), init=init)
    return _affine(inputs, weights, bias)


class Lstm(hk.Module):
  """One layer in one direction; see `lstm` for the recurrence."""

  def __init__(self, hidden_dim: int, name: str):
    super().__init__(name=name)
    self._hidden_dim = hidden_dim

  def project(self, inputs: jax.Array) -> jax.Array:
    """Returns the inputs' part of the gates: [..., X] -> [..., 4H]."""
    init = _uniform(self._hidden_dim)
    num_gates = 4 * self._hidden_dim
    weights = hk.get_parameter('w_x', (inputs.shape[-1], num_gates), init=init)
    bias = hk.get_parameter(
        'b',
        (num_gates,),
        init=lambda shape, dtype: init(shape, dtype) + init(shape, dtype),
    )
    return _affine(inputs, weights, bias)

  @property
  def weights(self) -> jax.Array:
    """[H, 4H], the state's part."""
    shape = self._hidden_dim, 4 * self._hidden_dim
    return hk.get_parameter('w_h', shape, init=_uniform(self._hidden_dim))


class SequenceEncoder(hk.Module):
  """An LSTM in both directions; those of the top layer are added up."""

  def __init__(
      self,
      vocab_size: int,
      hidden_dim: int,
      num_layers: int,
      dropout_rate: float,
      name: str,
  ):
    super().__init__(name=name)
    self._hidden_dim = hidden_dim
    self._rate = dropout_rate
    self._embedding = Embedding(vocab_size, hidden_dim, 'embedding')
    self._layers = [
        [Lstm(hidden_dim, f'layer_{i}_{way}') for way in ('forth', 'back')]
        for i in range(num_layers)
    ]

  def __call__(
      self, sequences: vocabulary.Sequences
  ) -> tuple[jax.Array, jax.Array]:
    """Encodes N sequences.

    Returns:
      [T, N, H], per step, zero where there is padding; and [N, H], what each
      direction knows after it has read the whole sequence, summed.
    """
    mask = sequences.mask.T
    hidden = dropout(self._embedding(sequences.tokens.T), self._rate)
    first, *others = self._layers
    forth, back = self._run(first, hidden, mask)
    for layer in others:
      hidden = dropout(jnp.concatenate([forth, back], -1), self._rate)
      forth, back = self._run(layer, hidden, mask)
    rows = jnp.arange(mask.shape[1])
    last = forth[sequences.lengths - 1, rows] + back[0]
    return forth + back, last

  def _run(self, layer, inputs, mask):
    """Returns the h of both directions, [T, N, H] each, in reading order."""
    zeros = jnp.zeros((mask.shape[1], self._hidden_dim))
    forth, back = lstm.scan(
        # Backwards, padding comes first, where the state stays zero.
        (layer[0].project(inputs), layer[1].project(inputs)[::-1]),
        tuple(direction.weights for direction in layer),
        (mask, mask[::-1]),
        (State(zeros, zeros),) * 2,
    )
    return forth, back[::-1]


def _affine(inputs, weights, bias):
  return inputs @ weights + bias.reshape((1,) * (inputs.ndim - 1) + (-1,))


def _uniform(fan_in):
  scale = 1 / math.sqrt(fan_in)
  return hk.initializers.RandomUniform(-scale, scale)
