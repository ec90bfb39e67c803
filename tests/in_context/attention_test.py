"""Attention equals a hypernetwork, and HYLA its definition, written out."""

import math

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.in_context import attention

_T, _E, _A, _K = 6, 5, 3, 2


def _attention(kind: str, dropout_rate: float = 0.0) -> hk.Transformed:
  return hk.transform(
      lambda tokens, first: attention.Attention(
          kind, num_heads=_A, qkv_dim=_A * _K, dropout_rate=dropout_rate
      )(tokens, first)
  )


def _draw(kind: str, seed: int = 0) -> tuple[dict, np.ndarray]:
  """Returns parameters, biases included, and tokens [T, E]."""
  rng = np.random.default_rng(seed)
  tokens = rng.standard_normal((_T, _E)).astype(np.float32)
  params = _attention(kind).init(jax.random.key(0), tokens, 0)
  params = jax.tree.map(
      lambda x: jnp.asarray(rng.standard_normal(x.shape), jnp.float32), params
  )
  return params, tokens


def _written_out(kind: str, params: dict, tokens: np.ndarray) -> np.ndarray:
  """Section 2 of Schug et al. (2025), in loops over queries, keys and heads."""
  own, out = (
      {name: np.asarray(x) for name, x in params[module].items()}
      for module in ('attention', 'attention/output')
  )
  q, k, v = (
      (tokens @ own[f'{n}_w']).reshape(_T, _A, _K) + own[f'{n}_b']
      for n in ('query', 'key', 'value')
  )
  scores = np.zeros((_A, _T, _T))
  for a in range(_A):
    for i in range(_T):
      for j in range(_T):
        distance = max(i - j, 0)
        bucket = distance  # The same for at most 16 tokens.
        bias = own['position_bias'][a, bucket]
        scores[a, i, j] = q[i, a] @ k[j, a] / math.sqrt(_K) + bias
  if 'softmax' in kind:
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    scores = weights / weights.sum(-1, keepdims=True)
  elif kind in ('hyla', 'linear_rms_head', 'hyla_no_nonlinearity'):
    scores = scores / np.sqrt((scores**2).mean(0) + 1e-6)
  w_out = np.asarray(out['w']).reshape(_A, _K, _E)
  result = np.zeros((_T, _E))
  for i in range(_T):
    for j in range(_T):
      code = scores[:, i, j]  # The hypernetwork's.
      generated_out = np.tensordot(code, w_out, 1)  # [K, E]
      if 'hyla' in kind:
        hidden = code @ np.asarray(v[j])
        if 'no_nonlinearity' not in kind:
          hidden = np.maximum(hidden, 0)
        result[i] += hidden @ generated_out
      else:
        for a in range(_A):
          result[i] += code[a] * (np.asarray(v[j, a]) @ w_out[a])
  return result + np.asarray(out['b'])


@pytest.mark.parametrize('kind', attention.KINDS)
def test_attention_is_a_hypernetwork_whose_code_is_the_scores(
    kind: str,
) -> None:
  params, tokens = _draw(kind)
  found = _attention(kind).apply(params, None, tokens, 0)
  expected = _written_out(kind, params, tokens)
  np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize('kind', ['softmax', 'hyla'])
def test_later_tokens_attend_as_they_do_among_all(kind: str) -> None:
  params, tokens = _draw(kind)
  every = _attention(kind).apply(params, None, tokens, 0)
  last = _attention(kind).apply(params, None, tokens, _T - 1)
  np.testing.assert_allclose(last, every[-1:], rtol=1e-5, atol=1e-5)


def test_scores_have_mean_square_one_over_heads() -> None:
  scores = np.random.default_rng(0).standard_normal((4, 3, 3)) * 50
  normalised = attention.rms_head(jnp.asarray(scores))
  np.testing.assert_allclose((normalised**2).mean(0), 1, rtol=1e-5)
  single = attention.rms_head(jnp.asarray(scores[:1]))
  np.testing.assert_allclose(np.abs(single), 1, rtol=1e-5)


def test_without_relu_and_normalisation_hyla_is_quadratic_in_scores() -> None:
  kind = attention.KINDS['hyla_no_nonlinearity_no_rms_head']
  rng = np.random.default_rng(0)
  scores, values = rng.standard_normal((2, 3, 3)), rng.standard_normal(
      (3, 2, 4)
  )
  once = attention.mix_values(kind, jnp.asarray(scores), jnp.asarray(values))
  twice = attention.mix_values(
      kind, jnp.asarray(2 * scores), jnp.asarray(values)
  )
  np.testing.assert_allclose(twice, 4 * once, rtol=1e-5)


def test_position_buckets() -> None:
  """Keys at or after the query share a bucket; far ones are pooled."""
  buckets = attention.position_buckets(16)
  for query in range(16):
    for key in range(16):
      assert buckets[query, key] == max(query - key, 0)
  last = attention.position_buckets(32)[-1]
  distances = list(range(19, 32))
  found = [int(last[31 - n]) for n in distances]
  assert found == [19, 21, 22, 23, 24, 25, 26, 27, 28, 28, 29, 30, 31]
  assert (np.triu(attention.position_buckets(32)) == 0).all()


def test_dropout_masks_pairs_of_tokens_alike_in_heads_and_sequences() -> None:
  """Seen from sequences that are equal: their outputs stay equal."""
  params, tokens = _draw('softmax')
  batch = jnp.stack([tokens, tokens])
  dropped = _attention('softmax', 0.5).apply(
      params, jax.random.key(1), batch, 0
  )
  np.testing.assert_array_equal(dropped[0], dropped[1])
  kept = _attention('softmax').apply(params, None, batch, 0)
  assert np.abs(dropped - kept).max() > 0.01
