"""A decoder-only transformer that is given the task.

Source: Redhardt et al., "Scaling can lead to compositional generalization"
(2025), as in the released code. The sequence is the task's code
(`tasks/encodings.py`), then the inputs of its examples; outputs are read at the
latter. So there are no fast parameters and no inner loop. Targets are not
shown, and a token sees the code and earlier inputs, which say nothing about the
task. A block is

  h <- h + attention(norm(h)),   h <- h + W_out gelu(W_in norm(h))

with rotary positions (Su et al., 2021), and queries and keys that are
normalised per head. Blocks have no biases; norms have scales alone.
"""

import haiku as hk
import jax
import jax.numpy as jnp

from modular_hyperteacher import errors
from modular_hyperteacher.models import base
from modular_hyperteacher.studies.given_tasks import layers
from modular_hyperteacher.untrusted import rules

_BASE = 10_000.0  # Base of the wavelengths of rotary positions, in tokens.
# Variance 1/fan_in, cut at two standard deviations.
_OUTER = hk.initializers.VarianceScaling(1.0, 'fan_in', 'truncated_normal')
_BLOCK = hk.initializers.VarianceScaling(1.0, 'fan_avg', 'uniform')  # Xavier.


@rules.enforce('model')
def make(
    *,
    input_dim: int,
    output_dim: int,
    example_dim: int,
    embedding_dim: rules.Count,
    num_layers: rules.Layers,
    num_heads: rules.Count,
    feedforward_dim: rules.Count,
) -> base.MetaModel:
  """Returns the transformer.

  Inputs have `example_dim` entries, and with the task's code before them
  `input_dim`. Heads divide the embedding into even parts.

  Raises:
    UserError: for an impossible size; names the field.
  """
  errors.require(
      embedding_dim % (2 * num_heads) == 0,
      'model.embedding_dim',
      embedding_dim,
      f'it must be a multiple of twice the {num_heads} heads',
  )
  errors.require(
      0 < example_dim < input_dim,
      'model.example_dim',
      example_dim,
      f'it must be below {input_dim}, the size of an input with its code',
  )

  def run(inputs: jax.Array) -> list[jax.Array]:
    code, examples = inputs[0, :-example_dim], inputs[:, -example_dim:]
    first = hk.Linear(embedding_dim, False, _OUTER, name='code')(code)
    rest = hk.Linear(embedding_dim, w_init=_OUTER, name='examples')(examples)
    hidden = jnp.concatenate([first[None], rest])
    streams = []
    for i in range(num_layers):
      normed = _norm(f'block_{i}_attention_norm')(hidden)
      hidden += _attend(normed, num_heads, f'block_{i}')
      normed = _norm(f'block_{i}_feedforward_norm')(hidden)
      inner = _linear(feedforward_dim, f'block_{i}_in')(normed)
      hidden += _linear(embedding_dim, f'block_{i}_out')(jax.nn.gelu(inner))
      streams.append(hidden[1:])
    readout = hk.Linear(output_dim, w_init=_OUTER, name='readout')
    return [*streams, readout(_norm('final_norm')(streams[-1]))]

  network = hk.without_apply_rng(hk.transform(run))
  return base.MetaModel(
      init=lambda key: network.init(key, jnp.zeros((1, input_dim))),
      init_fast=lambda meta_params: {},
      encode=base.identity_encoding,
      decode=lambda meta_params, fast_params, inputs: network.apply(
          meta_params, inputs
      )[-1],
      infer=lambda meta_params, support: {},
      # Every block's residual stream, then the outputs.
      make_decoding=lambda task: layers.make_analysis(task, network.apply),
  )


def rotate(tokens: jax.Array) -> jax.Array:
  """Returns tokens [T, A, K], each turned by angles that grow with its place.

  Entries k and k + K/2 are the plane that turns by base^(-2k/K) per token. So a
  product of two tokens depends on the distance between them.
  """
  half = tokens.shape[-1] // 2
  frequencies = _BASE ** (-jnp.arange(half) / half)
  angles = jnp.outer(jnp.arange(len(tokens)), frequencies)[:, None]
  x, y = jnp.split(tokens, 2, axis=-1)
  cos, sin = jnp.cos(angles), jnp.sin(angles)
  return jnp.concatenate([x * cos - y * sin, x * sin + y * cos], axis=-1)


def _attend(tokens: jax.Array, num_heads: int, name: str) -> jax.Array:
  """Returns what tokens [T, E] read from themselves and earlier ones."""
  width = tokens.shape[-1]

  def heads(part: str) -> jax.Array:
    projected = _linear(width, f'{name}_{part}')(tokens)
    return projected.reshape(-1, num_heads, width // num_heads)

  queries, keys = (
      rotate(_norm(f'{name}_{part}_norm')(heads(part)))
      for part in ('query', 'key')
  )
  read = jax.nn.dot_product_attention(
      queries, keys, heads('value'), is_causal=True
  )
  return _linear(width, f'{name}_attended')(read.reshape(tokens.shape))


def _linear(width: int, name: str) -> hk.Linear:
  return hk.Linear(width, with_bias=False, w_init=_BLOCK, name=name)


def _norm(name: str) -> hk.LayerNorm:
  # As released: flax's epsilon, not Haiku's.
  return hk.LayerNorm(
      -1, create_scale=True, create_offset=False, eps=1e-6, name=name
  )
