"""Nonlinear hypernetwork: a deep network turns embeddings into weights.

Source: Appendix D.4. Each generator is
LayerNorm -> 4 x [Linear -> LayerNorm -> ELU] -> Linear without bias.
"""

import haiku as hk
import jax

from modular_hyperteacher.models import base
from modular_hyperteacher.models import hypernetwork


class Generator(hk.Module):
  """Maps embeddings [num_layers, M-hat] to weights [num_layers, size]."""

  def __init__(self, size: int, num_hidden: int, hidden_dim: int, name: str):
    super().__init__(name=name)
    self._size = size
    self._num_hidden = num_hidden
    self._hidden_dim = hidden_dim

  def __call__(self, embeddings: jax.Array) -> jax.Array:
    hidden = _layer_norm(embeddings)
    for _ in range(self._num_hidden):
      hidden = jax.nn.elu(_layer_norm(hk.Linear(self._hidden_dim)(hidden)))
    return hk.Linear(self._size, with_bias=False, name='modules')(hidden)


def _layer_norm(inputs):
  return hk.LayerNorm(axis=-1, create_scale=True, create_offset=True)(inputs)


def make(
    *,
    input_dim: int,
    output_dim: int,
    num_hidden: int,
    hidden_dim: int,
    num_modules: int,
    generator_num_hidden: int,
    generator_hidden_dim: int,
) -> base.MetaModel:
  """Returns a nonlinear hypernetwork with embeddings of `num_modules`."""

  def make_generator(size, name):
    return Generator(size, generator_num_hidden, generator_hidden_dim, name)

  return hypernetwork.make(
      make_generator,
      input_dim=input_dim,
      output_dim=output_dim,
      num_hidden=num_hidden,
      hidden_dim=hidden_dim,
      num_modules=num_modules,
      fast_bias=False,
  )
