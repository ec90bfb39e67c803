"""Combinations: order and numbers against brute force; sets and their draws."""

from collections.abc import Callable, Sequence
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

from modular_hyperteacher.tasks.supports import combinations
from modular_hyperteacher.tasks.supports import feistel

_NONEMPTY: Any = True  # A static argument.
_NO_KEYS: Any = None  # For sets that do not ask the round keys.


def _brute_force_masks(
    num_modules: int, num_active: int
) -> list[tuple[bool, ...]]:
  """All masks with that many ones; lexicographic in the active modules.

  The mask whose first active modules come first is the larger binary number.
  """
  masks = itertools.product([True, False], repeat=num_modules)
  return [mask for mask in masks if sum(mask) == num_active]


def _brute_force_up_to(
    num_modules: int, max_active: int
) -> list[tuple[bool, ...]]:
  return sum(
      (_brute_force_masks(num_modules, k) for k in range(1, max_active + 1)),
      [],
  )


def _as_tuples(masks: Any) -> list[tuple[tuple[bool, ...], ...]]:
  """[C, L, M] -> list of combinations that can be put into a set."""
  return [tuple(map(tuple, layers)) for layers in np.asarray(masks).tolist()]


@functools.lru_cache
def _compiled(
    combination_set: combinations.CombinationSet,
) -> Callable[..., jax.Array]:
  return jax.jit(jax.vmap(combination_set.sample, (None, 0, None)))


def _draw(
    combination_set: combinations.CombinationSet,
    num_draws: int,
    round_keys: Any = None,
    nonempty: bool = True,
) -> list[tuple[tuple[bool, ...], ...]]:
  if round_keys is None:
    round_keys = feistel.draw_round_keys(jax.random.key(0))
  keys = jax.random.split(jax.random.key(1), num_draws)
  drawn = _compiled(combination_set)(round_keys, keys, nonempty)
  assert drawn.dtype == bool
  return _as_tuples(drawn)


def _assert_uniform(drawn: Sequence[Any], expected: Sequence[Any]) -> None:
  """All members are drawn, and nothing else, equally often (5 sigma)."""
  assert len(set(expected)) == len(expected)
  counts = dict.fromkeys(expected, 0)
  for combination in drawn:
    counts[combination] += 1  # A KeyError: not a member.
  probability = 1 / len(expected)
  sigma = math.sqrt(len(drawn) * probability * (1 - probability))
  for combination, count in counts.items():
    assert count > 0, f'{combination} is never drawn'
    assert abs(count - len(drawn) * probability) <= 5 * sigma, combination


@pytest.mark.parametrize('num_modules', range(1, 9))
def test_masks_with_and_up_to_are_in_order(num_modules: int) -> None:
  for k in range(1, num_modules + 1):
    exact = combinations.masks_with(num_modules, k)
    assert exact.dtype == bool
    assert exact.shape == (math.comb(num_modules, k), num_modules)
    expected = _brute_force_masks(num_modules, k)
    np.testing.assert_array_equal(exact, expected)
    up_to = combinations.masks_up_to(num_modules, k)
    expected = _brute_force_up_to(num_modules, k)
    np.testing.assert_array_equal(up_to, expected)


def test_masks_of_the_docstring_example() -> None:
  """M = 3, K = 2: 0, 1, 2, 01, 02, 12."""
  active = [
      tuple(np.flatnonzero(mask)) for mask in combinations.masks_up_to(3, 2)
  ]
  assert active == [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]


@pytest.mark.parametrize(
    'num_modules, max_active, num_layers',
    [(1, 1, 1), (3, 3, 1), (4, 2, 2), (8, 2, 2), (3, 2, 3), (6, 6, 2)],
)
def test_all_combinations_are_in_order(
    num_modules: int, max_active: int, num_layers: int
) -> None:
  every = combinations.all_combinations(num_modules, max_active, num_layers)
  masks = _brute_force_up_to(num_modules, max_active)
  expected = list(itertools.product(masks, repeat=num_layers))
  np.testing.assert_array_equal(every, np.array(expected))


