"""What linear and nonlinear hypernetworks share.

Source: Appendix D.3. A hypernetwork generates the weights of a base network
from a few embeddings. The base network has three blocks, each with a generator
of its own:

  input    X -> H          one embedding
  hidden   H -> H          one embedding per layer, all through one generator
  output   H -> Y          one embedding

A generator maps an embedding of dimension M-hat (the number of the student's
modules) to one flat vector: the bias of the layer first, then its weights row
by row. The base network is in NTK parameterisation: a layer computes
`inputs @ (weights / sqrt(fan_in)) + bias`.

Two departures from the paper's text follow the authors' released code:
embeddings are normalised to root mean square 1, not to norm 1, and biases are
generated.
"""

import math
from typing import Callable, Mapping, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp

from modular_hyperteacher.models import base

Embeddings = Mapping[str, jax.Array]  # block -> [embeddings, M-hat]
Generated = Mapping[str, jax.Array]  # block -> [num_layers, size]


class Block(NamedTuple):
  """Layers of equal shape whose weights come from one generator."""

  num_layers: int
  fan_in: int
  fan_out: int

  @property
  def size(self) -> int:
    """How many numbers the generator emits per layer."""
    return (self.fan_in + 1) * self.fan_out


Blocks = Mapping[str, Block]


class Generators(NamedTuple):
  """The generators of all blocks, as a pair of pure functions.

  `apply` gets normalised embeddings.
  """

  init: Callable[[base.Key, Embeddings, Blocks], base.MetaParams]
  apply: Callable[[base.MetaParams, Embeddings, Blocks], Generated]


def base_blocks(
    input_dim: int, output_dim: int, num_hidden: int, hidden_dim: int
) -> dict[str, Block]:
  """Returns the blocks of a base network, in the order of the computation."""
  blocks = {'input': Block(1, input_dim, hidden_dim)}
  if num_hidden > 1:
    blocks['hidden'] = Block(num_hidden - 1, hidden_dim, hidden_dim)
  blocks['output'] = Block(1, hidden_dim, output_dim)
  return blocks


def init_embeddings(
    key: base.Key, blocks: Blocks, num_modules: int
) -> Embeddings:
  """Draws initial embeddings: uniform, with variance 1/num_layers per block."""
  keys = jax.random.split(key, len(blocks))
  embeddings = {}
  for block_key, (name, block) in zip(keys, blocks.items()):
    bound = math.sqrt(3 / block.num_layers)
    embeddings[name] = jax.random.uniform(
        block_key, (block.num_layers, num_modules), minval=-bound, maxval=bound
    )
  return embeddings


def normalise(embedding: jax.Array) -> jax.Array:
  """Scales each embedding [..., M-hat] to root mean square 1.

  The factor counts as a constant when differentiated, so gradients are not
  orthogonal to the embedding (released code).
  """
  norm = jnp.linalg.norm(embedding, axis=-1, keepdims=True)
  scale = math.sqrt(embedding.shape[-1]) / norm
  return embedding * lax.stop_gradient(scale)


def split_layer(
    flat: jax.Array, block: Block
) -> tuple[jax.Array, jax.Array]:
  """Returns the weights [fan_in, fan_out] and bias [fan_out] of a layer."""
  bias, weights = jnp.split(flat, [block.fan_out])
  return weights.reshape(block.fan_in, block.fan_out), bias


def base_network(
    generated: Generated,
    blocks: Blocks,
    inputs: jax.Array,
) -> jax.Array:
  """Runs the base network, [N, X] -> [N, Y].

  Args:
    generated: block -> [num_layers, size], flat vectors from the generators.
    blocks: as returned by `base_blocks`.
    inputs: [N, X].
  """
  layers = [
      (block, flat)
      for name, block in blocks.items()
      for flat in generated[name]
  ]
  hidden = inputs
  for index, (block, flat) in enumerate(layers):
    weights, bias = split_layer(flat, block)
    hidden = hidden @ (weights / math.sqrt(block.fan_in)) + bias[None]
    if index < len(layers) - 1:
      hidden = jax.nn.relu(hidden)
  return hidden


def make(
    generators: Generators,
    *,
    input_dim: int,
    output_dim: int,
    num_hidden: int,
    hidden_dim: int,
    num_modules: int,
    fast_bias: bool,
) -> base.MetaModel:
  """Returns a hypernetwork as a meta model.

  Fast parameters are the embeddings, before normalisation, and with
  `fast_bias` a vector that is added to the outputs. The generators and the
  initial embeddings are meta-learned; the fast bias always starts at zero.

  Args:
    generators: maps embeddings to generated weights.
    input_dim: X.
    output_dim: Y.
    num_hidden: hidden layers of the base network.
    hidden_dim: H, their width.
    num_modules: M-hat, the dimension of an embedding.
    fast_bias: whether there is an additional bias on the outputs.
  """
  blocks = base_blocks(input_dim, output_dim, num_hidden, hidden_dim)

  def init(key):
    embedding_key, generator_key = jax.random.split(key)
    embeddings = init_embeddings(embedding_key, blocks, num_modules)
    return {
        'embeddings': embeddings,
        'generators': generators.init(generator_key, embeddings, blocks),
    }

  def init_fast(meta_params):
    fast_params = {'embeddings': meta_params['embeddings']}
    if fast_bias:
      fast_params['bias'] = jnp.zeros(output_dim)
    return fast_params

  def decode(meta_params, fast_params, encoding):
    embeddings = {
        name: normalise(fast_params['embeddings'][name]) for name in blocks
    }
    generated = generators.apply(meta_params['generators'], embeddings, blocks)
    outputs = base_network(generated, blocks, encoding)
    return outputs + fast_params['bias'][None] if fast_bias else outputs

  return base.MetaModel(init, init_fast, base.identity_encoding, decode)
