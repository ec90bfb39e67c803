"""ANIL: only the linear readout of a shared network is fast.

Source: Appendix D.2; Raghu et al. (2020). The body is the encoding, so it runs
once per task, not once per inner step.
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
  """Returns ANIL on a ReLU network with `num_hidden` layers of `hidden_dim`."""

  body = hk.without_apply_rng(
      hk.transform(lambda inputs: mlp.Body(num_hidden, hidden_dim)(inputs))
  )
  readout = hk.without_apply_rng(
      hk.transform(lambda features: mlp.Readout(output_dim)(features))
  )

  def init(key: base.Key) -> base.MetaParams:
    body_key, readout_key = jax.random.split(key)
    return {
        'body': body.init(body_key, jnp.zeros((1, input_dim))),
        'readout': readout.init(readout_key, jnp.zeros((1, hidden_dim))),
    }

  return base.MetaModel(
      init=init,
      init_fast=lambda meta_params: meta_params['readout'],
      encode=lambda meta_params, inputs: body.apply(
          meta_params['body'], inputs
      ),
      decode=lambda meta_params, fast_params, encoding: readout.apply(
          fast_params, encoding
      ),
      reads_compact=True,
  )
