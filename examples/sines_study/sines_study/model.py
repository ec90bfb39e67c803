"""A learned layer with a readout that is adapted to every task."""

from typing import Annotated

import haiku as hk
import jax
import jax.numpy as jnp

from modular_hyperteacher.models import base
from modular_hyperteacher.untrusted import rules

_NONLINEARITIES = {'relu': jax.nn.relu, 'tanh': jnp.tanh}


@rules.enforce('model')
def make(
    *,
    input_dim: int,
    output_dim: int,
    width: rules.Count,
    nonlinearity: Annotated[str, rules.one_of(_NONLINEARITIES)] = 'tanh',
    with_bias: bool = True,
) -> base.MetaModel:
  """Returns the model; `width` hidden units."""

  @hk.without_apply_rng
  @hk.transform
  def body(inputs: jax.Array) -> jax.Array:
    return _NONLINEARITIES[nonlinearity](hk.Linear(width, with_bias)(inputs))

  return base.MetaModel(
      init=lambda key: {
          'body': body.init(key, jnp.zeros((1, input_dim))),
          'readout': jnp.zeros((width, output_dim)),
      },
      init_fast=lambda meta_params: meta_params['readout'],
      encode=lambda meta_params, inputs: body.apply(
          meta_params['body'], inputs
      ),
      decode=lambda meta_params, readout, encoding: encoding @ readout,
  )
