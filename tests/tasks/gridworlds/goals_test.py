"""Goals: splits, positions, and demonstrations that end in a reward."""

import functools
import logging
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks.gridworlds import goals
from modular_hyperteacher.tasks.gridworlds import mazes

_MAX = 60


@functools.lru_cache
def _make(task_support: str = 'random') -> tasks.TaskDistribution:
  return goals.make(
      task_support=task_support, fraction_ood=0.25, max_path_length=_MAX
  )


@functools.lru_cache
def _params(task_support: str = 'random', seed: int = 0) -> goals.GoalsParams:
  return _make(task_support).init(jax.random.key(seed))


@functools.lru_cache
def _drawn(num_tasks: int = 256) -> tuple[Any, ...]:
  """Factors, instances and their batches, as NumPy arrays."""
  params = _params()

  @jax.jit
  @jax.vmap
  def draw(key: jax.Array) -> tuple[Any, ...]:
    latent_key, key = jax.random.split(key)
    latent = _make().sample_latent(params, latent_key, 'train')
    factors = latent.argmax(-1)
    instance = goals.draw_instance(params, key, factors)
    batch = goals.to_batch(params, instance, factors)
    return factors, instance, batch, batch.inputs.dense()

  keys = jax.random.split(jax.random.key(3), num_tasks)
  return jax.tree.map(np.asarray, draw(keys))


def _of(tree: Any, i: int) -> Any:
  return jax.tree.map(lambda x: x[i], tree)


def _is_wall(walls: np.ndarray, row: int, column: int) -> bool:
  inside = 0 <= row < 11 and 0 <= column < 11
  return not inside or walls[row, column]


def test_sizes() -> None:
  world, params = _make(), _params()
  assert world.input_dim == 847 and world.output_dim == 6
  drawn = jax.eval_shape(
      lambda key: world.sample(params, key, 'train'), jax.random.key(0)
  )
  assert drawn.latent.shape == (4, 5)
  for batch in (drawn.support, drawn.query):
    assert batch.inputs.shape == (_MAX + 1, 847)
    assert batch.targets.shape == batch.mask.shape == (_MAX + 1,)


def test_quadrants() -> None:
  """Spec 6.2 and 13.10."""
  quadrants = goals.quadrants()
  assert np.bincount(quadrants).tolist() == [36, 30, 30, 25]
  grid = quadrants.reshape(11, 11)
  assert grid[5, 5] == 0 and grid[5, 6] == 1
  assert grid[6, 5] == 2 and grid[6, 6] == 3


@pytest.mark.parametrize('seed', range(5))
def test_random_split(seed: int) -> None:
  all_goals, num_train = goals.draw_split(jax.random.key(seed), 'random', 50)
  assert num_train == 150
  assert len({tuple(g) for g in np.asarray(all_goals).tolist()}) == 200
  for values, size in zip(np.asarray(all_goals)[:150].T, (4, 2, 5, 5)):
    assert set(values) == set(range(size))


def test_random_splits_differ_and_are_redrawn_until_they_cover(
    caplog: pytest.LogCaptureFixture,
) -> None:
  """Of eight training goals few have all five mazes and all five objects."""
  splits, num_redrawn = set(), 0
  for seed in range(5):
    caplog.clear()
    with caplog.at_level(logging.INFO):
      all_goals, num_train = goals.draw_split(
          jax.random.key(seed), 'random', 192
      )
    train = np.asarray(all_goals)[: int(num_train)]
    assert all(
        set(values) == set(range(size))
        for values, size in zip(train.T, (4, 2, 5, 5))
    )
    splits.add(train.tobytes())
    num_redrawn += 'all values of every factor' in caplog.text
  assert len(splits) == 5 and num_redrawn > 0


def test_a_split_that_cannot_cover_is_refused() -> None:
  with pytest.raises(ValueError, match='fraction_ood is 0.98, which leaves 4'):
    goals.draw_split(jax.random.key(0), 'random', 196)


def test_non_compositional_split() -> None:
  world, params = _make('non_compositional'), _params('non_compositional')
  assert world.num_combinations(params, 'train') == 150
  assert world.num_combinations(params, 'ood') == 50
  sample = jax.jit(
      jax.vmap(world.sample_latent, (None, 0, None)), static_argnums=2
  )
  keys = jax.random.split(jax.random.key(0), 500)
  trained = {0, 1, 2}
  for split, expected in (('train', trained), ('test', trained), ('ood', {3})):
    latents = np.asarray(sample(params, keys, split))
    assert (latents.sum(-1) == 1).all()
    assert set(latents[:, 0].argmax(-1)) == expected
    assert set(latents[:, 2].argmax(-1)) == set(range(5))


