"""Digests of drawn tasks: what counts as the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.experiments import draws


def _tree(seed: int) -> dict[str, jax.Array]:
  key = jax.random.key(seed)
  return {
      'weights': jax.random.normal(key, (4, 5)),
      'masks': jax.random.bernoulli(key, 0.5, (20,)),
      'cells': jax.random.randint(key, (20,), 0, 9),
      'key': key,
  }


def test_rounding_is_no_difference_and_another_draw_is() -> None:
  first = draws.digest(_tree(1))
  rounded = _tree(1)
  rounded['weights'] *= 1 + 1e-6
  assert draws.compare(first, draws.digest(rounded)) is None
  assert draws.compare(None, first) is None  # As an earlier version stored it.
  for name in ('weights', 'masks', 'cells', 'key'):
    other = draws.digest({**_tree(1), name: _tree(2)[name]})
    told = draws.compare(first, other)
    assert told and 'JAX_ENABLE_X64 or JAX_THREEFRY_PARTITIONABLE' in told
  other = draws.digest({**_tree(1), 'weights': jnp.ones((5, 4))})
  assert draws.compare(first, other)


def test_the_version_of_jax_is_named() -> None:
  now = draws.digest(_tree(1))
  before = {**draws.digest(_tree(2)), 'jax': '0.9'}
  told = draws.compare(before, now)
  assert told and told.endswith(f'JAX was 0.9 and is {jax.__version__}')


@pytest.mark.parametrize('odd', [np.zeros(0), np.array(np.nan), np.inf])
def test_odd_arrays_have_a_digest(odd: np.ndarray) -> None:
  digest = draws.digest({'a': odd})
  assert np.isfinite(digest['close']).all()
  assert draws.compare(digest, draws.digest({'a': odd})) is None
