"""Models with a proximal term: the complex synapse.

Source: Zucchet*, Schug* et al. (2022), after iMAML. The inner loss has the term

  1/2 sum_i lambda_i (phi_i - omega_i)^2

where omega = init_fast(theta). Without it, a rule that takes adapted parameters
as constants gives initial fast parameters no gradient; with it, the inner
problem of ANIL is strictly convex. The strengths lambda are fixed, or one per
fast parameter is learned, as its logarithm. (Weight decay of the outer loop
then pulls lambda to one; over the presets' training, by a few percent.)

A hypernetwork normalises embeddings and, as published, its gradient takes the
norm as a constant. That is the gradient of no loss, so the contrastive rule
need not hold. Here the gradient of the norm is included unless `stop_norm`.
"""

from collections.abc import Callable
import math
from typing import Any

import jax
import jax.numpy as jnp

from modular_hyperteacher import errors
from modular_hyperteacher.experiments import checked
from modular_hyperteacher.models import anil as anil_model
from modular_hyperteacher.models import base
from modular_hyperteacher.models import linear_hypernetwork as linear_model
from modular_hyperteacher.models import maml as maml_model
from modular_hyperteacher.models import (
    nonlinear_hypernetwork as nonlinear_model,
)
from modular_hyperteacher.untrusted import rules


def _scale(embeddings: jax.Array) -> jax.Array:
  """Returns embeddings [..., M-hat] of root mean square 1."""
  norm = jnp.linalg.norm(embeddings, axis=-1, keepdims=True)
  return embeddings * math.sqrt(embeddings.shape[-1]) / norm


def _with_norms(model: base.MetaModel) -> base.MetaModel:
  """Returns a hypernetwork whose gradients include those of norms."""

  def decode(
      meta_params: base.MetaParams, fast_params: base.FastParams, encoding: Any
  ) -> jax.Array:
    scaled = jax.tree.map(_scale, fast_params['embeddings'])
    scaled = {**fast_params, 'embeddings': scaled}
    return model.decode(meta_params, scaled, encoding)

  return model._replace(decode=decode)


def _with_fixed(model: base.MetaModel, strength: float) -> base.MetaModel:
  """Returns a model with a proximal term of one strength."""

  def penalty(
      meta_params: base.MetaParams, fast_params: base.FastParams
  ) -> jax.Array:
    return _penalty(model.init_fast(meta_params), fast_params, strength)

  return model._replace(penalty=penalty)


def _with_learned(model: base.MetaModel, strength: float) -> base.MetaModel:
  """Returns a model that learns a strength for each fast parameter."""

  def init(key: base.Key) -> base.MetaParams:
    network = model.init(key)
    start = math.log(strength)
    logs = jax.tree.map(
        lambda x: jnp.full_like(x, start), model.init_fast(network)
    )
    return {'network': network, 'log_strengths': logs}

  def penalty(
      meta_params: base.MetaParams, fast_params: base.FastParams
  ) -> jax.Array:
    strengths = jax.tree.map(jnp.exp, meta_params['log_strengths'])
    start = model.init_fast(meta_params['network'])
    return _penalty(start, fast_params, strengths)

  return model._replace(
      init=init,
      init_fast=lambda meta_params: model.init_fast(meta_params['network']),
      encode=lambda meta_params, inputs: model.encode(
          meta_params['network'], inputs
      ),
      decode=lambda meta_params, fast_params, encoding: model.decode(
          meta_params['network'], fast_params, encoding
      ),
      penalty=penalty,
  )


def _penalty(start: Any, fast_params: Any, strengths: Any) -> jax.Array:
  moved = jax.tree.map(lambda x, y: (x - y) ** 2, fast_params, start)
  if not isinstance(strengths, float):
    moved, strengths = jax.tree.map(jnp.multiply, moved, strengths), 1.0
  total = sum((x.sum() for x in jax.tree.leaves(moved)), jnp.zeros(()))
  return 0.5 * strengths * total


def _maker(
    make: Callable[..., base.MetaModel], has_norms: bool = False
) -> Callable[..., base.MetaModel]:
  """Returns what makes a model of the paper with a proximal term."""

  @rules.enforce('model')
  def make_proximal(
      *,
      proximal: rules.NotNegative,
      learn_proximal: bool = False,
      stop_norm: bool = False,
      **fields: Any,
  ) -> base.MetaModel:
    """Returns the model.

    Args:
      proximal: lambda, or its first value if it is learned; 0 for no term.
      learn_proximal: whether one per fast parameter is learned.
      stop_norm: whether gradients take norms of embeddings as constants, as
        published; only for hypernetworks.
      **fields: of the model of the paper.
    """
    errors.require(
        proximal > 0 or not learn_proximal,
        'model.proximal',
        proximal,
        'with learn_proximal it must be positive',
    )
    errors.require(
        has_norms or not stop_norm,
        'model.stop_norm',
        stop_norm,
        'only hypernetworks normalise embeddings, so it must be False',
    )
    model = checked.call(make, 'model', fields, base.MetaModel)
    if has_norms and not stop_norm:
      model = _with_norms(model)
    if learn_proximal:
      return _with_learned(model, proximal)
    return _with_fixed(model, float(proximal))

  return make_proximal


linear_hypernetwork = _maker(linear_model.make, has_norms=True)
nonlinear_hypernetwork = _maker(nonlinear_model.make, has_norms=True)
maml = _maker(maml_model.make)
anil = _maker(anil_model.make)
