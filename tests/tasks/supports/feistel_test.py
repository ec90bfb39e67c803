"""The keyed permutation: one to one, invertible, and even-handed."""

from collections.abc import Callable
import functools
import itertools
import math
from typing import Any

import hypothesis
from hypothesis import strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.tasks.supports import feistel
from tests.helpers import slow

_SIZES = (1, 2, 3, 4, 5, 16, 17, 100, 1296, 8464)
# Combinations of 16 modules, up to 4 active, two layers; and the limits.
_LARGE_SIZES = (6330256, 2**30, 2**30 + 1, 2**31 - 1)


_inverse = functools.partial(feistel.apply, inverse=True)
_apply = jax.jit(jax.vmap(feistel.apply, (None, 0, None)), static_argnums=2)
_invert = jax.jit(jax.vmap(_inverse, (None, 0, None)), static_argnums=2)


def _round_keys(seed: int) -> jax.Array:
  return feistel.draw_round_keys(jax.random.key(seed))


def _permutations(
    size: int, num_keys: int, function: Callable[..., Any] = feistel.apply
) -> np.ndarray:
  """Returns where `num_keys` permutations send 0 to size - 1: [keys, size]."""

  def permute(key: jax.Array) -> jax.Array:
    round_keys = feistel.draw_round_keys(key)
    values = jnp.arange(size, dtype=jnp.uint32)
    return jax.vmap(lambda value: function(round_keys, value, size))(values)

  keys = jax.random.split(jax.random.key(size), num_keys)
  return np.asarray(jax.jit(jax.vmap(permute))(keys))


def _assert_frequency(counts: Any, probability: float, num_draws: int) -> None:
  """Within five standard deviations of a binomial."""
  sigma = math.sqrt(num_draws * probability * (1 - probability))
  deviation = np.abs(np.asarray(counts) - num_draws * probability).max()
  assert deviation < 5 * sigma, f'{deviation / sigma:.1f} sigma'


@pytest.mark.parametrize('size', _SIZES)
def test_permutes_the_integers_below_size(size: int) -> None:
  for seed in range(3):
    values = _apply(_round_keys(seed), np.arange(size), size)
    assert values.dtype == jnp.uint32
    np.testing.assert_array_equal(np.sort(values), np.arange(size))
    back = _invert(_round_keys(seed), values, size)
    np.testing.assert_array_equal(back, np.arange(size))


@pytest.mark.slow
@hypothesis.settings(deadline=None, max_examples=200)
@hypothesis.given(st.data())
def test_invert_undoes_apply_and_apply_undoes_invert(
    data: st.DataObject,
) -> None:
  size = data.draw(st.sampled_from(_SIZES + _LARGE_SIZES), 'size')
  value = data.draw(st.integers(0, size - 1), 'value')
  round_keys = np.array(
      data.draw(st.lists(st.integers(0, 2**32 - 1), min_size=8, max_size=8)),
      np.uint32,
  )
  values = np.array([value], np.uint32)
  for first, second in ((_apply, _invert), (_invert, _apply)):
    sent = first(round_keys, values, size)
    assert 0 <= int(sent[0]) < size
    assert int(second(round_keys, sent, size)[0]) == value


@pytest.mark.parametrize('size', _LARGE_SIZES)
def test_large_sizes(size: int) -> None:
  """Values at both ends and spread out stay apart, in range and move far."""
  spread = np.linspace(0, size - 1, 10_000).astype(np.uint32)
  ends = np.arange(100, dtype=np.uint32)
  values = np.unique(np.concatenate([ends, spread, size - 1 - ends]))
  sent = np.asarray(_apply(_round_keys(0), values, size))
  assert sent.max() < size
  assert len(np.unique(sent)) == len(values)
  np.testing.assert_array_equal(_invert(_round_keys(0), sent, size), values)
  # A tenth of the range holds a tenth of the images.
  counts, _ = np.histogram(sent.astype(float), bins=10, range=(0, size))
  _assert_frequency(counts, 0.1, len(values))


@pytest.mark.parametrize('size', [100, 1296])
def test_different_keys_give_different_permutations(size: int) -> None:
  permutations = _permutations(size, 100)
  assert len({row.tobytes() for row in permutations}) == 100
  # Two independent permutations agree in one place on average.
  agree = (permutations[:, None] == permutations[None]).sum(-1)
  different = agree[~np.eye(100, dtype=bool)]
  assert abs(different.mean() - 1) < 0.2
  assert different.max() < 15


def test_keys_are_drawn_from_the_key() -> None:
  np.testing.assert_array_equal(_round_keys(3), _round_keys(3))
  assert (_round_keys(3) != _round_keys(4)).all()


@pytest.mark.parametrize('size', [2, 3])
def test_all_permutations_of_a_few_are_equally_likely(size: int) -> None:
  num_keys = 6000
  drawn = [tuple(row) for row in _permutations(size, num_keys).tolist()]
  every = list(itertools.permutations(range(size)))
  assert set(drawn) == set(every)
  counts = [drawn.count(order) for order in every]
  _assert_frequency(counts, 1 / len(every), num_keys)


@pytest.mark.parametrize('size', slow.mark([16, 100, 441], [441]))
def test_every_element_is_held_out_equally_often(size: int) -> None:
  """An element is held out if its rank is in the last quarter."""
  num_keys = 2000
  num_held_out = size // 4
  ranks = _permutations(size, num_keys, _inverse)
  held_out = ranks >= size - num_held_out
  assert (held_out.sum(1) == num_held_out).all()
  _assert_frequency(held_out.sum(0), num_held_out / size, num_keys)
  # Pairs, without replacement.
  together = held_out.T.astype(int) @ held_out.astype(int)
  pairs = together[np.triu_indices(size, 1)]
  probability = num_held_out * (num_held_out - 1) / (size * (size - 1))
  _assert_frequency(pairs, probability, num_keys)


def test_every_element_lands_everywhere_equally_often() -> None:
  size, num_keys = 16, 4000
  sent = _permutations(size, num_keys)
  counts = np.stack([np.bincount(column, minlength=size) for column in sent.T])
  _assert_frequency(counts, 1 / size, num_keys)
