"""Nonlinear hypernetwork: a deep network turns embeddings into weights.

Source: Appendix D.4. Each generator is
LayerNorm -> 4 x [Linear -> LayerNorm -> ELU] -> Linear without bias.

The *trunk*, which is all but the last linear layer, has the same shape in every
generator, so the trunks are computed together, as one batch.
"""

from typing import Annotated

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.models import base
from modular_hyperteacher.models import hypernetwork
from modular_hyperteacher.untrusted import rules

NumModules = Annotated[
    int, rules.at_least(2, ': an embedding of one number is normalised away')
]
HiddenDim = Annotated[
    int, rules.at_least(2, ': a layer of one unit is normalised away')
]


def _trunk(num_hidden: int, hidden_dim: int) -> hk.Transformed:
  """Returns a network from an embedding [M-hat] to features [hidden_dim]."""

  def trunk(embedding: jax.Array) -> jax.Array:
    hidden = _layer_norm(embedding)
    for _ in range(num_hidden):
      hidden = jax.nn.elu(_layer_norm(hk.Linear(hidden_dim)(hidden)))
    return hidden

  return hk.without_apply_rng(hk.transform(trunk))


def _layer_norm(inputs: jax.Array) -> jax.Array:
  return hk.LayerNorm(axis=-1, create_scale=True, create_offset=True)(inputs)


@rules.enforce('model')
def make(
    *,
    input_dim: int,
    output_dim: int,
    num_hidden: rules.Layers,
    hidden_dim: rules.Count,
    num_modules: NumModules,
    generator_num_hidden: rules.Layers,
    generator_hidden_dim: HiddenDim,
) -> base.MetaModel:
  """Returns a nonlinear hypernetwork with embeddings of `num_modules`."""
  trunk = _trunk(generator_num_hidden, generator_hidden_dim)

  def features_of(
      params: base.MetaParams, embeddings: hypernetwork.Embeddings
  ) -> dict[str, jax.Array]:
    # Every layer of the base network uses the trunk of its block.
    num_layers = [len(rows) for rows in embeddings.values()]
    block_of_layer = np.repeat(np.arange(len(num_layers)), num_layers)
    trunks = jax.tree.map(lambda x: x[block_of_layer], params['trunks'])
    stacked = jnp.concatenate(list(embeddings.values()))
    features = jax.vmap(trunk.apply)(trunks, stacked)
    boundaries = np.cumsum(num_layers)[:-1]
    return dict(zip(embeddings, jnp.split(features, boundaries)))

  def init(
      key: base.Key,
      embeddings: hypernetwork.Embeddings,
      blocks: hypernetwork.Blocks,
  ) -> base.MetaParams:
    trunk_key, head_key = jax.random.split(key)
    keys = jax.random.split(trunk_key, len(blocks))
    params = {
        'trunks': jax.vmap(trunk.init, (0, None))(keys, jnp.ones(num_modules))
    }
    features = features_of(params, embeddings)
    head_params = hypernetwork.heads.init(head_key, features, blocks)
    return params | {'heads': head_params}

  def banks(params: base.MetaParams) -> dict[str, jax.Array]:
    return {name: head['w'] for name, head in params['heads'].items()}

  return hypernetwork.make(
      hypernetwork.Generators(init, features_of, banks),
      hypernetwork.base_blocks(input_dim, output_dim, num_hidden, hidden_dim),
      num_modules,
      fast_bias=False,
  )