@hypothesis.settings(deadline=None, max_examples=40)
@hypothesis.given(st.data())
def test_unravel_counts_in_the_base_of_the_number_of_masks(
    data: st.DataObject,
) -> None:
  """Also where the combinations cannot be listed (16 modules: 6330256)."""
  num_modules, max_active, num_layers = data.draw(
      st.sampled_from([(16, 4, 2), (16, 2, 3), (8, 8, 2), (5, 2, 4)]), 'sizes'
  )
  table = combinations.masks_up_to(num_modules, max_active)
  index = data.draw(st.integers(0, len(table) ** num_layers - 1), 'index')
  tables = (table,) * num_layers
  masks = combinations.unravel(tables, jnp.uint32(index))
  assert masks.shape == (num_layers, num_modules)
  digits, rest = [], index
  for _ in range(num_layers):
    digits.append(rest % len(table))
    rest //= len(table)
  np.testing.assert_array_equal(masks, table[digits[::-1]])


def test_unravel_is_the_same_in_numpy_and_jax() -> None:
  tables = (combinations.masks_with(4, 2), combinations.masks_up_to(4, 3))
  index = np.arange(6 * 14).reshape(4, 21)
  in_numpy = combinations.unravel(tables, index)
  assert isinstance(in_numpy, np.ndarray)
  assert in_numpy.shape == (4, 21, 2, 4)
  in_jax = combinations.unravel(tables, jnp.asarray(index))
  np.testing.assert_array_equal(in_numpy, in_jax)
  expected = list(itertools.product(*map(np.ndarray.tolist, tables)))
  np.testing.assert_array_equal(in_numpy.reshape(-1, 2, 4), expected)


def test_product_set() -> None:
  tables = (combinations.masks_up_to(3, 1), combinations.masks_with(3, 2)[:2])
  product = combinations.product_set(tables)
  expected = [
      (tuple(a), tuple(b))
      for a in tables[0].tolist()
      for b in tables[1].tolist()
  ]
  assert product.count(_NO_KEYS) == 6 == len(expected)
  _assert_uniform(_draw(product, 3000), expected)


def test_product_set_layers_are_independent() -> None:
  drawn = np.array(
      _draw(combinations.product_set((combinations.masks_with(4, 1),) * 3), 900)
  )
  active = drawn.argmax(-1)
  for a, b in itertools.combinations(range(3), 2):
    # Agreement in a quarter of the draws, within five sigma.
    agree = (active[:, a] == active[:, b]).mean()
    assert abs(agree - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 900)


def test_listed_set() -> None:
  masks = combinations.all_combinations(3, 2, 2)[[1, 5, 8, 30]]
  listed = combinations.listed_set(masks)
  assert listed.count(_NO_KEYS) == 4
  _assert_uniform(_draw(listed, 2000), _as_tuples(masks))


def test_empty_listed_set_returns() -> None:
  listed = combinations.listed_set(np.zeros((0, 2, 3), bool))
  assert listed.count(_NO_KEYS) == 0
  drawn = _draw(listed, 5, nonempty=False)
  assert np.array(drawn).shape == (5, 2, 3)


def test_empty_product_set_returns() -> None:
  product = combinations.product_set(
      (combinations.masks_with(3, 2), combinations.masks_with(3, 4))
  )
  assert product.count(_NO_KEYS) == 0
  drawn = _draw(product, 5, nonempty=False)
  assert np.array(drawn).shape == (5, 2, 3)


def test_permuted_sets_partition_the_product() -> None:
  tables = (combinations.masks_up_to(3, 2), combinations.masks_with(3, 2))
  every = set(itertools.product(*[map(tuple, t.tolist()) for t in tables]))
  bounds = [(0, 5), (5, 14), (14, 18)]
  parts = [combinations.permuted_set(tables, *part) for part in bounds]
  for seed in range(3):
    round_keys = feistel.draw_round_keys(jax.random.key(seed))
    listed = []
    for part, (start, stop) in zip(parts, bounds):
      assert part.count(round_keys) == stop - start
      assert part.members is not None
      members = part.members(round_keys, jnp.arange(stop - start))
      assert members.shape == (stop - start, 2, 3)
      members = _as_tuples(members)
      _assert_uniform(_draw(part, 2000, round_keys), members)
      listed += members
    assert len(listed) == len(every) == 18
    assert set(listed) == every


def test_permuted_set_depends_on_the_round_keys() -> None:
  tables = (combinations.masks_up_to(4, 2),) * 2
  part = combinations.permuted_set(tables, 0, 25)
  assert part.members is not None
  members = {
      frozenset(
          _as_tuples(
              part.members(
                  feistel.draw_round_keys(jax.random.key(seed)),
                  jnp.arange(25),
              )
          )
      )
      for seed in range(20)
  }
  assert len(members) == 20