def test_training_and_ood_goals_are_disjoint() -> None:
  world, params = _make(), _params()
  sample = jax.jit(
      jax.vmap(world.sample_latent, (None, 0, None)), static_argnums=2
  )
  keys = jax.random.split(jax.random.key(0), 3000)
  drawn = {
      split: {x.tobytes() for x in np.asarray(sample(params, keys, split))}
      for split in ('train', 'valid', 'test', 'ood')
  }
  assert drawn['train'] == drawn['valid'] == drawn['test']
  assert len(drawn['train']) == 150 and len(drawn['ood']) == 50
  assert not drawn['train'] & drawn['ood']


def test_instances() -> None:
  """Spec 6.3."""
  factors, instances, _, _ = _drawn()
  walls = np.asarray(_params().walls) > 0
  quadrants = goals.quadrants()
  for i in range(len(factors)):
    quadrant, _, maze, target_type = factors[i]
    one = _of(instances, i)
    assert one.maze == maze
    assert quadrants[one.target] == quadrant
    cells = [one.target, one.agent, *one.distractors]
    assert not walls[maze, cells].any()
    assert len(set(one.distractors.tolist())) == 4
    assert not (one.distractor_types == target_type).any()
    assert (one.distractor_types < 5).all()
    lengths = mazes.distances(walls[maze].reshape(11, 11))
    assert lengths[one.target, one.agent] >= 11
  # About one in twenty distractors is on the target, as on any cell of 73.
  hidden = (instances.distractors == instances.target[:, None]).any(1)
  assert 2 <= hidden.sum() <= 35


def test_distinct_draws_are_uniform() -> None:
  keys = jax.random.split(jax.random.key(0), 6000)
  draws = np.asarray(
      jax.jit(jax.vmap(lambda key: goals._distinct(key, 3, jnp.array(4))))(keys)
  )
  assert all(len(set(row)) == 3 for row in draws.tolist())
  _, counts = np.unique(draws, axis=0, return_counts=True)
  # 4 * 3 * 2 ordered draws, 250 expected of each, with a deviation of 15.5.
  assert len(counts) == 24
  assert counts.min() > 250 - 78 and counts.max() < 250 + 78


def test_steps_of_the_world() -> None:
  """A demonstration, with the wrong interaction before every step of it."""
  factors, instances, batches, _ = _drawn()
  step = jax.jit(functools.partial(goals.step, _params()))
  for i in range(8):
    one, batch = _of(instances, i), _of(batches, i)
    state, rewards = goals.start(one), []
    for t in range(int(batch.mask.sum())):
      assert int(state.agent) == batch.inputs.agent[0, t] and not state.over
      for idle in (5 - factors[i][1], 4 + factors[i][1]):
        if idle == batch.targets[t]:  # The last is the right one, there.
          continue
        same, nothing = step(one, factors[i], state, idle)
        assert same == state and nothing == 0
      state, reward = step(one, factors[i], state, batch.targets[t])
      rewards.append(float(reward))
    assert rewards == [0.0] * (len(rewards) - 1) + [1.0] and state.over
    for action in range(6):  # Nothing happens any more.
      same, nothing = step(one, factors[i], state, action)
      assert same == state and nothing == 0


def test_demonstrations_end_in_a_reward() -> None:
  """Played again in a world written from the rules."""
  factors, instances, batches, _ = _drawn()
  walls = np.asarray(_params().walls).reshape(5, 11, 11) > 0
  for i in range(len(factors)):
    _, interaction, maze, _ = factors[i]
    one, batch = _of(instances, i), _of(batches, i)
    num_steps = int(batch.mask.sum())
    assert (batch.mask == (np.arange(_MAX + 1) < num_steps)).all()
    row, column = divmod(int(one.agent), 11)
    target = divmod(int(one.target), 11)
    rewards = []
    for step in range(num_steps):
      assert batch.inputs.agent[0, step] == 11 * row + column
      action = int(batch.targets[step])
      if action < 4:
        row_step, column_step = [(-1, 0), (0, 1), (1, 0), (0, -1)][action]
        if not _is_wall(walls[maze], row + row_step, column + column_step):
          row, column = row + row_step, column + column_step
      right = action == 4 + interaction and (row, column) == target
      rewards.append(int(right))
    assert rewards == [0] * (num_steps - 1) + [1]
    lengths = mazes.distances(walls[maze])
    assert num_steps == lengths[one.target, one.agent] + 1 >= 12
    assert (batch.targets[num_steps:] == 4 + interaction).all()


def test_observations_drawn_by_hand() -> None:
  factors, instances, batches, dense = _drawn()
  walls = np.asarray(_params().walls)
  for i in range(len(factors)):
    one, batch = _of(instances, i), _of(batches, i)
    expected = np.zeros((_MAX + 1, 121, 7))
    expected[:, :, 5] = walls[one.maze]
    if one.target not in one.distractors:
      expected[:, one.target, factors[i][3]] = 1
    for cell, kind in zip(one.distractors, one.distractor_types):
      expected[:, cell, kind] = 1
    for step, cell in enumerate(batch.inputs.agent[0]):
      expected[step, cell, 6] = 1
    np.testing.assert_array_equal(dense[i].reshape(_MAX + 1, 121, 7), expected)


