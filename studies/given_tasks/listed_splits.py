"""Splits of masks by how often modules occur in training.

Source: Redhardt et al., "Scaling can lead to compositional generalization"
(2025), as in the released code. All masks of 1 to K of M modules are listed, in
the order of `combinations.masks_up_to`, and about `fraction_ood` of them are
held out. Worked example, M = 4, K = 2, of whose ten masks 'unpopular' holds out
three: the core is 0, 1, 2, whose six masks are trained on, and 03 is the only
one with module 3.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher.tasks.supports import combinations
from modular_hyperteacher.tasks.supports import families

_MAX_REDRAWS = 1000
_NOT_CONNECTED = ('non_compositional', 'disconnected')
_MAX_MASKS = 2**23
_MAX_CANDIDATES = 512  # Per side, for a swap.


class Split(NamedTuple):
  """Masks of both sides, whose numbers do not depend on the draw."""

  train: np.ndarray  # [C, M] bool
  ood: np.ndarray  # [C', M] bool


class _Draw(NamedTuple):
  """What a rule gets."""

  masks: np.ndarray  # [C, M] bool, all of them
  num_ood: int  # To hold out, if the rule can.
  fraction_ood: float
  rng: np.random.Generator


def draw(
    task_support: str,
    num_modules: int,
    max_active: int,
    fraction_ood: float,
    key: jax.Array,
) -> Split:
  """Returns a split; host code.

  Args:
    task_support: 'random'; 'equal', where modules occur equally often (to
      within one); 'non_compositional', without the last module;
      'disconnected', two sets of modules that no mask joins; 'popular', all
      masks with some modules, and few of the others'; 'unpopular', few masks
      with some modules. All but 'non_compositional' and 'disconnected' are
      drawn anew until training has all modules and its masks are connected.
    num_modules: M.
    max_active: K.
    fraction_ood: share of the masks to hold out; 'non_compositional' ignores
      it.
    key: the key of the draw.

  Raises:
    UserError: if there is no such split; names the field.
  """
  check(task_support, num_modules, max_active, fraction_ood)
  masks = combinations.masks_up_to(num_modules, max_active)
  num_ood = len(masks) - _num_train(task_support, len(masks), fraction_ood)
  seed = np.asarray(jax.random.key_data(key))
  drawing = _Draw(masks, num_ood, fraction_ood, np.random.default_rng(seed))
  rule = RULES[task_support]
  if task_support in _NOT_CONNECTED:
    return _split(masks, rule(drawing))
  for _ in range(_MAX_REDRAWS):
    train = rule(drawing)
    seen = masks[train]
    if families.is_compositional(seen) and families.is_connected(seen):
      return _split(masks, train)
  raise errors.UserError(
      f'task.fraction_ood is {fraction_ood}; it must be smaller: none of'
      f" {_MAX_REDRAWS} splits '{task_support}' of {len(masks)} masks, with"
      f' {len(masks) - num_ood} for training, connects all modules.'
  )


def count(
    task_support: str, num_modules: int, max_active: int, fraction_ood: float
) -> tuple[int, int]:
  """Returns the numbers of training and OOD masks of `draw`; lists none.

  Raises:
    UserError: as `draw`, but for splits that may not connect all modules.
  """
  check(task_support, num_modules, max_active, fraction_ood)
  total = combinations.num_masks(num_modules, max_active)
  train = _num_train(task_support, total, fraction_ood)
  if task_support == 'non_compositional':
    train = combinations.num_masks(num_modules - 1, max_active)
  elif task_support == 'disconnected':
    share, cut = _choose_cut(num_modules, max_active, fraction_ood)
    train = _num_inside(num_modules, max_active, cut)
    train -= _num_removed(total, share, fraction_ood)
  return train, total - train


def check(
    task_support: str, num_modules: int, max_active: int, fraction_ood: float
) -> None:
  """Raises UserError for a field that no split can have."""
  errors.require_choice('task.task_support', task_support, RULES)
  combinations.check_masks(num_modules, max_active)
  errors.require(
      max_active > 1 or task_support in _NOT_CONNECTED,
      'task.max_active',
      max_active,
      f"single modules are not connected: with task_support '{task_support}' it"
      ' must be at least 2',
  )
  number = combinations.num_masks(num_modules, max_active)
  rule = f'{number} masks have up to {max_active} active modules; allowed are'
  errors.require(
      number <= _MAX_MASKS,
      'task.num_modules',
      num_modules,
      f'{rule} {_MAX_MASKS}',
  )
  errors.require(
      0 < fraction_ood < 1 and 0 < int(number * fraction_ood),
      'task.fraction_ood',
      fraction_ood,
      f'it must be below 1, and hold out at least one of {number} masks',
  )


def _num_train(task_support: str, total: int, fraction_ood: float) -> int:
  """Returns how many masks to train on, rounded as released."""
  if task_support in ('popular', 'unpopular'):
    return int(total * (1 - fraction_ood))
  return total - int(total * fraction_ood)


def _num_inside(num_modules: int, max_active: int, cut: int) -> int:
  """Returns the number of masks inside modules 0 to cut - 1, or the others."""
  sizes = cut, num_modules - cut
  return sum(combinations.num_masks(size, max_active) for size in sizes)


def _choose_cut(
    num_modules: int, max_active: int, fraction_ood: float
) -> tuple[float, int]:
  """Returns the share that the most even cut allowed holds out, and the cut."""
  total = combinations.num_masks(num_modules, max_active)
  shares = [
      (1 - _num_inside(num_modules, max_active, cut) / total, cut)
      for cut in range(1, num_modules // 2 + 1)
  ]
  allowed = [s for s in shares if s[0] <= fraction_ood]
  errors.require(
      allowed,
      'task.fraction_ood',
      fraction_ood,
      'disconnected support holds out at least a share of'
      f' {min((s for s, _ in shares), default=1):.3f}',
  )
  return max(allowed, key=lambda s: s[0])


def _num_removed(total: int, share: float, fraction_ood: float) -> int:
  # As released: rounding may remove one fewer than the share asks for.
  return int((fraction_ood - share) * total)


def _split(masks: np.ndarray, train: np.ndarray) -> Split:
  is_train = np.zeros(len(masks), bool)
  is_train[train] = True
  return Split(masks[is_train], masks[~is_train])


# Rules return the rows of the training masks.


def _equal(drawing: _Draw) -> np.ndarray:
  """Swaps a training with an OOD mask while that evens out the modules' use."""
  masks = drawing.masks.astype(int)
  order = drawing.rng.permutation(len(masks))
  ood, train = order[: drawing.num_ood], order[drawing.num_ood :]
  while np.ptp(use := masks[train].sum(0)) > 1:
    out, into = (
        drawing.rng.permutation(len(rows))[:_MAX_CANDIDATES]
        for rows in (train, ood)
    )
    change = masks[ood[into]][None] - masks[train[out]][:, None]
    uneven = (use + change).var(-1)
    i, j = np.unravel_index(uneven.argmin(), uneven.shape)
    if uneven[i, j] >= use.var():
      return np.array([], int)
    i, j = out[i], into[j]
    train[i], ood[j] = ood[j], train[i]
  return train


