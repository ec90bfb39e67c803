"""Splits of the combinations of modules into training and held-out ones.

Source: Section 3, Appendix C.1.1 and C.2.3. Worked example, M = 3, K = 2 and
one layer: the masks are 0, 1, 2, 01, 02, 12. Non-compositional support trains
on 0, 1, 01 and holds out 2, 02, 12, where the last module is active.

The random split never lists all combinations. It ranks them by a keyed
permutation of their indices, and the rank of a combination decides its side.
"""

from collections.abc import Callable, Sequence
import dataclasses
import functools
import itertools
import logging
import math
from typing import cast, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher.tasks.supports import combinations
from modular_hyperteacher.tasks.supports import feistel

_MAX_REDRAWS = 1000
_MAX_MASKS = 2**22  # So many are held in memory.
_MAX_LISTED = 2**21  # So many are sorted into supports, which takes 2 GB.
_CHUNK = 2**12
_Sets = dict[str, combinations.CombinationSet]


class _Sizes(NamedTuple):
  """Arguments of `make`."""

  num_modules: int
  max_active: int
  num_layers: int
  fraction_ood: float
  ood_ks: Sequence[int]

  def exactly(self, k: int) -> tuple[np.ndarray, ...]:
    """Returns the masks with k active modules, for every layer."""
    return (combinations.masks_with(self.num_modules, k),) * self.num_layers


class SplitParams(NamedTuple):
  """The random part of a split, drawn once per seed."""

  round_keys: jax.Array  # [rounds] uint32, keys of the permutation
  num_ood_k: jax.Array  # [splits] int32, sizes of the OOD(K=k) sets


@dataclasses.dataclass(frozen=True)
class TaskSupport:
  """The split of a task distribution's combinations."""

  ood_names: tuple[str, ...]  # The splits 'ood_k{k}'.
  # Host code; raises UserError if no draw covers all modules.
  init: Callable[[jax.Array], SplitParams]
  sample: Callable[[SplitParams, jax.Array, str], jax.Array]  # -> [L, M] bool
  count: Callable[[SplitParams, str], int]  # 0 marks an empty split.

  @property
  def evaluation_splits(self) -> tuple[str, ...]:
    """All splits but 'train', in the order in which they are reported."""
    return ('valid', 'test', 'ood', *self.ood_names)


def make(
    task_support: str,
    *,
    num_modules: int,
    max_active: int,
    num_layers: int,
    fraction_ood: float,
    ood_ks: Sequence[int],
) -> TaskSupport:
  """Returns the task support of the given name.

  Splits: 'train'; 'valid' and 'test', fresh draws of the same combinations;
  'ood', the held-out combinations; 'ood_k{k}', combinations outside of the
  training set with exactly k active modules in every layer.

  'random' is compositional: it holds out a random `fraction_ood`, in (0, 1), of
  all combinations of up to K = `max_active` of M = `num_modules` modules in
  each of L = `num_layers` layers; every module of every layer occurs in
  training. 'non_compositional' holds out the last module of the last layer.
  'connected' and 'disconnected' (Appendix C.2.3) have the same OOD set.

  Raises:
    UserError: for an impossible combination; names the field.
  """
  errors.require_choice('task.task_support', task_support, _BUILDERS)
  combinations.check_masks(num_modules, max_active)
  for k in itertools.chain(range(1, max_active + 1), ood_ks):
    number = math.comb(num_modules, k)
    rule = f'{number} masks have {k} active modules; allowed are {_MAX_MASKS}'
    errors.require(number <= _MAX_MASKS, 'task.num_modules', num_modules, rule)
  sets = _BUILDERS[task_support](
      _Sizes(num_modules, max_active, num_layers, fraction_ood, ood_ks)
  )
  sets |= dict.fromkeys(('valid', 'test'), sets['train'])
  ood_names = tuple(f'ood_k{k}' for k in ood_ks)

  def init(key: jax.Array) -> SplitParams:
    if task_support == 'random':
      round_keys = _draw_covering(sets['train'], key, fraction_ood)
    else:
      round_keys = feistel.draw_round_keys(key)
    counts = [sets[name].count(round_keys) for name in ood_names]
    counts = [min(count, 2**31 - 1) for count in counts]
    return SplitParams(round_keys, jnp.array(counts, jnp.int32))

  def sample(params: SplitParams, key: jax.Array, split: str) -> jax.Array:
    size = params.num_ood_k[ood_names.index(split)] if split in ood_names else 1
    return sets[split].sample(params.round_keys, key, size > 0)

  def count(params: SplitParams, split: str) -> int:
    if split in ood_names:
      return int(params.num_ood_k[ood_names.index(split)])
    return sets[split].count(params.round_keys)

  return TaskSupport(ood_names, init, sample, count)


