"""The ReLU network that MAML and ANIL adapt.

Source: Appendix D.1 and D.2. Weights are drawn from a normal truncated at two
standard deviations, with scale 1/sqrt(fan_in); biases start at zero. Both are
Haiku's defaults.
"""

import haiku as hk
import jax


class Body(hk.Module):
  """Hidden layers, each `relu(linear)`: [N, X] -> [N, H]."""

  def __init__(self, num_hidden: int, hidden_dim: int, name: str = 'body'):
    super().__init__(name=name)
    self._num_hidden = num_hidden
    self._hidden_dim = hidden_dim

  def __call__(self, inputs: jax.Array) -> jax.Array:
    hidden = inputs
    for _ in range(self._num_hidden):
      hidden = jax.nn.relu(hk.Linear(self._hidden_dim)(hidden))
    return hidden


def readout(output_dim: int) -> hk.Linear:
  """Returns the linear layer that turns features into outputs."""
  return hk.Linear(output_dim, name='readout')
