"""The parts that linear and nonlinear hypernetworks share.

Source: Appendix D.3. A hypernetwork generates the weights of a base network
from a few embeddings. The base network has three blocks, each with its own
generator:

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

from collections.abc import Callable, Mapping
import math
from typing import Any, NamedTuple

import haiku as hk
import jax
from jax import lax
import jax.numpy as jnp

from modular_hyperteacher.models import base
from modular_hyperteacher.models import first_layer

# Up to this many outputs, a layer counts as narrow.
_MAX_NARROW = 16

Embeddings = Mapping[str, jax.Array]  # block -> [embeddings, M-hat]
Generated = Mapping[str, jax.Array]  # block -> [num_layers, size]


class Block(NamedTuple):
  """Layers of equal shape whose weights come from one generator."""

  num_layers: int
  fan_in: int
  fan_out: int

  @property
  def size(self) -> int:
    """The number of weights and biases that the generator emits per layer."""
    return (self.fan_in + 1) * self.fan_out


Blocks = Mapping[str, Block]


@hk.without_apply_rng
@hk.transform
def heads(features: Mapping[str, jax.Array], blocks: Blocks) -> Generated:
  """Applies the last, linear layers of all generators.

  Features are block -> [num_layers, F].
  """
  return {
      name: hk.Linear(block.size, with_bias=False, name=name)(features[name])
      for name, block in blocks.items()
  }


class Generators(NamedTuple):
  """The generators of all blocks, as pure functions.

  A generator's output is linear in features of the normalised embedding:
  `features @ bank`, with features [num_layers, F] and a bank [F, size].
  """

  init: Callable[[base.Key, Embeddings, Blocks], base.MetaParams]
  features: Callable[[base.MetaParams, Embeddings], Mapping[str, jax.Array]]
  banks: Callable[[base.MetaParams], Mapping[str, jax.Array]]


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

  Gradients treat the factor as a constant, as in the released code, so they are
  not orthogonal to the embedding.
  """
  norm = jnp.linalg.norm(embedding, axis=-1, keepdims=True)
  scale = math.sqrt(embedding.shape[-1]) / norm
  return embedding * lax.stop_gradient(scale)


def split_layer(flat: jax.Array, block: Block) -> tuple[jax.Array, jax.Array]:
  """Returns the weights [fan_in, fan_out] and bias [fan_out] of a layer."""
  bias, weights = jnp.split(flat, [block.fan_out])
  return weights.reshape(block.fan_in, block.fan_out), bias


def base_network(
    generated: Generated, blocks: Blocks, inputs: base.Inputs
) -> jax.Array:
  """Runs the base network, [N, X] -> [N, Y].

  Without 'input' in `generated`, takes the first layer's output instead.
  """
  hidden = inputs
  for name, block in blocks.items():
    for flat in generated.get(name, ()):
      weights, bias = split_layer(flat, block)
      weights = weights / math.sqrt(block.fan_in)
      if name == 'input':
        hidden = first_layer.project(hidden, weights) + bias[None]
      else:
        hidden = _multiply(jax.nn.relu(hidden), weights) + bias[None]
  return hidden


def _multiply(hidden: jax.Array, weights: jax.Array) -> jax.Array:
  """Returns `hidden @ weights`, [N, H] x [H, Y] -> [N, Y].

  Weights with few columns are transposed to [Y, H] first: on a CPU, XLA then
  computes their gradient ten times as fast. The barrier keeps XLA from undoing
  this.
  """
  if weights.shape[1] > _MAX_NARROW:
    return hidden @ weights
  by_output = lax.optimization_barrier(weights.T)
  return jnp.einsum('ni,oi->no', hidden, by_output)


def make(
    generators: Generators, blocks: Blocks, num_modules: int, fast_bias: bool
) -> base.MetaModel:
  """Returns a hypernetwork as a meta model.

  Fast parameters are the embeddings of dimension `num_modules` (M-hat), before
  normalisation, and with `fast_bias` a vector added to the outputs. The
  generators and the initial embeddings are meta-learned; the fast bias always
  starts at zero.
  """

  def init(key: base.Key) -> base.MetaParams:
    embedding_key, generator_key = jax.random.split(key)
    embeddings = init_embeddings(embedding_key, blocks, num_modules)
    return {
        'embeddings': embeddings,
        'generators': generators.init(generator_key, embeddings, blocks),
    }

  def init_fast(meta_params: base.MetaParams) -> base.FastParams:
    fast_params = {'embeddings': meta_params['embeddings']}
    if fast_bias:
      fast_params['bias'] = jnp.zeros(blocks['output'].fan_out)
    return fast_params

  def encode(meta_params: base.MetaParams, inputs: base.Inputs) -> Any:
    bank = generators.banks(meta_params['generators'])['input']
    return first_layer.encode(inputs, bank, blocks['input'].fan_out)

  def decode(
      meta_params: base.MetaParams, fast_params: base.FastParams, encoding: Any
  ) -> jax.Array:
    params = meta_params['generators']
    embeddings = {
        name: normalise(fast_params['embeddings'][name]) for name in blocks
    }
    features = dict(generators.features(params, embeddings))
    banks = generators.banks(params)
    if isinstance(encoding, (first_layer.Mixture, first_layer.Reduced)):
      encoding = encoding.apply(features.pop('input')[0])
    generated = {name: features[name] @ banks[name] for name in features}
    outputs = base_network(generated, blocks, encoding)
    return outputs + fast_params['bias'][None] if fast_bias else outputs

  return base.MetaModel(init, init_fast, encode, decode, reads_compact=True)
