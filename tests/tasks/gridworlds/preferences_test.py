"""Preferences: values against brute force, demonstrations against rules."""

import functools
import itertools
from typing import Any

import jax
import numpy as np
import pytest

from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks.gridworlds import preferences

_T, _GAMMA = preferences.HORIZON, preferences.DISCOUNT


@functools.lru_cache
def _make(**overrides: Any) -> tasks.TaskDistribution:
  fields: dict[str, Any] = dict(
      num_modules=8,
      max_active=3,
      task_support='non_compositional',
      fraction_ood=0.25,
      sampler='released',
      num_support=3,
      num_query=2,
      num_query_evaluation=1,
  )
  return preferences.make(**(fields | overrides))


@functools.lru_cache
def _shown(num_instances: int = 64) -> tuple[Any, ...]:
  """Instances, the value of each colour in each, and what is demonstrated."""
  key, preference_key = jax.random.split(jax.random.key(0))
  instances = preferences.draw_instances(key, num_instances)
  worth = jax.random.normal(preference_key, (preferences.NUM_COLOURS,))
  shown = jax.jit(preferences.demonstrate)(instances, worth)
  return jax.tree.map(np.asarray, (instances, worth, shown))


class _World:
  """A world to act in, written from the rules, one step at a time."""

  def __init__(
      self, instances: preferences.Instances, worth: np.ndarray, i: int
  ) -> None:
    cells = [divmod(int(c), 7) for c in preferences.FREE_CELLS]
    self.cells = cells
    self.agent = cells[instances.agent[i]]
    self.objects = {
        cells[cell]: float(worth[colour])
        for cell, colour in zip(instances.object_cells[i], instances.colours[i])
    }

  def step(self, action: int) -> float:
    """Returns the reward."""
    row, column = self.agent
    row_step, column_step = [(0, 0), (-1, 0), (0, 1), (1, 0), (0, -1)][action]
    moved = row + row_step, column + column_step
    self.agent = moved if moved in self.cells else self.agent
    return self.objects.pop(self.agent, 0.0)


def test_map() -> None:
  """Spec 5.1: 19 free cells, four rooms and a corridor."""
  assert len(preferences.FREE_CELLS) == 19
  assert preferences.WALLS.shape == (7, 7)
  assert _make().input_dim == 490 and _make().output_dim == 5
  # The cell right of the top left one; the corridor's left end.
  assert preferences.NEXT[0].tolist() == [0, 0, 1, 4, 0]
  corridor = int(np.flatnonzero(preferences.FREE_CELLS == 3 * 7 + 2)[0])
  up, right, down, left = preferences.NEXT[corridor, 1:]
  assert preferences.FREE_CELLS[[up, right, down, left]].tolist() == [
      2 * 7 + 2,
      3 * 7 + 3,
      4 * 7 + 2,
      3 * 7 + 2,
  ]


@pytest.mark.parametrize('i', range(6))
def test_values_against_all_action_sequences(i: int) -> None:
  """The best of 5^8 sequences, terminating counting as a waiting move."""
  instances, worth, shown = _shown()
  sequences = np.array(list(itertools.product(range(5), repeat=_T)), np.int8).T
  cells = np.full(sequences.shape[1], instances.agent[i])
  left = np.ones((4, len(cells)), bool)
  total = np.zeros(len(cells))
  for t, actions in enumerate(sequences):
    cells = preferences.NEXT[cells, actions]
    for j in range(4):
      here = left[j] & (cells == instances.object_cells[i, j])
      total += _GAMMA**t * worth[instances.colours[i, j]] * here
      left[j] &= ~here
  best = [total[sequences[0] == action].max() for action in range(5)]
  np.testing.assert_allclose(shown.values[i, 0], best, atol=1e-5)


def test_values_solve_the_recursion() -> None:
  """Tabular, over all 304 states, state by state."""
  instances, worth, _ = _shown()
  cells, rewards = instances.object_cells[:2], worth[instances.colours[:2]]
  arrival = np.asarray(preferences.arrival_values(cells, rewards))
  for i in range(2):
    values = np.zeros((16, 19, 5))
    for _ in range(_T):
      best, values = values.max(-1), np.empty((16, 19, 5))
      for left, cell, action in np.ndindex(16, 19, 5):
        arrived = preferences.NEXT[cell, action]
        reward, left_after = 0.0, left
        for j in range(4):
          if left >> j & 1 and cells[i, j] == arrived:
            reward, left_after = rewards[i, j], left - 2**j
        values[left, cell, action] = reward + _GAMMA * best[left_after, arrived]
    np.testing.assert_allclose(
        arrival[:, preferences.NEXT, i], values, atol=1e-5
    )


def test_demonstrations_follow_the_rules() -> None:
  """Played again in a world written from the rules."""
  instances, worth, shown = _shown()
  batch = jax.tree.map(np.asarray, preferences.to_batch(instances, shown))
  observations = np.asarray(batch.inputs.dense()).reshape(-1, _T, 7, 7, 10)
  num_ended = 0
  for i in range(len(instances.agent)):
    world, over = _World(instances, worth, i), False
    colour_of = {
        world.cells[cell]: colour
        for cell, colour in zip(instances.object_cells[i], instances.colours[i])
    }
    for t in range(_T):
      expected = np.zeros((7, 7, 10))
      expected[..., 9] = preferences.WALLS
      expected[world.agent][8] = 1
      for cell in world.objects:
        expected[cell][colour_of[cell]] = 1
      np.testing.assert_array_equal(observations[i, t], expected)
      assert shown.mask[i, t] == (not over)
      action = int(shown.values[i, t].argmax())
      assert shown.actions[i, t] == action
      if not over:
        over = action == 0
        world.step(action)
    num_ended += over
  assert 0 < num_ended < len(instances.agent)


