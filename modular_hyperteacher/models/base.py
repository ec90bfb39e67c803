"""The interface of a meta model: a record of pure functions.

Source: Section 2. A model has parameters theta that all tasks share
(`meta_params`) and parameters phi that are inferred for every task
(`fast_params`). The inner and the outer loop use only this interface.
"""

from collections.abc import Callable
import functools
from typing import Any, NamedTuple

import jax

from modular_hyperteacher.tasks import base as tasks

Array = jax.Array
Key = jax.Array
MetaParams = Any  # Pytree of arrays, which the outer loop learns.
FastParams = Any  # Pytree of arrays, which the inner loop changes.
# Array [N, X], or a compact form of one for models that `reads_compact`.
Inputs = Any

MAX_COUNTED = 256  # Models whose parameters are counted once.


class MetaModel(NamedTuple):
  """A model for meta-learning.

  `decode(meta_params, fast_params, encode(meta_params, inputs))` is the
  network. Computations without fast parameters belong in `encode`, which runs
  once per task and serves every inner step and the backward pass.
  """

  init: Callable[[Key], MetaParams]
  init_fast: Callable[[MetaParams], FastParams]  # where adaptation starts
  encode: Callable[[MetaParams, Inputs], Any]  # [N, X] -> [N, ...]
  decode: Callable[[MetaParams, FastParams, Any], Array]  # -> [N, Y]
  # -> tree of bool, True for leaves that are learned; None if all are.
  is_learned: Callable[[MetaParams], Any] | None = None
  # Predicts initial fast parameters from a support set; None to start all
  # tasks at `init_fast`.
  infer: Callable[[MetaParams, tasks.Batch], FastParams] | None = None
  # Whether the model reads compact observations of grid worlds (`first_layer`).
  reads_compact: bool = False
  # -> tree like `init_fast`'s, haiku parameters; multiplies every inner update.
  gate: Callable[[MetaParams], Any] | None = None
  # -> what the support loss adds, such as a proximal term; None for nothing.
  penalty: Callable[[MetaParams, FastParams], Array] | None = None
  # -> tree of bool, True for leaves that the gates' own optimiser learns.
  is_gate: Callable[[MetaParams], Any] | None = None
  # -> the analysis that decodes latents; None to decode fast parameters.
  make_decoding: Callable[[tasks.TaskDistribution], Any] | None = None

  def predict(
      self, meta_params: MetaParams, fast_params: FastParams, inputs: Inputs
  ) -> Array:
    """Returns the network's outputs, [N, Y]."""
    encoding = self.encode(meta_params, inputs)
    return self.decode(meta_params, fast_params, encoding)


def densify(model: MetaModel) -> MetaModel:
  """Returns a model that makes inputs dense, [N, X], before it uses them."""
  encode, infer = model.encode, model.infer
  return model._replace(
      encode=lambda params, inputs: encode(params, tasks.dense(inputs)),
      infer=infer
      and (
          lambda params, support: infer(
              params, support._replace(inputs=tasks.dense(support.inputs))
          )
      ),
  )


def num_params(params: Any) -> int:
  """Returns the number of entries in a pytree of arrays, or of their shapes."""
  return sum(leaf.size for leaf in jax.tree.leaves(params))


@functools.lru_cache(maxsize=MAX_COUNTED)
def count_params(model: MetaModel) -> tuple[int, int]:
  """Returns the numbers of meta and of fast parameters, from shapes alone."""
  meta_params = jax.eval_shape(model.init, jax.random.key(0))
  fast_params = jax.eval_shape(model.init_fast, meta_params)
  return num_params(meta_params), num_params(fast_params)


def identity_encoding(meta_params: MetaParams, inputs: Inputs) -> Inputs:
  """Returns the inputs: `encode` of a model whose weights are all fast."""
  del meta_params
  return inputs
