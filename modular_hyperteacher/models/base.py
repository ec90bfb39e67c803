"""The interface of a meta model: a record of pure functions.

Source: Section 2. A model has parameters theta that all tasks share
(`meta_params`) and parameters phi that are inferred anew for every task
(`fast_params`). The inner and the outer loop know nothing else about it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from modular_hyperteacher.tasks import base as tasks

Array = jax.Array
Key = jax.Array
MetaParams = Any  # Pytree of arrays, what the outer loop learns.
FastParams = Any  # Pytree of arrays, what the inner loop changes.
# Array [N, X], or a compact form of one for models that `reads_compact`.
Inputs = Any


_MAX_LAYERS = 1000


class MetaModel(NamedTuple):
  """A model for meta-learning.

  `decode(meta_params, fast_params, encode(meta_params, inputs))` is the
  network. What no fast parameter touches belongs in `encode`: it is computed
  once per task and reused by every inner step and by the backward pass.
  """

  init: Callable[[Key], MetaParams]
  init_fast: Callable[[MetaParams], FastParams]  # where adaptation starts
  encode: Callable[[MetaParams, Inputs], Any]  # [N, X] -> [N, ...]
  decode: Callable[[MetaParams, FastParams, Any], Array]  # -> [N, Y]
  # -> tree of bool, which leaves the outer loop changes; None for all.
  is_learned: Callable[[MetaParams], Any] | None = None
  # Where adaptation to the task with this support set starts; None for
  # `init_fast`, the same for all tasks.
  infer: Callable[[MetaParams, tasks.Batch], FastParams] | None = None
  # Whether inputs may be a grid world's compact observations, see
  # `first_layer`; if not, they are made dense before the model gets them.
  reads_compact: bool = False


def densify(model: MetaModel) -> MetaModel:
  """Returns a model that is only given dense inputs, [N, X]."""
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


def check_positive(**fields: float) -> None:
  """Raises ValueError for the first field of a model that is not positive.

  Numbers of layers have a limit too: compiling takes time for each of them.
  """
  for field, value in fields.items():
    if not value > 0:
      raise ValueError(f'model.{field} is {value}; it must be positive.')
    if field.endswith('num_hidden') and value > _MAX_LAYERS:
      raise ValueError(
          f'model.{field} is {value}; it must be at most {_MAX_LAYERS}.'
      )


def num_params(params: Any) -> int:
  """Returns how many numbers a pytree of arrays (or of their shapes) holds."""
  return sum(leaf.size for leaf in jax.tree.leaves(params))


def count_params(model: MetaModel) -> tuple[int, int]:
  """Returns the numbers of meta and of fast parameters; computes nothing."""
  meta_params = jax.eval_shape(model.init, jax.random.key(0))
  fast_params = jax.eval_shape(model.init_fast, meta_params)
  return num_params(meta_params), num_params(fast_params)


def identity_encoding(meta_params: MetaParams, inputs: Inputs) -> Inputs:
  """Returns the inputs: `encode` of a model all of whose weights are fast."""
  del meta_params
  return inputs
