"""Splits by how often modules occur, against the published counts."""

import itertools
import math

import jax
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.studies.given_tasks import listed_splits
from modular_hyperteacher.tasks.supports import combinations

# Support, M, K, fraction -> training and OOD masks, counted from the rules.
_COUNTS = {
    ('random', 16, 3, 0.25): (522, 174),
    ('random', 8, 3, 0.25): (69, 23),
    ('equal', 16, 3, 0.25): (522, 174),
    ('non_compositional', 16, 3, 0.25): (575, 121),
    ('non_compositional', 8, 3, 0.25): (63, 29),
    # 576 masks inside one part, of which 53 are removed.
    ('disconnected', 16, 3, 0.25): (523, 173),
    ('disconnected', 12, 3, 0.25): (224, 74),
    ('disconnected', 8, 3, 0.7): (28, 64),
    ('random', 8, 3, 0.7): (28, 64),
    ('popular', 16, 3, 0.25): (522, 174),
    ('popular', 8, 3, 0.25): (69, 23),
    ('unpopular', 16, 3, 0.25): (522, 174),
    ('unpopular', 8, 3, 0.25): (69, 23),
}


def _draw(
    name: str, num_modules: int, max_active: int, fraction: float, seed: int = 0
) -> listed_splits.Split:
  return listed_splits.draw(
      name, num_modules, max_active, fraction, jax.random.key(seed)
  )


def _rows(masks: np.ndarray) -> set[tuple[int, ...]]:
  return {tuple(map(int, row)) for row in masks}


def _reaches_all(masks: np.ndarray) -> bool:
  """Whether a search from module 0, along shared masks, finds all modules."""
  reached, frontier = {0}, [0]
  while frontier:
    module = frontier.pop()
    for mask in masks:
      if mask[module]:
        new = set(np.flatnonzero(mask).tolist()) - reached
        reached |= new
        frontier += new
  return len(reached) == masks.shape[1] and bool(masks.any(0).all())


@pytest.mark.parametrize('name, num_modules, max_active, fraction', _COUNTS)
def test_counts(
    name: str, num_modules: int, max_active: int, fraction: float
) -> None:
  split = _draw(name, num_modules, max_active, fraction)
  train, ood = map(_rows, split)
  expected = _COUNTS[name, num_modules, max_active, fraction]
  assert (len(split.train), len(split.ood)) == expected
  assert (len(train), len(ood)) == expected  # No mask twice.
  assert not train & ood
  assert all(1 <= sum(mask) <= max_active for mask in train | ood)
  other = _draw(name, num_modules, max_active, fraction, seed=1)
  assert (len(other.train), len(other.ood)) == expected
  is_fixed = name in ('non_compositional', 'unpopular')
  is_fixed |= (name, num_modules) == ('disconnected', 8)
  assert (_rows(other.train) == train) == is_fixed


@pytest.mark.parametrize('name', listed_splits.RULES)
def test_counts_are_those_of_drawn_splits(name: str) -> None:
  number = 0
  for num_modules, max_active, fraction in itertools.product(
      (2, 3, 5, 6), (2, 3), (0.05, 0.1, 0.3, 0.5, 0.75)
  ):
    try:
      split = _draw(name, num_modules, max_active, fraction)
    except errors.UserError:
      continue  # There is none.
    assert listed_splits.count(name, num_modules, max_active, fraction) == (
        len(split.train),
        len(split.ood),
    )
    number += 1
  assert number >= 7


@pytest.mark.parametrize('name', ['random', 'equal', 'popular', 'unpopular'])
@pytest.mark.parametrize('seed', range(3))
def test_training_connects_all_modules(name: str, seed: int) -> None:
  split = _draw(name, 8, 3, 0.25, seed)
  assert _reaches_all(split.train)


@pytest.mark.parametrize('seed', range(5))
def test_random_is_drawn_until_connected(seed: int) -> None:
  """Ten of 92 masks rarely connect eight modules."""
  assert _reaches_all(_draw('random', 8, 3, 0.9, seed).train)


def test_equal_uses_modules_equally() -> None:
  use = _draw('equal', 16, 3, 0.25).train.sum(0)
  assert use.max() - use.min() <= 1
  assert np.ptp(_draw('random', 16, 3, 0.25).train.sum(0)) > 1


def test_disconnected_halves_share_no_mask() -> None:
  masks = _draw('disconnected', 8, 3, 0.7).train
  assert not (masks[:, :4].any(1) & masks[:, 4:].any(1)).any()
  assert masks.any(0).all()


def test_popular_holds_out_masks_of_the_others_only() -> None:
  split = _draw('popular', 16, 3, 0.25)
  assert not split.ood[:, :6].any()
  assert split.train[:, :6].any(1).sum() == 521


@pytest.mark.parametrize(
    'num_modules, fraction', [(8, 0.25), (16, 0.25), (8, 0.4), (7, 0.3)]
)
def test_unpopular_as_the_rule_is_written(
    num_modules: int, fraction: float
) -> None:
  """Mask after mask, of sets of up to three modules."""
  sets = [
      {*active}
      for size in (1, 2, 3)
      for active in itertools.combinations(range(num_modules), size)
  ]
  target = math.floor(len(sets) * (1 - fraction))
  core, *_ = [
      n
      for n in reversed(range(1, num_modules))
      if sum(max(s) < n for s in sets) + num_modules - n <= target
  ]
  chosen = [s for s in sets if max(s) < core]
  chosen += [{0, rare} for rare in range(core, num_modules)]
  # With the first rare module, in the order of the list.
  listed = [
      {*np.flatnonzero(mask).tolist()}
      for mask in combinations.masks_up_to(num_modules, 3)
  ]
  for active in listed:
    joins = core in active and len(active) > 1 and max(active) == core
    if len(chosen) < target and joins and active not in chosen:
      chosen.append(active)
  train = _draw('unpopular', num_modules, 3, fraction).train
  found = [{*np.flatnonzero(mask).tolist()} for mask in train]
  assert sorted(map(sorted, found)) == sorted(map(sorted, chosen))
  assert len(found) == target


def test_unpopular_modules_are_rare() -> None:
  masks = _draw('unpopular', 16, 3, 0.25).train
  assert masks[:, 14].sum() == 52 and masks[:, 15].sum() == 1
  assert (~masks[:, 14:].any(1)).sum() == 469
  small = _draw('unpopular', 4, 2, 0.3)  # The worked example.
  assert _rows(small.train) == {
      *((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)),
      *((1, 1, 0, 0), (1, 0, 1, 0), (0, 1, 1, 0), (1, 0, 0, 1)),
  }


@pytest.mark.parametrize(
    'arguments, said',
    [
        (('mixed', 8, 3, 0.25), 'task_support'),
        (('random', 8, 9, 0.25), 'max_active'),
        (('random', 8, 3, 0.0), 'fraction_ood'),
        (('random', 8, 3, 1.0), 'fraction_ood'),
        (('random', 8, 2, 0.9), 'connects all modules'),  # Four of 36 masks.
        (('disconnected', 8, 3, 0.25), 'disconnected support'),
        (('random', 60, 10, 0.25), 'num_modules'),
    ],
)
def test_impossible_splits_are_refused(
    arguments: tuple[str, int, int, float], said: str
) -> None:
  with pytest.raises(errors.UserError, match=said):
    _draw(*arguments)
