"""Tasks that are given: every input starts with a code of the task's latent.

Source: Redhardt et al., "Scaling can lead to compositional generalization"
(2025), and its released code. Codes of a latent z of M entries:

  identity          z
  orthogonal        Q z, with a random orthogonal matrix Q
  tokens            m and 10 z_m as integers, interleaved; those of a second
                    kind start after those of the first
  invertible_nn     three affine coupling layers (RealNVP) with random weights
  interval_shuffle  entries in [0.1 i, 0.1 (i + 1)) move to another of the ten
                    intervals; 1 stays
  fewshot           examples of the task: all inputs, then all targets

Random parts are drawn once per seed. Worked example, M = 2, z = (0.5, 0):
tokens are (1, 5 + 3, 2, 0 + 3).
"""

from collections.abc import Callable
import dataclasses
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from modular_hyperteacher import errors
from modular_hyperteacher import randomness
from modular_hyperteacher.tasks import base

_NUM_INTERVALS = 10
_ROUNDING = 1e-4  # Tenths are not exact in float32.
_NUM_COUPLINGS = 3
# (params, latent [M], support) -> [E]
_Encode = Callable[[Any, jax.Array, base.Batch], jax.Array]


class Encoding(NamedTuple):
  """How to write down a task."""

  encode: _Encode
  # (key, M) -> the random part
  init: Callable[[jax.Array, int], Any] = lambda key, num_modules: ()


class GivenParams(NamedTuple):
  """What the tasks of a seed share."""

  task: Any
  encoding: Any


def tokens(latent: jax.Array) -> jax.Array:
  """Returns the tokens [2M] of a latent [M]: modules and whole tenths."""
  module = jnp.arange(1, len(latent) + 1)
  level = jnp.floor(_NUM_INTERVALS * latent + _ROUNDING) + len(latent) + 1
  return jnp.stack([module, level], axis=1).reshape(-1)


def shuffle_intervals(order: jax.Array, latent: jax.Array) -> jax.Array:
  """Returns the entries of a latent [M] in [0, 1] in their new intervals.

  Interval i of ten moves to `order[i]`.
  """
  width = 1 / _NUM_INTERVALS
  old = jnp.floor(_NUM_INTERVALS * latent + _ROUNDING).astype(jnp.int32)
  new = order[jnp.minimum(old, _NUM_INTERVALS - 1)]
  return jnp.where(latent < 1, width * new + (latent - width * old), latent)


def draw_couplings(key: jax.Array, num_modules: int) -> list[list[jax.Array]]:
  """Returns the matrices of every coupling layer's network, N(0, 0.01)."""
  half, width = num_modules // 2, 2 * num_modules
  sizes = (half, width, width, 2 * (num_modules - half))
  keys = jax.random.split(key, (_NUM_COUPLINGS, len(sizes) - 1))
  return [
      [
          0.1 * jax.random.normal(k, shape)
          for k, shape in zip(layer_keys, itertools.pairwise(sizes))
      ]
      for layer_keys in keys
  ]


def couple(couplings: list[list[jax.Array]], latent: jax.Array) -> jax.Array:
  """Returns an invertible function [M] of a latent [M].

  A layer keeps the first half x and turns the second, y, into s(x) y + t(x),
  where s lies between 0.5 and 1.5. The second layer works from the other end.
  """
  half = len(latent) // 2
  code = latent
  for index, (first, second, last) in enumerate(couplings):
    code = code[::-1] if index % 2 else code
    kept, changed = code[:half], code[half:]
    hidden = jax.nn.sigmoid(jax.nn.sigmoid(kept @ first) @ second)
    scale, shift = jnp.split(hidden @ last, 2)
    changed = changed * (1 + 0.5 * jnp.tanh(scale)) + shift
    code = jnp.concatenate([kept, changed])
    code = code[::-1] if index % 2 else code
  return code


ENCODINGS = {
    'identity': Encoding(lambda params, latent, support: latent),
    'orthogonal': Encoding(
        lambda params, latent, support: params @ latent, jax.random.orthogonal
    ),
    'tokens': Encoding(lambda params, latent, support: tokens(latent)),
    'invertible_nn': Encoding(
        lambda params, latent, support: couple(params, latent), draw_couplings
    ),
    'interval_shuffle': Encoding(
        lambda params, latent, support: shuffle_intervals(params, latent),
        lambda key, num_modules: jax.random.permutation(key, _NUM_INTERVALS),
    ),
    'fewshot': Encoding(
        lambda params, latent, support: jnp.concatenate(
            [support.inputs.ravel(), support.targets.ravel()]
        )
    ),
}


def give(
    task: base.TaskDistribution,
    name: str,
    *,
    num_entries: int,
    num_support: int,
) -> base.TaskDistribution:
  """Returns the same tasks, with a code before every input.

  There is nothing left to infer: the `num_support` examples of the support set
  serve the encoding 'fewshot', and else nothing. Inputs must be arrays; a
  latent has `num_entries`, L M.
  """
  errors.require_choice('task.encoding', name, ENCODINGS)
  encoding = ENCODINGS[name]
  shapes = jax.eval_shape(
      lambda: encoding.encode(
          encoding.init(jax.random.key(0), num_entries),
          jnp.zeros(num_entries),
          base.examples(
              jnp.zeros((num_support, task.input_dim)),
              jnp.zeros((num_support, task.output_dim)),
          ),
      )
  )
  (code_dim,) = shapes.shape

  def init(key: jax.Array) -> GivenParams:
    code_key = randomness.stream(key, 'encoding')
    return GivenParams(task.init(key), encoding.init(code_key, num_entries))

  def sample_examples(
      params: GivenParams, key: jax.Array, latent: jax.Array, split: str
  ) -> tuple[base.Batch, base.Batch]:
    support, query = task.sample_examples(params.task, key, latent, split)
    code = encoding.encode(params.encoding, latent.reshape(-1), support)

    def put_before(batch: base.Batch) -> base.Batch:
      codes = jnp.broadcast_to(code[None], (len(batch.targets), code_dim))
      rows = jnp.concatenate([codes, batch.inputs], axis=1)
      return batch._replace(inputs=rows)

    return put_before(support), put_before(query)

  return dataclasses.replace(
      task,
      input_dim=code_dim + task.input_dim,
      code_dim=code_dim,
      init=init,
      sample_latent=lambda params, key, split: task.sample_latent(
          params.task, key, split
      ),
      sample_examples=sample_examples,
      num_combinations=lambda params, split: task.num_combinations(
          params.task, split
      ),
  )
