"""The ReLU network that MAML and ANIL adapt.

Source: Appendix D.1 and D.2. Weights are drawn from a normal truncated at two
standard deviations, with scale 1/sqrt(fan_in); biases start at zero. Both are
Haiku's defaults.
"""

import math

import haiku as hk
import jax
import jax.numpy as jnp

from modular_hyperteacher.models import base
from modular_hyperteacher.models import first_layer


class Body(hk.Module):
  """Hidden layers, each `relu(linear)`: [N, X] -> [N, H]."""

  def __init__(self, num_hidden: int, hidden_dim: int) -> None:
    super().__init__()
    self._num_hidden = num_hidden
    self._hidden_dim = hidden_dim

  def __call__(self, inputs: base.Inputs) -> jax.Array:
    """Returns the last hidden layer, [N, H]."""
    hidden = inputs
    for _ in range(self._num_hidden):
      hidden = jax.nn.relu(first_layer.Linear(self._hidden_dim)(hidden))
    return hidden


class Readout(hk.Module):
  """A linear layer from features to outputs: [N, H] -> [N, Y].

  Its weights are stored as [Y, H]: with few outputs, this layout makes the
  derivatives several times faster.
  """

  def __init__(self, output_dim: int) -> None:
    super().__init__()
    self._output_dim = output_dim

  def __call__(self, features: jax.Array) -> jax.Array:
    """Returns outputs, [N, Y]."""
    fan_in = features.shape[-1]
    weights = hk.get_parameter(
        'w',
        (self._output_dim, fan_in),
        init=hk.initializers.TruncatedNormal(1 / math.sqrt(fan_in)),
    )
    bias = hk.get_parameter('b', (self._output_dim,), init=jnp.zeros)
    return jnp.einsum('ni,oi->no', features, weights) + bias[None]
