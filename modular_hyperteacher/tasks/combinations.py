"""Combinations of modules, and sets of them that can be drawn from.

A *mask* says which of M modules are active; a *combination* is one mask per
layer, `[L, M]`. Sets of combinations are too large to be listed in general
(sixteen modules, up to four active, two layers: 6.3 million), so a set is a
way to count and a way to draw.
"""

import dataclasses
import itertools
import math
from typing import Callable, Sequence

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import permutation

_MAX_COUNTED = 2**22
_CHUNK = 2**16


@dataclasses.dataclass(frozen=True)
class CombinationSet:
  """A set of combinations that can be counted and drawn from.

  Attributes:
    count: `count(round_keys) -> int`; host code.
    sample: `sample(round_keys, key, nonempty) -> [L, M] bool`, uniform. If
      `nonempty` is false the draw is meaningless, but the call returns.
    members: `members(round_keys, ranks) -> [..., L, M] bool`; the combinations
      with these numbers, 0 to count - 1. None for sets that are not numbered.
  """

  count: Callable[[base.Array], int]
  sample: Callable[[base.Array, base.Key, base.Array], base.Array]
  members: Callable[[base.Array, base.Array], base.Array] | None = None


def masks_with(num_modules: int, num_active: int) -> np.ndarray:
  """Returns all masks with `num_active` ones, lexicographic: [C, M] bool."""
  combinations = itertools.combinations(range(num_modules), num_active)
  masks = np.zeros((math.comb(num_modules, num_active), num_modules), bool)
  for row, active in enumerate(combinations):
    masks[row, list(active)] = True
  return masks


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


def index_of(masks: base.Array, max_active: int) -> base.Array:
  """Returns the row of a combination [L, M] in `all_combinations` (uint32)."""
  num_modules = masks.shape[-1]
  num_masks = sum(math.comb(num_modules, k) for k in range(1, max_active + 1))
  index = jnp.uint32(0)
  for mask in masks:
    index = index * jnp.uint32(num_masks) + mask_rank(mask, max_active)
  return index


def mask_rank(mask: base.Array, max_active: int) -> base.Array:
  """Returns the row of a mask [M] in `masks_up_to(M, max_active)`.

  Counts the masks in front of it: all with fewer ones, then, for every
  inactive module, those that are active there and agree up to it.
  """
  num_modules = mask.shape[0]
  binomial = np.array(
      [
          [math.comb(n, k) for k in range(max_active + 1)]
          for n in range(num_modules + 1)
      ],
      np.uint32,
  )
  offsets = np.cumsum(np.append(0, binomial[num_modules, 1:])).astype(np.uint32)
  mask = mask.astype(jnp.int32)
  num_active = mask.sum()
  # Ones that are still to come at each position, itself included.
  remaining = num_active - jnp.cumsum(mask) + mask
  behind = jnp.arange(num_modules - 1, -1, -1)
  skipped = jnp.asarray(binomial)[behind, jnp.maximum(remaining - 1, 0)]
  skipped = jnp.where((mask == 0) & (remaining > 0), skipped, jnp.uint32(0))
  return jnp.asarray(offsets)[num_active - 1] + skipped.sum(dtype=jnp.uint32)


def unravel(tables: Sequence[np.ndarray], index):
  """Returns the combinations at these positions: [..., L, M] bool.

  The last layer varies fastest. NumPy in, NumPy out.
  """
  xp = np if isinstance(index, np.ndarray) else jnp
  layers = []
  for table in reversed(tables):
    layers.append(xp.asarray(table)[index % len(table)])
    index = index // len(table)
  return xp.stack(layers[::-1], axis=-2)


def product_set(tables: Sequence[np.ndarray]) -> CombinationSet:
  """Returns all combinations of the rows of one table [C, M] per layer."""
  if not all(map(len, tables)):
    return listed_set(np.zeros((0, len(tables), tables[0].shape[1]), bool))

  def sample(round_keys, key, nonempty):
    del round_keys, nonempty
    keys = jax.random.split(key, len(tables))
    return jnp.stack([
        jnp.asarray(table)[jax.random.randint(layer_key, (), 0, len(table))]
        for table, layer_key in zip(tables, keys)
    ])

  return CombinationSet(lambda _: math.prod(map(len, tables)), sample)


def listed_set(masks: np.ndarray) -> CombinationSet:
  """Returns the combinations of an explicit list, [C, L, M], maybe empty."""
  rows = masks if len(masks) else np.zeros((1,) + masks.shape[1:], bool)

  def sample(round_keys, key, nonempty):
    del round_keys, nonempty
    return jnp.asarray(rows)[jax.random.randint(key, (), 0, len(rows))]

  return CombinationSet(lambda _: len(masks), sample)


def permuted_set(
    tables: Sequence[np.ndarray], start: int, stop: int
) -> CombinationSet:
  """Returns the combinations ranked `start` to `stop` by the permutation."""
  total = math.prod(map(len, tables))

  def members(round_keys, ranks):
    positions = jnp.asarray(ranks, jnp.uint32) + jnp.uint32(start)
    positions = jnp.vectorize(
        lambda position: permutation.apply(round_keys, position, total)
    )(positions)
    return unravel(tables, positions)

  def sample(round_keys, key, nonempty):
    del nonempty
    return members(round_keys, jax.random.randint(key, (), 0, stop - start))

  return CombinationSet(lambda _: stop - start, sample, jax.jit(members))


def filtered_set(
    tables: Sequence[np.ndarray],
    keep: Callable[[base.Array, base.Array], base.Array],
) -> CombinationSet:
  """Returns the combinations of a product with `keep(round_keys, masks)`.

  Drawn by rejection. Counted exactly up to four million candidates; of more,
  only the first four million are looked at, which is enough to tell an empty
  set from one that is not.
  """
  proposals = product_set(tables)
  total = math.prod(map(len, tables))
  num_counted = min(total, _MAX_COUNTED)

  @jax.jit
  def count_chunk(round_keys, start):
    index = start + jnp.arange(min(_CHUNK, num_counted), dtype=jnp.uint32)
    masks = unravel(tables, index % jnp.uint32(total))
    kept = jax.vmap(lambda layers: keep(round_keys, layers))(masks)
    return jnp.sum(kept & (index < num_counted))

  def count(round_keys):
    starts = range(0, num_counted, _CHUNK)
    return sum(int(count_chunk(round_keys, np.uint32(s))) for s in starts)

  def sample(round_keys, key, nonempty):
    def rejected(carry):
      _, masks = carry
      return nonempty & ~keep(round_keys, masks)

    def redraw(carry):
      next_key, proposal_key = jax.random.split(carry[0])
      return next_key, proposals.sample(round_keys, proposal_key, nonempty)

    return lax.while_loop(rejected, redraw, redraw((key, None)))[1]

  return CombinationSet(count, sample)
