"""MAML: every weight is fast, and its initial value is learned.

Source: Appendix D.1; Finn et al. (2017).
"""

import haiku as hk
import jax
import jax.numpy as jnp

from modular_hyperteacher.models import base
from modular_hyperteacher.models import mlp
from modular_hyperteacher.untrusted import rules


@rules.enforce('model')
def make(
    *,
    input_dim: int,
    output_dim: int,
    num_hidden: rules.Layers,
    hidden_dim: rules.Count,
) -> base.MetaModel:
  """Returns MAML on a ReLU network with `num_hidden` layers of `hidden_dim`."""

  @hk.without_apply_rng
  @hk.transform
  def network(inputs: base.Inputs) -> jax.Array:
    features = mlp.Body(num_hidden, hidden_dim)(inputs)
    return mlp.Readout(output_dim)(features)

  return base.MetaModel(
      init=lambda key: network.init(key, jnp.zeros((1, input_dim))),
      init_fast=lambda meta_params: meta_params,
      encode=base.identity_encoding,
      decode=lambda meta_params, fast_params, encoding: network.apply(
          fast_params, encoding
      ),
      reads_compact=True,
  )
