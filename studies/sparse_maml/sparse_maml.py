"""Sparse-MAML: MAML that learns which weights to adapt.

Source: von Oswald*, Zhao* et al. (2021), "Learning where to learn". Every inner
update is multiplied by a gate per weight, and the gates are learned like the
initial weights:

  phi_{t+1} = phi_t + g(m) * update_t,   g(m) = 1 if m > 0, else 0.

A step has no useful derivative, so gradients pass straight through: that of the
binary gate is taken as 1/2, that of the rectified one as 1. Gates that are not
learned give MAML, ANIL and BOIL.
"""

from collections.abc import Callable
import math
from typing import Annotated, Any

import jax
from jax import lax
import jax.numpy as jnp

from modular_hyperteacher import errors
from modular_hyperteacher.models import base
from modular_hyperteacher.models import maml
from modular_hyperteacher.untrusted import rules

_FIRST, _READOUT = 'body/linear', 'readout'


def _binary(m: jax.Array) -> jax.Array:
  return lax.stop_gradient((m > 0).astype(m.dtype)) + _silent(m) / 2


def _rectified(m: jax.Array) -> jax.Array:
  return lax.stop_gradient(jax.nn.relu(m)) + _silent(m)


def _silent(m: jax.Array) -> jax.Array:
  """Returns zeros whose derivative is one."""
  return m - lax.stop_gradient(m)


# Gates -> g(m), of sparse-MAML, sparse-ReLU-MAML and Meta-SGD. The latter two
# are rates in units of the inner loop's, so they start at one.
_LEARNED: dict[str, Callable[[jax.Array], jax.Array]] = {
    'binary': _binary,
    'rectified': _rectified,
    'rates': lambda m: m,
}
# Gates -> whether those of a layer are open: MAML, ANIL, BOIL, and the layers
# that correspond to the hyperteacher's generated ones.
_FIXED: dict[str, Callable[[str], bool]] = {
    'all': lambda layer: True,
    'readout': lambda layer: layer == _READOUT,
    'body': lambda layer: layer != _READOUT,
    'generated': lambda layer: layer not in (_FIRST, _READOUT),
}


@rules.enforce('model')
def make(
    *,
    input_dim: int,
    output_dim: int,
    num_hidden: rules.Layers,
    hidden_dim: rules.Count,
    gates: Annotated[str, rules.one_of((*_LEARNED, *_FIXED))],
    initial_sparsity: rules.Share | None = None,
) -> base.MetaModel:
  """Returns MAML on a ReLU network with gated inner updates.

  Its meta-parameters are 'weights', which are MAML's, and 'gates', the m of
  each weight, {} if they are fixed.

  Learned gates are 'binary', 'rectified' or 'rates'; fixed ones are open in
  'all' layers, the 'readout', the 'body', or the 'generated' hidden layers, all
  but the first. Before training, a share `initial_sparsity` of binary gates is
  closed, up to random deviations; half by default. Others have none.
  """
  errors.require(
      initial_sparsity is None or gates == 'binary',
      'model.initial_sparsity',
      initial_sparsity,
      f"only gates 'binary' have it, model.gates is {gates!r}",
  )
  share = 0.5 if initial_sparsity is None else initial_sparsity
  errors.require(
      num_hidden > 1 or gates != 'generated',
      'model.num_hidden',
      num_hidden,
      "with gates 'generated', all hidden layers but the first, it must be at"
      ' least 2',
  )
  network = maml.make(
      input_dim=input_dim,
      output_dim=output_dim,
      num_hidden=num_hidden,
      hidden_dim=hidden_dim,
  )

  def init(key: base.Key) -> base.MetaParams:
    # As many keys for all gates, so that all start from the same weights.
    weights_key, gates_key = jax.random.split(key)
    weights = network.init(weights_key)
    learned = jax.tree.map(jnp.ones_like, weights) if gates in _LEARNED else {}
    if gates == 'binary':
      learned = _init_binary(gates_key, weights, share)
    return {'weights': weights, 'gates': learned}

  def gate(meta_params: base.MetaParams) -> Any:
    if gates in _LEARNED:
      return jax.tree.map(_LEARNED[gates], meta_params['gates'])
    return {
        layer: jax.tree.map(
            lambda x, layer=layer: jnp.full_like(x, _FIXED[gates](layer)),
            weights,
        )
        for layer, weights in meta_params['weights'].items()
    }

  return base.MetaModel(
      init=init,
      init_fast=lambda meta_params: meta_params['weights'],
      encode=network.encode,
      decode=network.decode,
      reads_compact=True,
      gate=gate,
      is_gate=lambda meta_params: {
          name: jax.tree.map(lambda _, name=name: name == 'gates', tree)
          for name, tree in meta_params.items()
      },
  )


def _init_binary(
    key: base.Key, weights: Any, initial_sparsity: float
) -> base.MetaParams:
  """Returns m: uniform, with mean zero in each array, then shifted.

  Bounds are sqrt(6 / fan_in) for matrices and 1/2 for biases. The released code
  shifts all arrays by one number; here the shift is in units of an array's
  bound, so that the same share of gates is closed in each.
  """
  keys = iter(jax.random.split(key, len(jax.tree.leaves(weights))))

  def draw(layer: str, x: jax.Array) -> jax.Array:
    bound = 0.5
    if x.ndim > 1:
      # The readout's weights are stored as [Y, H].
      bound = math.sqrt(6 / x.shape[-1 if layer == _READOUT else 0])
    m = jax.random.uniform(next(keys), x.shape, x.dtype, -bound, bound)
    return m - m.mean() + bound * (1 - 2 * initial_sparsity)

  return {
      layer: {name: draw(layer, x) for name, x in arrays.items()}
      for layer, arrays in weights.items()
  }
