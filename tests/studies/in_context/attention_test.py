"""Attention: identities with hypernetworks, position buckets, dropout."""

import math
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.studies.in_context import attention
from modular_hyperteacher.studies.in_context import identities

_T, _E, _A, _K = 7, 6, 3, 2


def make(
    kind: str, dropout_rate: float = 0.0, num_heads: int = _A
) -> hk.Transformed:
  return hk.transform(
      lambda tokens, first=0: attention.Attention(
          kind,
          num_heads=num_heads,
          qkv_dim=num_heads * _K,
          dropout_rate=dropout_rate,
      )(tokens, first)[0]
  )


def draw(kind: str, num_heads: int = _A) -> tuple[Any, jax.Array]:
  """Returns parameters with random biases, too, by name; and tokens."""
  tokens = jax.random.normal(jax.random.key(1), (_T, _E))
  params = make(kind, num_heads=num_heads).init(jax.random.key(0), tokens)
  leaves, tree = jax.tree.flatten(params)
  keys = jax.random.split(jax.random.key(2), len(leaves))
  leaves = [
      x + 0.3 * jax.random.normal(k, x.shape) for x, k in zip(leaves, keys)
  ]
  return jax.tree.unflatten(tree, leaves), tokens


def _by_name(params: dict[str, dict[str, jax.Array]]) -> dict[str, np.ndarray]:
  return {
      f'{module.split("/")[-1]}/{name}': np.asarray(x, float)
      for module, parameters in params.items()
      for name, x in parameters.items()
  }


def _scores(p: dict[str, np.ndarray], x: np.ndarray, kind: str) -> np.ndarray:
  """Returns normalised scores [A, T, T], written out."""

  def project(name: str) -> np.ndarray:
    weights = p[f'attention/{name}_w'].reshape(_E, -1, _K)
    return np.einsum('te,eak->tak', x, weights) + p[f'attention/{name}_b']

  queries, keys = project('query'), project('key')
  num_heads = queries.shape[1]
  scores = np.zeros((num_heads, _T, _T))
  for a in range(num_heads):
    for q in range(_T):
      for k in range(_T):
        bucket = attention.position_buckets(_T)[q, k]
        scores[a, q, k] = (
            queries[q, a] @ keys[k, a] / math.sqrt(_K)
            + p['attention/position_bias'][a, bucket]
        )
  if (
      'rms_head' in kind
      and 'no_rms_head' not in kind
      or kind
      in (
          'hyla',
          'hyla_no_nonlinearity',
      )
  ):
    scores /= np.sqrt((scores**2).mean(0) + 1e-6)
  if 'softmax' in kind:
    scores = np.exp(scores)
    scores /= scores.sum(-1, keepdims=True)
  return scores


def _expected(params: Any, tokens: jax.Array, kind: str) -> np.ndarray:
  """Returns the layer's output as that of value networks, pair by pair.

  The scores of all heads for a pair of tokens generate the weights of the
  value network that is applied to the second token.
  """
  p = _by_name(params)
  x = np.asarray(tokens, float)
  scores = _scores(p, x, kind)
  num_heads = len(scores)
  first = p['attention/value_w'].reshape(_E, num_heads, _K)
  first_bias = p['attention/value_b']
  second = p['output/w'].reshape(num_heads, _K, _E)
  expected = np.zeros((_T, _E)) + p['output/b']
  for q in range(_T):
    for k in range(_T):
      code = scores[:, q, k]
      out = np.einsum('a,ake->ke', code, second)
      if kind.startswith('hyla'):
        weights = np.einsum('a,eak->ek', code, first)
        hidden = x[k] @ weights + code @ first_bias
        if 'no_nonlinearity' not in kind:
          hidden = np.maximum(hidden, 0)
        expected[q] += hidden @ out
      else:
        values = np.einsum('e,eak->ak', x[k], first) + first_bias
        expected[q] += np.einsum('a,ak,ake->e', code, values, second)
  return expected


@pytest.mark.parametrize('kind', attention.KINDS)
def test_attention_is_a_hypernetwork(kind: str) -> None:
  params, tokens = draw(kind)
  found = make(kind).apply(params, None, tokens)
  np.testing.assert_allclose(
      found, _expected(params, tokens, kind), rtol=2e-4, atol=2e-4
  )


@pytest.mark.parametrize('kind', ['softmax', 'linear'])
def test_linear_values_make_one_matrix_per_pair(kind: str) -> None:
  """sum_k (sum_a s_aqk W_out_a W_value_a) x_k, without biases of values."""
  params, tokens = draw(kind)
  params['attention']['value_b'] *= 0
  p = _by_name(params)
  scores = _scores(p, np.asarray(tokens, float), kind)
  matrices = np.einsum(
      'aqk,eah,ahf->qkef',
      scores,
      p['attention/value_w'].reshape(_E, _A, _K),
      p['output/w'].reshape(_A, _K, _E),
  )
  expected = np.einsum('qkef,ke->qf', matrices, np.asarray(tokens, float))
  found = make(kind).apply(params, None, tokens)
  np.testing.assert_allclose(
      found, expected + p['output/b'], rtol=2e-4, atol=2e-4
  )


