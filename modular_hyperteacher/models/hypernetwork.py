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

import dataclasses
import math
from typing import Callable, Mapping, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp

from modular_hyperteacher.models import base
from modular_hyperteacher.tasks import gridworld

# Mixing ready products beats generating weights and looking them up if there
# are this many columns, or more, for every row (measured).
_ROWS_PER_COLUMN = 4
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
    """How many numbers the generator emits per layer."""
    return (self.fan_in + 1) * self.fan_out


Blocks = Mapping[str, Block]


class Generators(NamedTuple):
  """The generators of all blocks, as pure functions.

  What a generator emits is linear in features of the normalised embedding:
  `features @ bank`, with features [num_layers, F] and a bank [F, size] whose
  rows the features mix.
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
    inputs: base.Inputs,
) -> jax.Array:
  """Runs the base network, [N, X] -> [N, Y].

  Args:
    generated: block -> [num_layers, size], flat vectors from the generators.
    blocks: as returned by `base_blocks`.
    inputs: [N, X].
  """
  (first,), block = generated['input'], blocks['input']
  weights, bias = split_layer(first, block)
  weights = weights / math.sqrt(block.fan_in)
  hidden = gridworld.project(inputs, weights) + bias[None]
  return _upper_layers(generated, blocks, hidden)


def _upper_layers(generated, blocks, hidden):
  """Runs all but the first layer, whose results `hidden` [N, H] are."""
  for name, block in blocks.items():
    for flat in generated[name] if name != 'input' else ():
      weights, bias = split_layer(flat, block)
      weights = weights / math.sqrt(block.fan_in)
      hidden = _multiply(jax.nn.relu(hidden), weights) + bias[None]
  return hidden


def _multiply(hidden, weights):
  """Returns `hidden @ weights`, [N, H] x [H, Y] -> [N, Y].

  Weights with few columns are laid out as [Y, H] first: XLA's products for
  their gradient are ten times as fast in this layout on a CPU. The barrier
  keeps XLA from undoing it.
  """
  if weights.shape[1] > _MAX_NARROW:
    return hidden @ weights
  by_output = lax.optimization_barrier(weights.T)
  return jnp.einsum('ni,oi->no', hidden, by_output)


def _mix(features, bank):
  """Returns the sum of a bank's [F, A, B] matrices, weighed by features [F].

  As a product with a flat bank: this spares its derivatives a transposed copy
  of the bank in every inner step.
  """
  return (features @ bank.reshape(len(bank), -1)).reshape(bank.shape[1:])


class Mixture(NamedTuple):
  """Inputs after the first layer, for every row of its bank on its own.

  The layer is linear in its weights, and these in the features, so what it
  computes is a mixture of products that no fast parameter touches.
  """

  products: jax.Array  # [F, N, H]
  biases: jax.Array  # [F, H]

  def first_layer(self, features: jax.Array) -> jax.Array:
    """Returns what the first layer computes, [N, H], given features [F]."""
    mixed = _mix(features, self.products)
    return mixed + (features @ self.biases)[None]

  def take_rows(self, rows: jax.Array) -> 'Mixture':
    """Returns the encoding of some rows only."""
    return self._replace(products=self.products[:, rows])


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Reduced:
  """Inputs, and the part of the first layer's bank that they can ever need."""

  inputs: gridworld.Scenes  # [N, X]
  bank: jax.Array  # [F, 1 + V, H]: walls and bias, then each column's weights

  def first_layer(self, features: jax.Array) -> jax.Array:
    """Returns what the first layer computes, [N, H], given features [F]."""
    weights = _mix(features, self.bank)
    return gridworld.project_reduced(self.inputs, weights[1:], weights[0])

  def take_rows(self, rows: jax.Array) -> 'Reduced':
    """Returns the encoding of some rows only."""
    return dataclasses.replace(self, inputs=self.inputs.take_rows(rows))


def encode_scenes(
    inputs: gridworld.Scenes, bank: jax.Array, block: Block
) -> Mixture | Reduced:
  """Returns inputs [N, X], with all done that features are not needed for."""
  biases, weights = jnp.split(bank, [block.fan_out], axis=1)
  weights = weights.reshape(-1, block.fan_in, block.fan_out)
  weights = weights / math.sqrt(block.fan_in)
  num_features = len(bank)
  by_input = weights.swapaxes(0, 1).reshape(block.fan_in, -1)  # [X, F * H]
  columns = inputs.layout.columns
  if _ROWS_PER_COLUMN * inputs.shape[0] <= len(columns):
    products = gridworld.project(inputs, by_input)
    products = products.reshape(-1, num_features, block.fan_out)
    return Mixture(products.swapaxes(0, 1), biases)
  walls = gridworld.wall_weights(inputs, by_input)
  constant = biases + walls.reshape(num_features, -1)
  return Reduced(
      inputs,
      jnp.concatenate([constant[:, None], weights[:, columns]], axis=1),
  )


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

  def encode(meta_params, inputs):
    if not isinstance(inputs, gridworld.Scenes):
      return inputs
    bank = generators.banks(meta_params['generators'])['input']
    return encode_scenes(inputs, bank, blocks['input'])

  def decode(meta_params, fast_params, encoding):
    params = meta_params['generators']
    embeddings = {
        name: normalise(fast_params['embeddings'][name]) for name in blocks
    }
    features = generators.features(params, embeddings)
    banks = generators.banks(params)
    if isinstance(encoding, (Mixture, Reduced)):
      hidden = encoding.first_layer(features.pop('input')[0])
      generated = {name: features[name] @ banks[name] for name in features}
      outputs = _upper_layers(generated, blocks, hidden)
    else:
      generated = {name: features[name] @ banks[name] for name in features}
      outputs = base_network(generated, blocks, encoding)
    return outputs + fast_params['bias'][None] if fast_bias else outputs

  return base.MetaModel(init, init_fast, encode, decode)
