"""Two exact statements about attention and linear hypernetworks.

- Multi-head attention is a linear hypernetwork (Schug et al., 2025, Section
  2.1): for every pair of tokens, the scores of the heads are the latent code of
  a linear network, which is applied to the second token.
- A layer of linear attention can run a linear hypernetwork (Kobayashi et al.,
  2024, Appendix A): its heads are the modules.

Both hold for real numbers, so that errors here are those of float32.

  python -m modular_hyperteacher.studies.in_context.identities

measures both, for HY-1 and IC-10. It needs no training, takes seconds, and
writes data/identities.csv.
"""

import math
import pathlib
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from modular_hyperteacher.cli import script
from modular_hyperteacher.figures.library import measured
from modular_hyperteacher.studies.in_context import attention

_T, _E, _A, _K = 12, 16, 4, 4  # Tokens, width, heads, features of a head.
ATTENTION = ('softmax', 'linear')
CONSTRUCTION = 'construction'
CELL = ('identity',)
METRIC = 'relative_error'
# A row per identity and seed.
MEASURED = measured.Table(
    pathlib.Path(__file__).parent / 'data' / 'identities.csv',
    CELL,
    {'split': 'test', 'metric': METRIC},
)
_SEEDS = (0, 1, 2, 3, 4)


class Construction(NamedTuple):
  """A layer of linear attention that runs a linear hypernetwork."""

  layer: hk.Transformed
  params: hk.Params
  tokens: jax.Array  # [2, X + M + H + 1]: the input's, then the latent's.
  written: slice  # Where the latent's token receives W(z) x.


def make_layer(kind: str, num_heads: int, qkv_dim: int) -> hk.Transformed:
  """Returns a layer of attention as a function of tokens [T, E]."""
  return hk.transform(
      lambda tokens: attention.Attention(
          kind, num_heads=num_heads, qkv_dim=qkv_dim, dropout_rate=0.0
      )(tokens)[0]
  )


def as_hypernetwork(params: Any, tokens: jax.Array, kind: str) -> jax.Array:
  """Returns a layer's outputs for tokens [T, E], computed as by a hypernetwork.

  The layer has `_A` heads of `_K` features; its kind is 'softmax' or 'linear'.
  """
  inner = params['attention']
  width = tokens.shape[1]

  def project(name: str) -> jax.Array:
    weights = inner[f'{name}_w'].reshape(width, _A, _K)
    return jnp.einsum('te,eak->tak', tokens, weights) + inner[f'{name}_b'][None]

  scores = jnp.einsum('qak,tak->aqt', project('query'), project('key'))
  bias = inner['position_bias'][:, attention.position_buckets(len(tokens))]
  codes = attention.KINDS[kind].normalise(scores / math.sqrt(_K) + bias)
  # A head is a module: a matrix from tokens, with a one appended, to outputs.
  values = jnp.concatenate(
      [inner['value_w'].reshape(width, _A, _K), inner['value_b'][None]]
  )
  readout = params['attention/output']['w'].reshape(_A, _K, width)
  modules = jnp.einsum('eak,akf->aef', values, readout)
  networks = jnp.einsum('aqt,aef->qtef', codes, modules)
  extended = jnp.pad(tokens, ((0, 0), (0, 1)), constant_values=1.0)
  outputs = jnp.einsum('qtef,te->qf', networks, extended)
  return outputs + params['attention/output']['b'][None]


def hypernetwork_error(kind: str, key: jax.Array) -> float:
  """Returns how far a random layer, biases included, is from a hypernetwork.

  This is the largest difference, relative to the largest output.
  """
  token_key, init_key, bias_key = jax.random.split(key, 3)
  tokens = jax.random.normal(token_key, (_T, _E))
  layer = make_layer(kind, _A, _A * _K)
  leaves, tree = jax.tree.flatten(layer.init(init_key, tokens))
  keys = jax.random.split(bias_key, len(leaves))
  params = jax.tree.unflatten(
      tree,
      [x + 0.3 * jax.random.normal(k, x.shape) for x, k in zip(leaves, keys)],
  )
  return _error(
      layer.apply(params, None, tokens), as_hypernetwork(params, tokens, kind)
  )


def construct(
    modules: jax.Array, latent: jax.Array, x: jax.Array
) -> Construction:
  """Returns the construction of Appendix A.

  The tokens are (x, 0, 1) and (0, z, 0). In head m the query of the second is
  z_m, the key of the first is 1 and its value Theta_m x; all heads write into
  the same block. Modules Theta are [M, H, X], the latent z is [M], x is [X].
  """
  num_modules, width, dim = modules.shape
  embed = dim + num_modules + width + 1
  tokens = np.zeros((2, embed), np.float32)
  tokens[0, :dim], tokens[0, dim + num_modules :] = x, 1.0
  tokens[1, dim : dim + num_modules] = latent
  layer = make_layer('linear', num_modules, num_modules * width)
  params = jax.tree.map(
      lambda p: np.zeros(p.shape, np.float32),
      layer.init(jax.random.key(0), jnp.asarray(tokens)),
  )
  heads = {
      name: np.zeros((embed, num_modules, width), np.float32)
      for name in ('query', 'key', 'value')
  }
  for m in range(num_modules):
    # Scores are divided by the root of a head's width.
    heads['query'][dim + m, m, 0] = math.sqrt(width)
    heads['key'][-1, m, 0] = 1.0
    heads['value'][:dim, m] = np.asarray(modules[m]).T
  for name, weights in heads.items():
    params['attention'][f'{name}_w'] = weights.reshape(embed, -1)
  written = slice(dim + num_modules, dim + num_modules + width)
  project = np.zeros((num_modules, width, embed), np.float32)
  project[:, np.arange(width), written] = np.eye(width)
  params['attention/output']['w'] = project.reshape(-1, embed)
  params = jax.tree.map(jnp.asarray, params)
  return Construction(layer, params, jnp.asarray(tokens), written)


def construction_error(key: jax.Array) -> float:
  """Returns how far the construction is from the hypernetwork of its modules.

  This is the largest difference, relative to the largest output.
  """
  keys = jax.random.split(key, 3)
  modules = jax.random.normal(keys[0], (6, 16, 16))
  latent = jax.random.normal(keys[1], (6,))
  x = jax.random.normal(keys[2], (16,))
  made = construct(modules, latent, x)
  outputs = made.layer.apply(made.params, None, made.tokens)
  expected = jnp.einsum('m,mhd,d->h', latent, modules, x)
  return _error(outputs[1, made.written], expected)


def _error(computed: jax.Array, expected: jax.Array) -> float:
  scale = jnp.max(jnp.abs(expected))
  return float(jnp.max(jnp.abs(computed - expected)) / scale)


def measure(identity: str, seed: int) -> float:
  """Returns the largest error, relative to the largest output.

  The identity is a kind of attention, or `CONSTRUCTION`; the seed is that of
  parameters and tokens.
  """
  key = jax.random.key(seed)
  if identity == CONSTRUCTION:
    return construction_error(key)
  return hypernetwork_error(identity, key)


def main() -> None:
  """Measures all of them."""
  frame = pd.DataFrame([
      {'identity': identity, 'seed': seed, 'value': measure(identity, seed)}
      for identity in (*ATTENTION, CONSTRUCTION)
      for seed in _SEEDS
  ])
  MEASURED.write(frame, '%.3g')
  print(frame.to_string(index=False))


if __name__ == '__main__':
  script.run(main)