def _disconnected(drawing: _Draw) -> np.ndarray:
  """Cuts as evenly as `fraction_ood` allows, then removes random masks."""
  masks = drawing.masks
  share, cut = _choose_cut(
      masks.shape[1], int(masks.sum(1).max()), drawing.fraction_ood
  )
  inside = ~(masks[:, :cut].any(1) & masks[:, cut:].any(1))
  num_removed = _num_removed(len(masks), share, drawing.fraction_ood)
  return drawing.rng.permutation(np.flatnonzero(inside))[num_removed:]


def _popular(drawing: _Draw) -> np.ndarray:
  """Trains on all masks with modules 0 to n - 1, and random ones with n."""
  masks = drawing.masks
  target = len(masks) - drawing.num_ood
  numbers = [masks[:, :n].any(1).sum() for n in range(masks.shape[1])]
  n = int(np.searchsorted(numbers, target, side='right')) - 1
  popular = masks[:, :n].any(1)
  more = np.flatnonzero(masks[:, n] & ~popular)
  more = drawing.rng.permutation(more)[: target - popular.sum()]
  return np.concatenate([np.flatnonzero(popular), more])


def _unpopular(drawing: _Draw) -> np.ndarray:
  """Trains on all masks of a core, and on as few as possible of the others.

  Each other module has a mask with module 0; the first has those with modules
  of the core, too, as far as there is room.
  """
  masks = drawing.masks
  num_modules = masks.shape[1]
  target = len(masks) - drawing.num_ood

  def core(n: int) -> np.ndarray:
    return np.logical_not(masks[:, n:].any(axis=1))

  sizes = [core(n).sum() + num_modules - n for n in range(num_modules)]
  fitting = [n for n, size in enumerate(sizes) if size <= target and n]
  if not fitting or masks.sum(1).max() < 2:
    return np.array([], int)
  n = max(fitting)
  rare = masks[:, 0] & masks[:, n:].any(1) & (masks.sum(1) == 2)
  chosen = core(n) | rare
  joins_core = core(n + 1) & masks[:, n] & masks[:, :n].any(1)
  more = np.flatnonzero(joins_core & ~chosen)
  room = target - chosen.sum()
  return np.concatenate([np.flatnonzero(chosen), more[:room]])


RULES: dict[str, Callable[[_Draw], np.ndarray]] = {
    'random': lambda d: d.rng.permutation(len(d.masks))[d.num_ood :],
    'equal': _equal,
    'non_compositional': lambda d: np.flatnonzero(~d.masks[:, -1]),
    'disconnected': _disconnected,
    'popular': _popular,
    'unpopular': _unpopular,
}
