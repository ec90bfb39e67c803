"""Amortised hypernetworks: a set encoder predicts the fast parameters.

Beyond the paper, whose hypernetworks find a task's embeddings by gradient
descent. Here the support set is a memory that is read in one forward pass.
Every example (x, y) has a key and a value,

  k_i, v_i = linear maps of MLP(x_i, y_i),

every embedding of the hypernetwork reads it with learned queries q,

  r = sum_i softmax_i(q . k_i / sqrt(E)) v_i,

and an MLP maps the result r to an offset from the initial embedding of the
plain hypernetwork. The memory is a set: the order of examples is irrelevant.
The prediction can be used directly, or adapted further by gradient descent.
Encoder and hypernetwork are trained together.
"""

from collections.abc import Callable, Sequence
import dataclasses
import math

import haiku as hk
import jax
from jax import flatten_util
import jax.numpy as jnp

from modular_hyperteacher.models import base
from modular_hyperteacher.models import first_layer
from modular_hyperteacher.models import linear_hypernetwork
from modular_hyperteacher.models import nonlinear_hypernetwork
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.untrusted import rules


@dataclasses.dataclass
class SetEncoder(hk.Module):
  """Maps a support set to one vector per slot."""

  slot_dims: Sequence[int]  # Dimensions of the vectors to predict.
  output_dim: int  # Y
  hidden_dim: int  # E, of every hidden layer, key and value.
  num_hidden: int  # Hidden layers of the MLP on examples.
  num_queries: int  # Per slot.

  def __call__(self, support: tasks.Batch) -> jax.Array:
    """Returns the vectors of all slots, one after the other."""
    retrieved = self._read(*self._memorise(support), support.mask)
    vectors = [
        hk.nets.MLP([self.hidden_dim, dim], name=f'head_{slot}')(answers)
        for slot, (dim, answers) in enumerate(zip(self.slot_dims, retrieved))
    ]
    return jnp.concatenate(vectors)

  def _memorise(self, support: tasks.Batch) -> tuple[jax.Array, jax.Array]:
    """Returns the keys and values of the examples, both [S, E]."""
    targets = support.targets
    if targets.ndim == 1:  # Classes, such as the actions of a demonstration.
      targets = jax.nn.one_hot(targets, self.output_dim)
    hidden = first_layer.Linear(self.hidden_dim, name='inputs')(support.inputs)
    hidden += hk.Linear(self.hidden_dim, False, name='targets')(targets)
    for layer in range(1, self.num_hidden):
      hidden = hk.Linear(self.hidden_dim, name=f'hidden_{layer}')(
          jax.nn.relu(hidden)
      )
    hidden = jax.nn.relu(hidden)
    keys = hk.Linear(self.hidden_dim, name='keys')(hidden)
    return keys, hk.Linear(self.hidden_dim, name='values')(hidden)

  def _read(
      self, keys: jax.Array, values: jax.Array, mask: jax.Array
  ) -> jax.Array:
    """Returns the attention output of each slot, [slots, queries * E]."""
    queries = hk.get_parameter(
        'queries',
        (len(self.slot_dims), self.num_queries, self.hidden_dim),
        init=hk.initializers.TruncatedNormal(1.0),
    )
    match = queries @ keys.T / math.sqrt(self.hidden_dim)
    weights = jax.nn.softmax(match, where=mask[None, None] > 0)
    return (weights @ values).reshape(len(self.slot_dims), -1)


@rules.enforce('model')
def amortise(
    make: Callable[..., base.MetaModel],
    *,
    input_dim: int,
    output_dim: int,
    encoder_hidden_dim: rules.Count,
    encoder_num_hidden: rules.Layers,
    encoder_num_queries: rules.Count,
    **fields: int,
) -> base.MetaModel:
  """Returns a model whose fast parameters are predicted from support sets.

  Every vector of the fast parameters (for a hypernetwork: each embedding, and
  the linear one's fast bias) is a slot of the `SetEncoder`. Targets are [S, Y],
  or classes below Y, [S]. All meta-parameters of what `make` returns, given
  `fields`, must be learned.
  """
  model = make(input_dim=input_dim, output_dim=output_dim, **fields)
  meta_shapes = jax.eval_shape(model.init, jax.random.key(0))
  fast_shapes = jax.eval_shape(model.init_fast, meta_shapes)
  slot_dims = [
      leaf.shape[-1]
      for leaf in jax.tree.leaves(fast_shapes)
      for _ in range(math.prod(leaf.shape[:-1]))
  ]

  @hk.without_apply_rng
  @hk.transform
  def predict(support: tasks.Batch) -> jax.Array:
    return SetEncoder(
        slot_dims,
        output_dim=output_dim,
        hidden_dim=encoder_hidden_dim,
        num_hidden=encoder_num_hidden,
        num_queries=encoder_num_queries,
    )(support)

  def init(key: base.Key) -> base.MetaParams:
    model_key, encoder_key = jax.random.split(key)
    example = tasks.Batch(
        jnp.zeros((1, input_dim)), jnp.zeros((1, output_dim)), jnp.ones(1)
    )
    return {
        'model': model.init(model_key),
        'encoder': predict.init(encoder_key, example),
    }

  def init_fast(meta_params: base.MetaParams) -> base.FastParams:
    return model.init_fast(meta_params['model'])

  def infer(
      meta_params: base.MetaParams, support: tasks.Batch
  ) -> base.FastParams:
    start, unravel = flatten_util.ravel_pytree(init_fast(meta_params))
    return unravel(start + predict.apply(meta_params['encoder'], support))

  return base.MetaModel(
      init=init,
      init_fast=init_fast,
      encode=lambda meta_params, inputs: model.encode(
          meta_params['model'], inputs
      ),
      decode=lambda meta_params, fast_params, encoding: model.decode(
          meta_params['model'], fast_params, encoding
      ),
      infer=infer,
      reads_compact=model.reads_compact,
  )


def make_linear(
    *,
    input_dim: int,
    output_dim: int,
    num_hidden: rules.Layers,
    hidden_dim: rules.Count,
    num_modules: rules.Count,
    encoder_hidden_dim: rules.Count,
    encoder_num_hidden: rules.Layers,
    encoder_num_queries: rules.Count,
) -> base.MetaModel:
  """Returns a linear hypernetwork whose embeddings are predicted."""
  return amortise(linear_hypernetwork.make, **locals())


def make_nonlinear(
    *,
    input_dim: int,
    output_dim: int,
    num_hidden: rules.Layers,
    hidden_dim: rules.Count,
    num_modules: nonlinear_hypernetwork.NumModules,
    generator_num_hidden: rules.Layers,
    generator_hidden_dim: nonlinear_hypernetwork.HiddenDim,
    encoder_hidden_dim: rules.Count,
    encoder_num_hidden: rules.Layers,
    encoder_num_queries: rules.Count,
) -> base.MetaModel:
  """Returns a nonlinear hypernetwork whose embeddings are predicted."""
  return amortise(nonlinear_hypernetwork.make, **locals())