def _draw_covering(
    train: combinations.CombinationSet, key: jax.Array, fraction_ood: float
) -> jax.Array:
  """Redraws the permutation until training covers all modules and layers."""
  for redraw in range(_MAX_REDRAWS):
    round_keys = feistel.draw_round_keys(jax.random.fold_in(key, redraw))
    if _covers(train, round_keys):
      if redraw:
        logging.info('Drew the split %d times to cover all modules', redraw + 1)
      return round_keys
  raise errors.UserError(
      f'task.fraction_ood is {fraction_ood}; it must be smaller: none of'
      f' {_MAX_REDRAWS} random splits with {train.count(round_keys)} training'
      ' combinations has every module in training.'
  )


def _covers(train: combinations.CombinationSet, round_keys: jax.Array) -> bool:
  """Returns whether every module of every layer occurs in training."""
  members = cast(Callable[[jax.Array, np.ndarray], jax.Array], train.members)
  seen = np.array(False)
  size = train.count(round_keys)
  for start in range(0, size, _CHUNK):
    ranks = np.arange(start, start + _CHUNK) % size
    seen = np.asarray(members(round_keys, ranks)).any(0) | seen
    if seen.all():
      return True
  return False


def connected_masks(num_modules: int) -> np.ndarray:
  """Returns the masks of connected support, [3M, M] (Appendix C.2.3).

  All singles {i}, all {i, i+1 mod M} and all {i, i+2 mod M}.
  """
  eye = np.eye(num_modules, dtype=bool)
  return np.concatenate(
      [eye, eye | np.roll(eye, 1, axis=1), eye | np.roll(eye, 2, axis=1)]
  )


def _random(sizes: _Sizes) -> _Sets:
  """Holds out a random fraction of all combinations."""
  num_modules, max_active, num_layers, fraction_ood, ood_ks = sizes
  # Count before making any mask: there may be too many.
  total = combinations.num_masks(num_modules, max_active) ** num_layers
  errors.require(
      total < 2**31,
      'task.max_active',
      max_active,
      f'with {num_modules} modules and {num_layers} layers there are {total}'
      f' combinations; allowed are {2**31 - 1}',
  )
  tables = (combinations.masks_up_to(num_modules, max_active),) * num_layers
  rule = 'with one combination, none can be held out'
  errors.require(total > 1, 'task.num_modules', num_modules, rule)
  num_ood = int(fraction_ood * total) if 0 < fraction_ood < 1 else 0
  errors.require(
      num_ood,
      'task.fraction_ood',
      fraction_ood,
      f'it must be at least 1/{total} and below 1, so that at least one of'
      f' {total} combinations is held out',
  )
  num_train = total - num_ood

  def is_ood(
      first: int, round_keys: jax.Array, rows: combinations.Rows
  ) -> jax.Array:
    """Takes rows among the masks of K = k; they begin at row `first` of all."""
    lengths = tuple(map(len, tables))
    rows = tuple(row + first for row in rows)
    index = jnp.ravel_multi_index(rows, lengths, mode='wrap')
    rank = feistel.apply(round_keys, index, total, inverse=True)
    return rank >= num_train

  sets = {
      'train': combinations.permuted_set(tables, 0, num_train),
      'ood': combinations.permuted_set(tables, num_train, total),
  }
  for k in ood_ks:
    if k > max_active:
      sets[f'ood_k{k}'] = combinations.product_set(sizes.exactly(k))
    else:
      first = combinations.num_masks(num_modules, k - 1)
      sets[f'ood_k{k}'] = combinations.filtered_set(
          sizes.exactly(k), functools.partial(is_ood, first)
      )
  return sets