def test_mazes_of_a_seed() -> None:
  """The maze of an integer, and of the next four."""
  walls = goals.draw_mazes(jax.random.key(0), _MAX)
  bits = jax.random.bits(jax.random.fold_in(jax.random.key(0), 0), (), 'uint32')
  for i, maze in enumerate(walls):
    np.testing.assert_array_equal(maze, mazes.generate(11, int(bits) + i))
  other = goals.draw_mazes(jax.random.key(1), _MAX)
  assert all((maze != o).any() for maze in walls for o in other)


def test_no_two_mazes_are_equal() -> None:
  """Small mazes often are: then, a held-out goal could be trained on."""
  redrawn = 0
  for seed in range(12):
    key = jax.random.key(seed)
    walls = goals.draw_mazes(key, 24, 5)
    assert len({maze.tobytes() for maze in walls}) == len(walls)
    bits = int(jax.random.bits(jax.random.fold_in(key, 0), (), 'uint32'))
    redrawn += not (walls[0] == mazes.generate(5, bits)).all()
  assert redrawn


@pytest.mark.parametrize(
    'maze, longest, is_usable',
    [
        ('....# ###.# ....# .#### ....#', 13, True),
        ('....# ###.# ....# .#### ....#', 12, False),
        # No two cells are five steps apart.
        ('##### ##### ##..# ##..# #####', 13, False),
        # No free cell is in the last two columns.
        ('...## ##.## ...## .#### ...##', 13, False),
    ],
    ids=['usable', 'too long', 'no start', 'no target'],
)
def test_usable_mazes(maze: str, longest: int, is_usable: bool) -> None:
  walls = np.array([[cell == '#' for cell in row] for row in maze.split()])
  assert goals._is_usable(walls, longest) == is_usable


def test_mazes_with_longer_paths_are_drawn_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
  for seed in range(3):
    caplog.clear()
    with caplog.at_level(logging.INFO):
      walls = goals.draw_mazes(jax.random.key(seed), 38)
    assert max(mazes.distances(maze).max() for maze in walls) <= 38
    assert 'to get usable ones' in caplog.text


def test_smaller_mazes() -> None:
  """Everything follows the side: quadrants, distances, moves, observations."""
  side, longest = 7, 24
  world = goals.make(
      task_support='random',
      fraction_ood=0.25,
      max_path_length=longest,
      grid_size=side,
  )
  params = world.init(jax.random.key(0))
  assert world.input_dim == side**2 * 7
  assert np.bincount(goals.quadrants(side)).tolist() == [16, 12, 12, 9]
  draw = jax.jit(functools.partial(world.sample, split='train'))
  walls = np.asarray(params.walls).reshape(5, side, side)
  for seed in range(40):
    task = draw(params, jax.random.key(seed))
    batch = task.support
    quadrant, interaction, maze, kind = np.asarray(task.latent.argmax(-1))
    dense = np.asarray(batch.inputs.dense()).reshape(-1, side, side, 7)
    np.testing.assert_array_equal(dense[0, ..., 5], walls[maze])
    (here,) = np.argwhere(dense[0, ..., 6])
    num_steps = int(batch.mask.sum())
    for action in np.asarray(batch.targets)[: num_steps - 1]:
      here = here + [(-1, 0), (0, 1), (1, 0), (0, -1)][action]
      assert not walls[maze][tuple(here)]
    assert batch.targets[num_steps - 1] == 4 + interaction
    assert num_steps - 1 >= side
    # There it is, in its quadrant, unless a distractor hides it.
    assert goals.quadrants(side).reshape(side, side)[tuple(here)] == quadrant
    assert dense[0][tuple(here)][:5].sum() == 1
    hidden = not dense[0, ..., kind].any()
    assert hidden or dense[0][tuple(here)][kind] == 1


def test_init_has_the_same_shapes_for_all_seeds() -> None:
  shapes = [jax.tree.map(jnp.shape, _params(seed=seed)) for seed in range(2)]
  assert shapes[0] == shapes[1]


@pytest.mark.parametrize(
    'field, value, expected',
    [
        ('task_support', 'connected', 'choose one of random'),
        ('fraction_ood', 0.001, 'at least 1/200'),
        ('fraction_ood', 1.0, 'below 1'),
        ('max_path_length', 10, 'at least 11, the length of the shortest'),
        ('max_path_length', 121, 'below 121, the number of cells'),
        ('grid_size', 8, 'odd, and from 5 to 15'),
        ('grid_size', 17, 'odd, and from 5 to 15'),
    ],
)
def test_errors_name_the_field(field: str, value: Any, expected: str) -> None:
  fields: dict[str, Any] = dict(
      task_support='random', fraction_ood=0.25, max_path_length=60
  )
  with pytest.raises(ValueError, match=f'task.{field} is .*{expected}'):
    goals.make(**(fields | {field: value}))
