"""A network that is given the task and learns all tasks at once.

Source: Redhardt et al., "Scaling can lead to compositional generalization"
(2025). Inputs start with a code of the task (`tasks/encodings.py`), so there
are no fast parameters and no inner loop. Weights are normal with variance
1/fan_in, truncated at two standard deviations; biases start at zero.
"""

import itertools

import jax
import jax.numpy as jnp

from modular_hyperteacher.models import base
from modular_hyperteacher.studies.given_tasks import layers
from modular_hyperteacher.untrusted import rules

_WEIGHTS = jax.nn.initializers.lecun_normal()


@rules.enforce('model')
def make(
    *,
    input_dim: int,
    output_dim: int,
    num_hidden: rules.Layers,
    hidden_dim: rules.Count,
) -> base.MetaModel:
  """Returns a ReLU network with `num_hidden` layers of `hidden_dim`."""

  def init(key: base.Key) -> base.MetaParams:
    sizes = [input_dim, *[hidden_dim] * num_hidden, output_dim]
    return {
        f'layer_{i}': {
            'w': _WEIGHTS(jax.random.fold_in(key, i), shape),
            'b': jnp.zeros(shape[1]),
        }
        for i, shape in enumerate(itertools.pairwise(sizes))
    }

  return base.MetaModel(
      init=init,
      init_fast=lambda meta_params: {},
      encode=base.identity_encoding,
      decode=lambda meta_params, fast_params, inputs: activations(
          meta_params, inputs
      )[-1],
      infer=lambda meta_params, support: {},
      make_decoding=lambda task: layers.make_analysis(task, activations),
  )


def activations(
    meta_params: base.MetaParams, inputs: base.Array
) -> list[base.Array]:
  """Returns every layer's output [N, H] before its ReLU, the readout's last."""
  outputs = []
  hidden = inputs
  for i in range(len(meta_params)):
    layer = meta_params[f'layer_{i}']
    outputs.append(hidden @ layer['w'] + layer['b'][None])
    hidden = jax.nn.relu(outputs[-1])
  return outputs
