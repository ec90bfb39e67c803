"""Multi-head attention, and attention as a hypernetwork (HYLA).

Source: Schug et al., "Attention as a Hypernetwork" (2025), Section 2. For one
query q and key k, the scores a of the heads are the latent code of a
hypernetwork, which generates the value network that is applied to token k:

  linear values   out_q = sum_k (sum_a s_aqk W_out_a) v_ak
  HYLA            out_q = sum_k (sum_a s_aqk W_out_a) relu(sum_a s_aqk v_ak)

Scores are q.k / sqrt(K), plus a bias that depends on the relative position,
and may be normalised over keys ('softmax') or over heads ('rms_head'). There is
no causal mask.
"""

from collections.abc import Callable, Mapping
import dataclasses
import math
from typing import NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

_EPS = 1e-6
# Variance 1/fan_in exactly, cut at two standard deviations.
WEIGHTS = hk.initializers.VarianceScaling(1.0, 'fan_in', 'truncated_normal')


class Kind(NamedTuple):
  """A kind of attention."""

  normalise: Callable[[jax.Array], jax.Array]  # Scores [..., A, T, T].
  is_hyla: bool = False  # Whether scores also mix the heads' values, per key.
  activation: Callable[[jax.Array], jax.Array] = jax.nn.relu  # On mixtures.


def rms_head(scores: jax.Array) -> jax.Array:
  """Scales scores [..., A, Tq, T] to mean square 1 over the heads."""
  mean_square = jnp.mean(scores**2, axis=-3, keepdims=True)
  return scores * jax.lax.rsqrt(mean_square + _EPS)


# Rows of Table A1 that are built. 'hyla_no_...' lack that part of HYLA.
KINDS: Mapping[str, Kind] = {
    'softmax': Kind(jax.nn.softmax),
    'linear': Kind(jax.nn.identity),
    'hyla': Kind(rms_head, True),
    'linear_rms_head': Kind(rms_head),
    'hyla_no_rms_head': Kind(jax.nn.identity, True),
    'hyla_no_nonlinearity': Kind(rms_head, True, jax.nn.identity),
    'hyla_no_nonlinearity_no_rms_head': Kind(
        jax.nn.identity, True, jax.nn.identity
    ),
    'hyla_softmax': Kind(jax.nn.softmax, True),
}


def position_buckets(num_tokens: int) -> np.ndarray:
  """Returns the bucket of every query and key position, [T, T] int.

  The one-directional rule of T5 with as many buckets as tokens. A key that lies
  n tokens before the query is in bucket n if n < T / 2; further buckets widen
  in proportion to n. Keys at or after the query share bucket 0.
  """
  exact = num_tokens // 2
  position = np.arange(num_tokens)
  distance = np.maximum(position[:, None] - position[None], 0)
  ratio = np.maximum(distance, 1) / max(exact, 1)
  growth = np.log(ratio) / math.log(num_tokens / max(exact, 1) + 1e-12)
  far = exact + np.floor(growth * (num_tokens - exact)).astype(int)
  return np.where(
      distance < exact, distance, np.minimum(far, num_tokens - 1)
  ) * (distance > 0)


@dataclasses.dataclass
class Attention(hk.Module):
  """Attention of the tokens of a sequence to all of its tokens."""

  kind: str  # A name in `KINDS`.
  num_heads: int  # A
  qkv_dim: int  # Width of queries, keys, values over all heads: A K.
  # Fraction of the pairs of tokens whose scores are dropped; the same pairs in
  # all heads, and in all sequences of a batch.
  dropout_rate: float
  name: str = 'attention'

  def __call__(
      self, tokens: jax.Array, first_query: int = 0
  ) -> tuple[jax.Array, jax.Array]:
    """Returns what tokens [..., T, E] from `first_query` on read from all.

    These are [..., T - first_query, E]; and the codes with which these tokens
    read themselves, the heads' scores of such pairs, [..., T - first_query, A].
    """
    num_tokens, width = tokens.shape[-2:]
    kind = KINDS[self.kind]
    queries = self._heads(tokens[..., first_query:, :], 'query')
    keys, values = (self._heads(tokens, name) for name in ('key', 'value'))
    queries = queries / math.sqrt(queries.shape[-1])
    scores = jnp.einsum('...qak,...tak->...aqt', queries, keys)
    bias = self._position_bias(num_tokens)[:, first_query:]
    scores = kind.normalise(scores + bias[(None,) * (scores.ndim - 3)])
    outputs = mix_values(kind, self._drop(scores), values)
    outputs = outputs.reshape(*outputs.shape[:-2], -1)
    outputs = hk.Linear(width, w_init=WEIGHTS, name='output')(outputs)
    own = jnp.diagonal(scores[..., first_query:], axis1=-2, axis2=-1)
    return outputs, own.swapaxes(-1, -2)

  def _heads(self, tokens: jax.Array, name: str) -> jax.Array:
    """Returns a projection of tokens [..., T, E] as [..., T, A, K].

    Its bias has a row per head, as in the released code: weight decay spares
    vectors only, so it applies to these biases.
    """
    shape = self.num_heads, self.qkv_dim // self.num_heads
    weights = hk.get_parameter(
        f'{name}_w', (tokens.shape[-1], math.prod(shape)), init=WEIGHTS
    )
    bias = hk.get_parameter(f'{name}_b', shape, init=jnp.zeros)
    projected = (tokens @ weights).reshape(*tokens.shape[:-1], *shape)
    return projected + bias[(None,) * (projected.ndim - 2)]

  def _position_bias(self, num_tokens: int) -> jax.Array:
    """Returns what is added to scores, [A, T, T]."""
    table = hk.get_parameter(
        'position_bias',
        (self.num_heads, num_tokens),
        init=hk.initializers.RandomNormal(1 / math.sqrt(num_tokens)),
    )
    return table[:, position_buckets(num_tokens)]

  def _drop(self, scores: jax.Array) -> jax.Array:
    if not self.dropout_rate:
      return scores
    # One mask for all sequences and heads.
    keep = hk.dropout(
        hk.next_rng_key(), self.dropout_rate, jnp.ones(scores.shape[-2:])
    )
    return scores * keep[(None,) * (scores.ndim - 2)]


def mix_values(kind: Kind, scores: jax.Array, values: jax.Array) -> jax.Array:
  """Returns what every query reads from all tokens, [..., Tq, A, K].

  Scores are [..., A, Tq, T], values [..., T, A, K].
  """
  if not kind.is_hyla:
    return jnp.einsum('...aqt,...tak->...qak', scores, values)
  mixed = jnp.einsum('...aqt,...tak->...qtk', scores, values)
  return jnp.einsum('...aqt,...qtk->...qak', scores, kind.activation(mixed))