def _non_compositional(sizes: _Sizes) -> _Sets:
  """Holds out the last module of the last layer."""
  errors.require(
      sizes.num_modules >= 2,
      'task.num_modules',
      sizes.num_modules,
      'with task.task_support non_compositional it must be at least 2',
  )
  masks = combinations.masks_up_to(sizes.num_modules, sizes.max_active)
  head = (masks,) * (sizes.num_layers - 1)
  sets = {
      'train': combinations.product_set(head + (masks[~masks[:, -1]],)),
      'ood': combinations.product_set(head + (masks[masks[:, -1]],)),
  }
  for k in sizes.ood_ks:
    *others, exact = sizes.exactly(k)
    # For k > K all combinations are unseen; else those with the last module.
    last = exact if k > sizes.max_active else exact[exact[:, -1]]
    sets[f'ood_k{k}'] = combinations.product_set((*others, last))
  return sets


def _connected(sizes: _Sizes) -> _Sets:
  masks = (connected_masks(sizes.num_modules),) * sizes.num_layers
  train = combinations.product_set(masks)
  return _outside_both(sizes, 'connected') | {'train': train}


def _disconnected(sizes: _Sizes) -> _Sets:
  sets = _outside_both(sizes, 'disconnected')
  masks = combinations.all_combinations(sizes.num_modules, 2, sizes.num_layers)
  train = combinations.listed_set(masks[_is_disconnected(masks)])
  return sets | {'train': train}


def _outside_both(sizes: _Sizes, name: str) -> _Sets:
  """Returns the OOD sets that connected and disconnected support share."""
  num_modules, max_active, num_layers, *_ = sizes
  rule = f'{name} support is defined for 2 only'
  errors.require(max_active == 2, 'task.max_active', max_active, rule)
  is_supported = num_modules % 2 == 0 and num_modules > 4
  rule = f'{name} support needs an even number above 4'
  errors.require(is_supported, 'task.num_modules', num_modules, rule)
  total = combinations.num_masks(num_modules, max_active) ** num_layers
  rule = f'{name} support lists all combinations, at most {_MAX_LISTED}'
  rule += f'; with {num_layers} layers there are {total}'
  errors.require(total <= _MAX_LISTED, 'task.num_modules', num_modules, rule)
  masks = combinations.all_combinations(num_modules, 2, num_layers)
  outside = masks[~_is_connected(masks) & ~_is_disconnected(masks)]
  sets = {'ood': combinations.listed_set(outside)}
  for k in sizes.ood_ks:
    if k > 2:
      sets[f'ood_k{k}'] = combinations.product_set(sizes.exactly(k))
    else:
      exactly_k = (outside.sum(-1) == k).all(-1)
      sets[f'ood_k{k}'] = combinations.listed_set(outside[exactly_k])
  return sets


def _is_connected(masks: np.ndarray) -> np.ndarray:
  """[C, L, M] -> [C]: the mask of every layer is in `connected_masks`."""
  allowed = connected_masks(masks.shape[-1])
  return (masks[..., None, :] == allowed).all(-1).any(-1).all(-1)


def _is_disconnected(masks: np.ndarray) -> np.ndarray:
  """[C, L, M] -> [C]: all layers have equally many ones, in the same half."""
  half = masks.shape[-1] // 2
  num_active = masks.sum(-1)
  same_number = (num_active == num_active[:, :1]).all(-1)
  in_first = ~masks[..., half:].any((-1, -2))
  in_second = ~masks[..., :half].any((-1, -2))
  return same_number & (in_first | in_second)


_BUILDERS = {
    'random': _random,
    'non_compositional': _non_compositional,
    'connected': _connected,
    'disconnected': _disconnected,
}
