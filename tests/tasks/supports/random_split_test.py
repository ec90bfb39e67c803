"""Random support: what is held out stays held out."""

import logging
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.tasks.supports import combinations
from tests.helpers import small_supports


@pytest.mark.parametrize('seed', range(4))
def test_random_split_is_a_partition(seed: int) -> None:
  made = small_supports.make(ood_ks=(1, 2, 3, 4))
  params = small_supports.init(made, seed)
  _, train = small_supports.members(made, params, 'train')
  _, ood = small_supports.members(made, params, 'ood')
  assert not train & ood
  assert train | ood == set(
      small_supports.codes(small_supports.every(4, 2, 2)).tolist()
  )


def test_large_random_split_is_a_partition() -> None:
  """M = 8, K = 3: all 8464 combinations, from some 240,000 draws."""
  made = small_supports.make(num_modules=8, max_active=3)
  params = small_supports.init(made)
  _, train = small_supports.members(made, params, 'train')
  _, ood = small_supports.members(made, params, 'ood')
  assert not train & ood
  assert train | ood == set(
      small_supports.codes(small_supports.every(8, 3, 2)).tolist()
  )


def test_members_of_the_random_split_are_the_draws() -> None:
  """M = 16, K = 3: the sets as numbered, without drawing."""
  tables = (combinations.masks_up_to(16, 3),) * 2
  made = small_supports.make(num_modules=16, max_active=3)
  params = small_supports.init(made)
  total, num_ood = 484416, 121104
  members = {
      'train': combinations.permuted_set(tables, 0, total - num_ood),
      'ood': combinations.permuted_set(tables, total - num_ood, total),
  }
  codes = {}
  for split, numbered in members.items():
    assert numbered.members is not None
    ranks = jnp.arange(numbered.count(params.round_keys))
    codes[split] = small_supports.codes(
        np.asarray(numbered.members(params.round_keys, ranks))
    )
    assert len(np.unique(codes[split])) == len(ranks)
    drawn = small_supports.codes(small_supports.draw(made, params, split))
    assert np.isin(drawn, codes[split]).all()
  assert not np.isin(codes['train'], codes['ood']).any()
  assert len(codes['train']) + len(codes['ood']) == total


@pytest.mark.parametrize('task_support', ['random', 'connected'])
def test_validation_and_test_draw_training_combinations(
    task_support: str,
) -> None:
  made = small_supports.make(task_support, 8)
  params, key = small_supports.init(made), jax.random.key(0)
  expected = made.sample(params, key, 'train')
  for split in ('valid', 'test'):
    drawn = made.sample(params, key, split)
    np.testing.assert_array_equal(drawn, expected)
    assert made.count(params, split) == made.count(params, 'train')


def test_different_seeds_hold_out_different_combinations() -> None:
  made = small_supports.make(ood_ks=(1, 2, 3, 4))
  held_out = [
      frozenset(
          small_supports.members(made, small_supports.init(made, seed), 'ood')[
              1
          ]
      )
      for seed in range(8)
  ]
  assert len(set(held_out)) == 8
  again = frozenset(
      small_supports.members(made, small_supports.init(made, 0), 'ood')[1]
  )
  assert again == held_out[0]


def test_random_split_is_not_stratified_and_treats_combinations_alike() -> None:
  """Two of six are held out: each in a third of 300 seeds."""
  made = small_supports.make(
      num_modules=3, max_active=2, num_layers=1, fraction_ood=0.34
  )
  num_seeds = 300
  held_out = np.zeros((num_seeds, 6))
  order = {
      int(c): i
      for i, c in enumerate(small_supports.codes(small_supports.every(3, 2, 1)))
  }
  for seed in range(num_seeds):
    params = small_supports.init(made, seed)
    for code in np.unique(
        small_supports.codes(small_supports.draw(made, params, 'ood'))
    ):
      held_out[seed, order[int(code)]] = 1
  assert (held_out.sum(1) == 2).all()
  frequency = held_out.mean(0)
  sigma = math.sqrt(1 / 3 * 2 / 3 / num_seeds)
  assert np.abs(frequency - 1 / 3).max() < 5 * sigma


def test_random_split_is_redrawn_until_it_covers_all_modules(
    caplog: pytest.LogCaptureFixture,
) -> None:
  """Ten training combinations of four modules; many draws miss one."""
  made = small_supports.make(fraction_ood=0.9)
  redrawn = 0
  for seed in range(30):
    caplog.clear()
    with caplog.at_level(logging.INFO):
      params = small_supports.init(made, seed)
    redrawn += 'to cover all modules' in caplog.text
    train, train_codes = small_supports.members(made, params, 'train')
    assert train.any(0).all(), 'a module of some layer is never trained on'
    if seed < 5:
      _, ood_codes = small_supports.members(made, params, 'ood')
      assert not train_codes & ood_codes
      assert len(train_codes) == 10 and len(ood_codes) == 90
  assert redrawn > 0, 'nothing was redrawn: this test has lost its teeth'


def test_random_split_refuses_what_cannot_be_covered() -> None:
  """K = 1, M = 4: two training combinations cannot cover four modules."""
  made = small_supports.make(max_active=1, fraction_ood=0.9)
  with pytest.raises(ValueError) as error:
    small_supports.init(made)
  assert 'task.fraction_ood is 0.9' in str(error.value)
  assert '2 training combinations' in str(error.value)
  assert 'must be smaller' in str(error.value)


def test_init_is_the_same_for_the_same_key() -> None:
  made = small_supports.make(ood_ks=(1, 2, 3, 4))
  jax.tree.map(
      np.testing.assert_array_equal,
      small_supports.init(made, 5),
      small_supports.init(made, 5),
  )
  shapes = [
      jax.tree.map(np.shape, small_supports.init(made, seed))
      for seed in range(3)
  ]
  assert shapes[0] == shapes[1] == shapes[2]
