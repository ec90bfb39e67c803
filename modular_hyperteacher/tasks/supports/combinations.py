"""Combinations of modules, and sets of combinations to sample from.

A *mask* says which of M modules are active. A *combination* is one mask per
layer, `[L, M]`. There can be too many combinations to list (sixteen modules,
up to four active, two layers: 6.3 million), so a set is represented by two
functions, one that counts and one that samples.
"""

from collections.abc import Callable, Sequence
import dataclasses
import itertools
import math
from typing import Any, TypeVar

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher.tasks.supports import feistel
from modular_hyperteacher.untrusted import rules

_MAX_COUNTED = 2**22
_CHUNK = 2**16
_Index = TypeVar('_Index', np.ndarray, jax.Array)
Rows = tuple[jax.Array, ...]  # [...] per layer, of a combination in the tables.


@dataclasses.dataclass(frozen=True)
class CombinationSet:
  """A set of combinations that can be counted and sampled from."""

  count: Callable[[jax.Array], int]  # (round_keys); host code
  # (round_keys, key, nonempty) -> [L, M] bool, uniform. If `nonempty` is false,
  # the call returns, but its result is meaningless.
  sample: Callable[[jax.Array, jax.Array, Any], jax.Array]
  # (round_keys, ranks) -> the combinations [..., L, M] with these ranks, 0 to
  # count - 1. None for sets without ranks.
  members: Callable[[jax.Array, jax.typing.ArrayLike], jax.Array] | None = None


def masks_with(num_modules: int, num_active: int) -> np.ndarray:
  """Returns all masks with `num_active` ones, lexicographic: [C, M] bool."""
  combinations = itertools.combinations(range(num_modules), num_active)
  masks = np.zeros((math.comb(num_modules, num_active), num_modules), bool)
  for row, active in enumerate(combinations):
    masks[row, list(active)] = True
  return masks


def without(masks: np.ndarray, others: np.ndarray) -> np.ndarray:
  """Returns the rows of masks [C, M] that are not among others [D, M]."""
  return masks[~(masks[:, None] == others[None]).all(-1).any(-1)]


def num_masks(num_modules: int, max_active: int) -> int:
  """Returns the number of masks with 1 to `max_active` ones; lists none."""
  return sum(math.comb(num_modules, k) for k in range(1, max_active + 1))


def check_masks(num_modules: int, max_active: int) -> None:
  """Raises UserError unless up to `max_active` modules can be active."""
  rules.positive()(num_modules, 'task.num_modules')
  errors.require(
      1 <= max_active <= num_modules,
      'task.max_active',
      max_active,
      f'it must be between 1 and task.num_modules, which is {num_modules}',
  )


def masks_up_to(num_modules: int, max_active: int) -> np.ndarray:
  """Returns all masks with 1 to `max_active` ones: [C, M] bool.

  Ordered by the number of ones, then lexicographically.
  """
  return np.concatenate(
      [masks_with(num_modules, k) for k in range(1, max_active + 1)]
  )


def all_combinations(
    num_modules: int, max_active: int, num_layers: int
) -> np.ndarray:
  """Returns every combination of masks up to `max_active`: [C, L, M] bool."""
  tables = (masks_up_to(num_modules, max_active),) * num_layers
  return np.asarray(unravel(tables, np.arange(math.prod(map(len, tables)))))


def unravel(tables: Sequence[np.ndarray], index: _Index) -> _Index:
  """Returns the combinations at these indices: [..., L, M] bool.

  The last layer varies fastest. A NumPy index gives a NumPy result.
  """
  xp: Any = np if isinstance(index, np.ndarray) else jnp
  rows = xp.unravel_index(index, tuple(map(len, tables)))
  return _pick(tables, rows, xp)


def _draw_rows(tables: Sequence[np.ndarray], key: jax.Array) -> Rows:
  """Draws a combination, uniformly."""
  keys = jax.random.split(key, len(tables))
  return tuple(
      jax.random.randint(layer_key, (), 0, len(table))
      for table, layer_key in zip(tables, keys)
  )


