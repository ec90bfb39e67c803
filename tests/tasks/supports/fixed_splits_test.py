"""Supports that are not random, against brute force."""

import itertools

import numpy as np
import pytest

from modular_hyperteacher.tasks.supports import splits as supports
from tests.helpers import small_supports

# Circular distances between the modules of a mask of connected support.
_STEPS = ((0,), (0, 1), (0, 2))

_PAIRS = ['04', '05', '14', '15', '16', '25', '26', '27', '36', '37']


@pytest.mark.parametrize(
    'num_modules, max_active, num_layers', [(8, 3, 1), (4, 2, 2), (3, 2, 3)]
)
def test_non_compositional_holds_out_the_last_module_of_the_last_layer(
    num_modules: int, max_active: int, num_layers: int
) -> None:
  made = small_supports.make(
      'non_compositional', num_modules, max_active, num_layers
  )
  params = small_supports.init(made)
  train, train_codes = small_supports.members(made, params, 'train')
  ood, ood_codes = small_supports.members(made, params, 'ood')
  assert not train[:, -1, -1].any()
  assert ood[:, -1, -1].all()
  every = small_supports.every(num_modules, max_active, num_layers)
  held_out = every[:, -1, -1]
  assert train_codes == set(small_supports.codes(every[~held_out]).tolist())
  assert ood_codes == set(small_supports.codes(every[held_out]).tolist())
  # Everything else is seen: all but one module of one layer.
  assert train.any(0).sum() == num_layers * num_modules - 1


def test_connected_masks_by_hand() -> None:
  """Spec 2.4, M = 8: all singles, {i, i+1} and {i, i+2} around the circle."""
  expected = {frozenset([i]) for i in range(8)}
  expected |= {frozenset([i, (i + 1) % 8]) for i in range(8)}
  expected |= {frozenset([i, (i + 2) % 8]) for i in range(8)}
  masks = supports.connected_masks(8)
  assert masks.shape == (24, 8)
  assert set(map(frozenset, map(small_supports.active, masks))) == expected


def test_disconnected_masks_by_hand() -> None:
  """Spec 2.4, M = 8: all singles and the pairs inside of a half."""
  expected = {frozenset([i]) for i in range(8)}
  expected |= set(map(frozenset, itertools.combinations(range(4), 2)))
  expected |= set(map(frozenset, itertools.combinations(range(4, 8), 2)))
  made = small_supports.make('disconnected', 8, 2, 1)
  train, _ = small_supports.members(made, small_supports.init(made), 'train')
  masks = train[:, 0]
  assert masks.shape == (20, 8)
  assert set(map(frozenset, map(small_supports.active, masks))) == expected


@pytest.mark.parametrize('num_modules', [6, 8, 10, 12])
def test_connected_masks_are_connected(num_modules: int) -> None:
  connected = supports.connected_masks(num_modules)
  assert small_supports.num_components(connected) == 1


@pytest.mark.parametrize('num_layers', [1, 2])
@pytest.mark.parametrize(
    'task_support, num_components', [('connected', 1), ('disconnected', 2)]
)
def test_training_combinations_are_connected_or_not(
    task_support: str, num_components: int, num_layers: int
) -> None:
  made = small_supports.make(task_support, 8, 2, num_layers)
  train, _ = small_supports.members(made, small_supports.init(made), 'train')
  assert small_supports.num_components(train) == num_components


def test_connected_and_disconnected_by_brute_force() -> None:
  """Two layers, M = 8: every one of 1296 combinations by its definition."""
  circle = [{(i + j) % 8 for j in step} for i in range(8) for step in _STEPS]
  expected = {'connected': [], 'disconnected': [], 'ood': []}
  for masks in small_supports.every(8, 2, 2):
    active = [set(small_supports.active(mask)) for mask in masks]
    connected = all(layer in circle for layer in active)
    same_number = len({len(layer) for layer in active}) == 1
    all_active = set.union(*active)
    disconnected = same_number and (max(all_active) < 4 or min(all_active) > 3)
    if connected:
      expected['connected'].append(masks)
    if disconnected:
      expected['disconnected'].append(masks)
    if not connected and not disconnected:
      expected['ood'].append(masks)
  expected = {
      name: set(small_supports.codes(np.array(masks)).tolist())
      for name, masks in expected.items()
  }
  for name in ('connected', 'disconnected'):
    made = small_supports.make(name, 8, 2, 2)
    params = small_supports.init(made)
    assert small_supports.members(made, params, 'train')[1] == expected[name]
    assert small_supports.members(made, params, 'ood')[1] == expected['ood']


@pytest.mark.parametrize('task_support', ['connected', 'disconnected'])
def test_ood_pairs_with_one_layer(task_support: str) -> None:
  """Spec 2.4 lists them."""
  made = small_supports.make(task_support, 8, 2, 1)
  ood, _ = small_supports.members(made, small_supports.init(made), 'ood')
  active = sorted(''.join(map(str, small_supports.active(m[0]))) for m in ood)
  assert active == _PAIRS


@pytest.mark.parametrize('task_support', ['connected', 'disconnected'])
def test_hotness_of_ood_combinations_with_two_layers(task_support: str) -> None:
  """Spec 2.5: of 698, none is one-hot in both layers, 506 two-hot in both."""
  made = small_supports.make(task_support, 8, 2, 2)
  ood, _ = small_supports.members(made, small_supports.init(made), 'ood')
  num_active = ood.sum(-1)
  assert len(ood) == 698
  assert not (num_active == 1).all(-1).any()
  assert (num_active == 2).all(-1).sum() == 506