@pytest.mark.parametrize('kind', attention.KINDS)
def test_only_the_last_tokens_may_be_asked_for(kind: str) -> None:
  params, tokens = draw(kind)
  everything = make(kind).apply(params, None, tokens)
  some = make(kind).apply(params, None, tokens, 5)
  np.testing.assert_allclose(some, everything[5:], rtol=1e-5, atol=1e-5)


def test_scores_have_unit_mean_square_over_heads() -> None:
  scores = jax.random.normal(jax.random.key(0), (4, 5, 5))
  normed = attention.rms_head(scores)
  np.testing.assert_allclose((normed**2).mean(0), 1, rtol=1e-3)
  alone = attention.rms_head(scores[:1])
  np.testing.assert_allclose(np.abs(alone), 1, rtol=1e-2)


def test_without_nonlinearity_hyla_is_quadratic_in_the_scores() -> None:
  scores = jax.random.normal(jax.random.key(0), (_A, _T, _T))
  values = jax.random.normal(jax.random.key(1), (_T, _A, _K))
  kind = attention.KINDS['hyla_no_nonlinearity']
  once, doubled = (
      attention.mix_values(kind, factor * scores, values) for factor in (1, 2)
  )
  np.testing.assert_allclose(doubled, 4 * once, rtol=1e-4, atol=1e-5)


def test_position_buckets_as_written_out() -> None:
  sixteen = attention.position_buckets(16)
  np.testing.assert_array_equal(sixteen[-1][::-1], np.arange(16))
  written = [*range(20)] + [21, 22, 23, 24, 25, 26, 27, 28, 28, 29, 30, 31]
  np.testing.assert_array_equal(
      attention.position_buckets(32)[-1][::-1], written
  )
  for number in (1, 2, 5, 16, 33):
    buckets = attention.position_buckets(number)
    assert not np.triu(buckets).any()  # Keys at or after the query.
    assert buckets.min() >= 0 and buckets.max() < number


def test_one_dropout_mask_for_all_heads_and_sequences() -> None:
  """Dropped pairs of tokens have no effect; the others are scaled up."""
  params, _ = draw('linear')
  tokens = jax.random.normal(jax.random.key(5), (4, _T, _E))
  layer = make('linear', dropout_rate=0.5)
  key = jax.random.key(6)
  jacobian = jax.vmap(jax.jacobian(lambda x: layer.apply(params, key, x)))
  # With constant scores, an output depends on the tokens that are kept.
  for name in ('query_w', 'query_b'):
    params['attention'][name] *= 0
  depends = np.abs(np.asarray(jacobian(tokens))).max((2, 4)) > 1e-9
  assert 0.2 < depends.mean() < 0.8
  for other in depends[1:]:
    np.testing.assert_array_equal(other, depends[0])
  batched = layer.apply(params, key, tokens)
  single = layer.apply(params, key, tokens[2])
  np.testing.assert_allclose(batched[2], single, rtol=1e-5, atol=1e-5)
  kept = make('linear').apply(params, None, tokens)
  assert np.abs(kept - batched).max() > 0.1


def test_a_linear_attention_layer_runs_a_linear_hypernetwork() -> None:
  """The construction of Kobayashi et al. (2024), Appendix A, exactly."""
  rng = np.random.default_rng(0)
  theta = rng.normal(size=(4, 5, 3))
  latent, x = rng.normal(size=4), rng.normal(size=3)
  made = identities.construct(*map(jnp.asarray, (theta, latent, x)))
  np.testing.assert_allclose(made.tokens[0], [*x, *[0] * 4, *[1] * 6], 1e-6)
  np.testing.assert_allclose(made.tokens[1], [*[0] * 3, *latent, *[0] * 6])
  found = made.layer.apply(made.params, None, made.tokens)
  expected = np.einsum('m,mhd,d->h', latent, theta, x)
  np.testing.assert_allclose(
      found[1, made.written], expected, rtol=1e-4, atol=1e-5
  )
  # The rest of the token stays as it is.
  rest = np.delete(np.asarray(found[1]), np.arange(13)[made.written])
  np.testing.assert_allclose(rest, 0, atol=1e-6)


@pytest.mark.parametrize('kind, other', [('softmax', 'linear')])
def test_identities_hold_for_the_right_scores_only(
    kind: str, other: str
) -> None:
  key = jax.random.key(3)
  for name in (kind, other):
    assert identities.hypernetwork_error(name, key) < 1e-5
  layer = identities.make_layer(kind, 4, 16)
  tokens = jax.random.normal(key, (12, 16))
  params = layer.init(key, tokens)
  outputs = layer.apply(params, None, tokens)
  wrong = identities.as_hypernetwork(params, tokens, other)
  assert np.abs(outputs - wrong).max() > 0.1