def test_empty_permuted_set_returns() -> None:
  part = combinations.permuted_set((combinations.masks_up_to(3, 2),), 4, 4)
  assert part.count(_NO_KEYS) == 0
  assert np.array(_draw(part, 5, nonempty=False)).shape == (5, 1, 3)


def test_filtered_set_against_brute_force() -> None:
  """Keeps what shares an active module between the layers."""
  tables = (combinations.masks_up_to(4, 2), combinations.masks_with(4, 2))
  first, second = map(jnp.asarray, tables)
  filtered = combinations.filtered_set(
      tables, lambda _, rows: (first[rows[0]] & second[rows[1]]).any()
  )
  expected = [
      (tuple(a), tuple(b))
      for a in tables[0].tolist()
      for b in tables[1].tolist()
      if any(x and y for x, y in zip(a, b))
  ]
  assert 0 < len(expected) < 60
  round_keys = feistel.draw_round_keys(jax.random.key(0))
  assert filtered.count(round_keys) == len(expected)
  _assert_uniform(_draw(filtered, 6000), expected)


def test_filtered_set_asks_the_round_keys() -> None:
  tables = (combinations.masks_with(3, 1),)
  filtered = combinations.filtered_set(
      tables, lambda round_keys, rows: rows[0] == round_keys[0] % 3
  )
  for first in range(3):
    round_keys = jnp.full(8, first, jnp.uint32)
    expected = [(tuple(np.eye(3, dtype=bool)[first].tolist()),)]
    assert filtered.count(round_keys) == 1
    assert set(_draw(filtered, 20, round_keys)) == set(expected)


def test_many_draws_by_rejection_end(monkeypatch: pytest.MonkeyPatch) -> None:
  """All of them, within 200 rounds; half of the proposals are kept."""
  while_loop = jax.lax.while_loop

  def bounded_loop(
      condition: Callable[[Any], Any], body: Callable[[Any], Any], start: Any
  ) -> Any:
    _, end = while_loop(
        lambda carry: (carry[0] < 200) & condition(carry[1]),
        lambda carry: (carry[0] + 1, body(carry[1])),
        (0, start),
    )
    return end

  monkeypatch.setattr(jax.lax, 'while_loop', bounded_loop)
  filtered = combinations.filtered_set(
      (combinations.masks_with(4, 2),), lambda _, rows: rows[0] < 3
  )
  keys = jax.random.split(jax.random.key(0), 64)
  masks = jax.vmap(lambda key: filtered.sample(_NO_KEYS, key, _NONEMPTY))(keys)
  assert masks[:, 0, 0].all(), 'a draw would never have ended'


def test_empty_filtered_set_returns() -> None:
  filtered = combinations.filtered_set(
      (combinations.masks_with(4, 2),) * 2, lambda _, rows: rows[0] > 5
  )
  round_keys = feistel.draw_round_keys(jax.random.key(0))
  assert filtered.count(round_keys) == 0
  drawn = _draw(filtered, 5, nonempty=False)
  assert np.array(drawn).shape == (5, 2, 4)


@pytest.mark.parametrize('num_layers', [2, 3])
def test_filtered_count_over_many_chunks(num_layers: int) -> None:
  """126 masks: 15876 and 2000376 combinations; 56 masks have module 0."""
  masks = combinations.masks_with(9, 4)
  has_module = jnp.asarray(masks[:, 0])
  filtered = combinations.filtered_set(
      (masks,) * num_layers, lambda _, rows: has_module[jnp.stack(rows)].all()
  )
  round_keys = feistel.draw_round_keys(jax.random.key(0))
  assert filtered.count(round_keys) == 56**num_layers


def test_filtered_count_of_many_candidates_is_a_lower_bound() -> None:
  """4368 masks: 19 million combinations, of which 2**22 are looked at."""
  masks = combinations.masks_with(16, 5)
  has_module = jnp.asarray(masks[:, 0])
  filtered = combinations.filtered_set(
      (masks,) * 2, lambda _, rows: has_module[rows[1]]
  )
  round_keys = feistel.draw_round_keys(jax.random.key(0))
  # The last layer varies fastest; the masks with module 0 are the first ones.
  rows, rest = divmod(2**22, 4368)
  with_module = math.comb(15, 4)
  expected = rows * with_module + min(rest, with_module)
  assert filtered.count(round_keys) == expected
