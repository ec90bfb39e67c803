"""Layers with PyTorch's initialisation, which the published networks used.

Source: the authors' released code. Embeddings are standard normal; weights and
biases of LSTMs are uniform on ±1/sqrt(H), those of linear layers on
±1/sqrt(fan_in). PyTorch's LSTM cells have two biases, of which only the sum
matters: here they are one, initialised as the sum of two draws.
"""

import math

import haiku as hk
import jax
import jax.numpy as jnp

from modular_hyperteacher.studies.meta_seq2seq import lstm
from modular_hyperteacher.studies.meta_seq2seq import vocabulary

State = lstm.State


def dropout(x: jax.Array, rate: float) -> jax.Array:
  """Zeroes a fraction of the entries of x, and scales up the others."""
  return hk.dropout(hk.next_rng_key(), rate, x) if rate else x


class Embedding(hk.Module):
  """Maps each token to a vector."""

  def __init__(self, vocab_size: int, hidden_dim: int) -> None:
    super().__init__(name='embedding')
    self._shape = vocab_size, hidden_dim

  def __call__(self, tokens: jax.Array) -> jax.Array:
    """Returns the vectors of tokens: [...] -> [..., H]."""
    table = hk.get_parameter(
        'table', self._shape, init=hk.initializers.RandomNormal()
    )
    # With small vocabularies, multiplying one-hot vectors is faster than
    # gathering rows, especially in the backward pass.
    return jax.nn.one_hot(tokens, self._shape[0]) @ table


def linear(fan_in: int, output_dim: int, name: str) -> hk.Linear:
  """Returns a linear layer with PyTorch's initialisation."""
  init = _uniform(fan_in)
  return hk.Linear(output_dim, w_init=init, b_init=init, name=name)


class Lstm(hk.Module):
  """One layer in one direction; see `lstm` for the recurrence."""

  def __init__(self, hidden_dim: int, name: str) -> None:
    super().__init__(name=name)
    self._hidden_dim = hidden_dim

  def project(self, inputs: jax.Array) -> jax.Array:
    """Returns the inputs' contribution to the gates: [..., X] -> [..., 4H]."""
    init = _uniform(self._hidden_dim)
    num_gates = 4 * self._hidden_dim
    weights = hk.get_parameter('w_x', (inputs.shape[-1], num_gates), init=init)
    bias = hk.get_parameter(
        'b',
        (num_gates,),
        init=lambda shape, dtype: init(shape, dtype) + init(shape, dtype),
    )
    return inputs @ weights + bias[(None,) * (inputs.ndim - 1)]

  @property
  def weights(self) -> jax.Array:
    """[H, 4H], from the state to the gates."""
    shape = self._hidden_dim, 4 * self._hidden_dim
    return hk.get_parameter('w_h', shape, init=_uniform(self._hidden_dim))


class SequenceEncoder(hk.Module):
  """A bidirectional LSTM; sums both directions of the top layer."""

  def __init__(
      self,
      vocab_size: int,
      hidden_dim: int,
      num_layers: int,
      dropout_rate: float,
      name: str,
  ) -> None:
    super().__init__(name=name)
    self._hidden_dim = hidden_dim
    self._rate = dropout_rate
    self._embedding = Embedding(vocab_size, hidden_dim)
    self._layers = [
        [Lstm(hidden_dim, f'layer_{i}_{way}') for way in ('forth', 'back')]
        for i in range(num_layers)
    ]

  def __call__(
      self, sequences: vocabulary.Sequences
  ) -> tuple[jax.Array, jax.Array]:
    """Encodes N sequences.

    Returns:
      The outputs of every step, [T, N, H], zero for padding; and the sum of
      both directions' final states, [N, H].
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

  def _run(
      self, layer: list[Lstm], inputs: jax.Array, mask: jax.Array
  ) -> tuple[jax.Array, jax.Array]:
    """Returns h of both directions, [T, N, H] each, in order of the inputs."""
    zeros = jnp.zeros((mask.shape[1], self._hidden_dim))
    forth, back = lstm.scan(
        # Backwards, padding comes first; the state stays zero there.
        (layer[0].project(inputs), layer[1].project(inputs)[::-1]),
        tuple(direction.weights for direction in layer),
        (mask, mask[::-1]),
        (State(zeros, zeros),) * 2,
    )
    return forth, back[::-1]


def _uniform(fan_in: int) -> hk.initializers.Initializer:
  scale = 1 / math.sqrt(fan_in)
  return hk.initializers.RandomUniform(-scale, scale)