def _pick(tables: Sequence[np.ndarray], rows: Rows, xp: Any = jnp) -> Any:
  """Returns the combinations in these rows, [..., L, M] bool."""
  layers = [xp.asarray(table)[row] for table, row in zip(tables, rows)]
  return xp.stack(layers, axis=-2)


def product_set(tables: Sequence[np.ndarray]) -> CombinationSet:
  """Returns the product over layers of the masks in a table [C, M] each."""
  if not all(map(len, tables)):
    return listed_set(np.zeros((0, len(tables), tables[0].shape[1]), bool))

  def sample(_: Any, key: jax.Array, __: Any) -> jax.Array:
    return _pick(tables, _draw_rows(tables, key))

  return CombinationSet(lambda _: math.prod(map(len, tables)), sample)


def listed_set(masks: np.ndarray) -> CombinationSet:
  """Returns the set of listed combinations, [C, L, M], which may be empty."""
  rows = masks if len(masks) else np.zeros((1,) + masks.shape[1:], bool)

  return CombinationSet(
      count=lambda _: len(masks),
      sample=lambda _, key, __: jnp.asarray(rows)[
          jax.random.randint(key, (), 0, len(rows))
      ],
  )


def permuted_set(
    tables: Sequence[np.ndarray], start: int, stop: int
) -> CombinationSet:
  """Returns the combinations at ranks `start` to `stop` of the permutation."""
  total = math.prod(map(len, tables))

  def members(round_keys: jax.Array, ranks: jax.typing.ArrayLike) -> jax.Array:
    ranks = jnp.asarray(ranks, jnp.uint32) + jnp.uint32(start)
    indices = jnp.vectorize(
        lambda rank: feistel.apply(round_keys, rank, total)
    )(ranks)
    return unravel(tables, indices)

  def sample(round_keys: jax.Array, key: jax.Array, _: Any) -> jax.Array:
    return members(round_keys, jax.random.randint(key, (), 0, stop - start))

  return CombinationSet(lambda _: stop - start, sample, jax.jit(members))


def filtered_set(
    tables: Sequence[np.ndarray],
    keep: Callable[[jax.Array, Rows], jax.Array],
) -> CombinationSet:
  """Returns the combinations of a product for which `keep` is true.

  `keep(round_keys, rows)` takes the row of one mask in each table. Samples by
  rejection. Counts at most the first four million candidates, enough to detect
  an empty set.
  """
  total = math.prod(map(len, tables))
  num_counted = min(total, _MAX_COUNTED)

  @jax.jit
  def count_chunk(round_keys: jax.Array, start: jax.Array) -> jax.Array:
    index = start + jnp.arange(min(_CHUNK, num_counted), dtype=jnp.uint32)
    index_in_set = index % jnp.uint32(total)
    rows = jnp.unravel_index(index_in_set, tuple(map(len, tables)))
    kept = jax.vmap(keep, (None, 0))(round_keys, rows)
    return jnp.sum(kept & (index < num_counted))

  def count(round_keys: jax.Array) -> int:
    starts = range(0, num_counted, _CHUNK)
    return sum(int(count_chunk(round_keys, np.uint32(s))) for s in starts)

  def sample(
      round_keys: jax.Array, key: jax.Array, nonempty: jax.Array
  ) -> jax.Array:
    def is_rejected(carry: tuple[jax.Array, Any]) -> jax.Array:
      _, rows = carry
      return nonempty & ~keep(round_keys, rows)

    def redraw(carry: tuple[jax.Array, Any]) -> tuple[jax.Array, Any]:
      next_key, proposal_key = jax.random.split(carry[0])
      return next_key, _draw_rows(tables, proposal_key)

    _, rows = lax.while_loop(is_rejected, redraw, redraw((key, None)))
    return _pick(tables, rows)

  return CombinationSet(count, sample)
