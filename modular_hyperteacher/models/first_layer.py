"""First layers that read compact grid observations without making them dense.

Observations of the grid worlds are nearly all zeros, so a linear layer sums a
few rows of its weights instead of multiplying. Results are exact up to
rounding. Without `MetaModel.reads_compact`, a model gets dense arrays.
"""

import dataclasses
import math
from typing import NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp

from modular_hyperteacher.models import base
from modular_hyperteacher.tasks.gridworlds import observations

# With at least this many columns per row, mixing precomputed products is faster
# than generating weights and looking up their rows (measured).
_ROWS_PER_COLUMN = 4

project = observations.project


class Linear(hk.Module):
  """`hk.Linear`, but for inputs that may be compact: [N, X] -> [N, H]."""

  def __init__(self, output_dim: int, name: str = 'linear') -> None:
    super().__init__(name=name)
    self._output_dim = output_dim

  def __call__(self, inputs: base.Inputs) -> jax.Array:
    """Returns the layer's output, [N, H]."""
    fan_in = inputs.shape[-1]
    weights = hk.get_parameter(
        'w',
        (fan_in, self._output_dim),
        init=hk.initializers.TruncatedNormal(1 / math.sqrt(fan_in)),
    )
    bias = hk.get_parameter('b', (self._output_dim,), init=jnp.zeros)
    return project(inputs, weights) + bias[None]


class Mixture(NamedTuple):
  """Outputs of the first layer for every row of its bank.

  The layer is linear in its weights, which are linear in the features. So its
  output is a mixture of products that do not depend on fast parameters.
  """

  products: jax.Array  # [F, N, H]
  biases: jax.Array  # [F, H]

  def apply(self, features: jax.Array) -> jax.Array:
    """Returns the first layer's output, [N, H], given features [F]."""
    mixed = _mix(features, self.products)
    return mixed + (features @ self.biases)[None]

  def take_rows(self, rows: jax.Array) -> 'Mixture':
    """Returns the encoding of some rows only."""
    return self._replace(products=self.products[:, rows])


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Reduced:
  """Inputs, and the columns of the first layer's bank that can be nonzero."""

  inputs: observations.Scenes  # [N, X]
  bank: jax.Array  # [F, 1 + V, H]: walls and bias, then each column's weights

  def apply(self, features: jax.Array) -> jax.Array:
    """Returns the first layer's output, [N, H], given features [F]."""
    weights = _mix(features, self.bank)
    return observations.project_reduced(self.inputs, weights[1:], weights[0])

  def take_rows(self, rows: jax.Array) -> 'Reduced':
    """Returns the encoding of some rows only."""
    return dataclasses.replace(self, inputs=self.inputs.take_rows(rows))


def encode(
    inputs: base.Inputs, bank: jax.Array, fan_out: int
) -> jax.Array | Mixture | Reduced:
  """Computes the part of the first layer that does not depend on the features.

  Returns dense inputs unchanged. A row of the bank [F, (X + 1) * H] generates
  the bias and the weights of the first layer, before their scaling by
  1/sqrt(X); `fan_out` is H.
  """
  if not isinstance(inputs, observations.Scenes):
    return inputs
  fan_in = inputs.shape[1]
  biases, weights = jnp.split(bank, [fan_out], axis=1)
  weights = weights.reshape(-1, fan_in, fan_out) / math.sqrt(fan_in)
  num_features = len(bank)
  by_input = weights.swapaxes(0, 1).reshape(fan_in, -1)  # [X, F * H]
  columns = inputs.layout.columns
  if _ROWS_PER_COLUMN * inputs.shape[0] <= len(columns):
    products = project(inputs, by_input)
    products = products.reshape(-1, num_features, fan_out)
    return Mixture(products.swapaxes(0, 1), biases)
  walls = observations.wall_weights(inputs, by_input)
  constant = biases + walls.reshape(num_features, -1)
  return Reduced(
      inputs, jnp.concatenate([constant[:, None], weights[:, columns]], axis=1)
  )


def _mix(features: jax.Array, bank: jax.Array) -> jax.Array:
  """Returns the sum of a bank's [F, A, B] matrices, weighted by features [F].

  The bank is flattened first, because otherwise the derivatives would make a
  transposed copy of it in every inner step.
  """
  return (features @ bank.reshape(len(bank), -1)).reshape(bank.shape[1:])