def test_steps_of_the_world() -> None:
  """Random actions, until the episode is over and beyond."""
  instances, worth, _ = _shown()
  worlds = [_World(instances, worth, i) for i in range(len(instances.agent))]
  step, state = jax.jit(preferences.step), preferences.start(instances)
  values = worth[instances.colours]  # [I, J]
  rng = np.random.default_rng(0)
  for _ in range(30):
    actions, before = rng.integers(0, 5, len(worlds)), state
    state, taken = step(instances, state, actions)
    rewards = (np.asarray(taken) * values).sum(-1)
    for i, world in enumerate(worlds):
      if before.over[i]:  # Nothing happens any more.
        assert all(x[i] == y[i] for x, y in zip(before, state))
        assert rewards[i] == 0
        continue
      np.testing.assert_allclose(rewards[i], world.step(actions[i]), rtol=1e-6)
      assert world.cells[state.cell[i]] == world.agent
      assert bool(state.over[i]) == (actions[i] == 0)
  assert np.asarray(state.over).mean() > 0.9


def test_terminates_exactly_when_nothing_is_to_be_gained() -> None:
  _, _, shown = _shown()
  best = shown.values.max(-1)
  counts = shown.mask > 0
  assert ((shown.actions == 0) == (best == 0))[counts].all()
  assert (best[counts] >= 0).all()


def test_instances_are_in_distinct_cells_and_cover_all() -> None:
  instances, _, _ = _shown(512)
  cells = np.concatenate(
      [instances.object_cells, instances.agent[:, None]], axis=1
  )
  assert all(len(set(row)) == 5 for row in cells.tolist())
  for column in cells.T:
    counts = np.bincount(column, minlength=19)
    # 512 / 19 = 27 expected, with a deviation of 5.
    assert counts.min() > 5 and counts.max() < 55
  assert np.bincount(instances.colours.ravel()).min() > 180


def test_orders_of_magnitude() -> None:
  """Spec 5.3, K = 3, one draw of templates: mean length 5.4, 21% end at once,
  Q 0.59 ± 0.58. What differs between draws of templates is the tolerance (seen
  over 24 draws). The loss of predicting zero, 1.71, is 2.5 times the mean of
  Q^2, and so follows from these."""
  world = _make(num_support=8)
  sample = jax.jit(
      jax.vmap(lambda p, k: world.sample(p, k, 'train').support, (None, 0))
  )
  totals = []
  for seed in range(8):
    params = world.init(jax.random.key(seed))
    batch = sample(params, jax.random.split(jax.random.key(10 + seed), 64))
    mask = np.asarray(batch.mask).reshape(-1, _T)
    values = np.asarray(batch.targets)[np.asarray(batch.mask) > 0]
    totals.append((
        mask.sum(1).mean(),
        (mask[:, 1] == 0).mean(),
        values.mean(),
        values.std(),
    ))
  difference = np.mean(totals, axis=0) - [5.4, 0.21, 0.59, 0.58]
  spread = np.array([0.5, 0.07, 0.17, 0.14])
  assert (np.abs(difference) < 1.5 * spread).all()


def test_sizes_of_batches() -> None:
  world = _make()
  params = world.init(jax.random.key(0))
  for split, num_query in (('train', 2), ('test', 1), ('ood', 1)):
    drawn = jax.eval_shape(
        lambda key, s=split: world.sample(params, key, s), jax.random.key(1)
    )
    assert drawn.latent.shape == (1, 8)
    assert drawn.support.inputs.shape == (3 * _T, 490)
    assert drawn.query.inputs.shape == (num_query * _T, 490)
    assert drawn.query.targets.shape == (num_query * _T, 5)
    assert drawn.query.mask.shape == (num_query * _T,)


def test_splits() -> None:
  world = _make()
  assert world.evaluation_splits == (
      'valid',
      'test',
      'ood',
      'ood_k4',
      'ood_k5',
      'ood_k6',
      'ood_k7',
      'ood_k8',
  )
  params = world.init(jax.random.key(0))
  assert world.num_combinations(params, 'train') == 63
  assert world.num_combinations(params, 'ood') == 29
  latent = world.sample_latent(params, jax.random.key(1), 'ood_k5')
  assert (np.asarray(latent) > 0).sum() == 5


@pytest.mark.parametrize(
    'field, value',
    [
        ('num_support', 0),
        ('num_query', -1),
        ('num_query_evaluation', 0),
        ('sampler', 'uniform'),
        ('task_support', 'conected'),
        ('max_active', 9),
    ],
)
def test_errors_name_the_field(field: str, value: Any) -> None:
  with pytest.raises(ValueError, match=f'task.{field} is .*{value}'):
    _make(**{field: value})
