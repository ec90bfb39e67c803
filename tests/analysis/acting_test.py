"""Agents that act: known policies in known worlds."""

from collections.abc import Callable, Sequence
import functools
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import randomness
from modular_hyperteacher.analysis import acting
from modular_hyperteacher.analysis import base
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks.gridworlds import goals
from modular_hyperteacher.tasks.gridworlds import mazes
from modular_hyperteacher.tasks.gridworlds import observations
from modular_hyperteacher.tasks.gridworlds import preferences

_MAX = 60


@functools.lru_cache
def _goals_world() -> tuple[tasks.TaskDistribution, Any]:
  world = goals.make(
      task_support='random', fraction_ood=0.25, max_path_length=_MAX
  )
  return world, world.init(jax.random.key(0))


def _latents(
    world: tasks.TaskDistribution, params: Any, num_tasks: int
) -> dict[str, np.ndarray]:
  """Split -> latents of so many tasks."""

  @jax.jit
  def draw(params: Any) -> dict[str, jax.Array]:
    keys = jax.random.split(jax.random.key(1), num_tasks)
    sample = jax.vmap(world.sample_latent, (None, 0, None))
    return {split: sample(params, keys, split) for split in ('test', 'ood')}

  return jax.tree.map(np.asarray, draw(params))


def _one_hot_actions(actions: Any, num_actions: int) -> jax.Array:
  """Outputs whose largest is that of these actions."""
  return jax.nn.one_hot(actions, num_actions)


# Goals.


def _optimal_actions(
    walls: np.ndarray, instance: goals.Instance, factors: np.ndarray
) -> np.ndarray:
  """By the rules, from shortest lengths alone: the action in every cell."""
  maze = walls[instance.maze].reshape(11, 11) > 0
  lengths = mazes.distances(maze)[int(instance.target)]
  actions = np.full(121, 4 + int(factors[1]))
  for cell in np.flatnonzero(lengths > 0):
    for action, (row, column) in enumerate([(-1, 0), (0, 1), (1, 0), (0, -1)]):
      row, column = cell // 11 + row, cell % 11 + column
      inside = 0 <= row < 11 and 0 <= column < 11
      if inside and lengths[11 * row + column] == lengths[cell] - 1:
        actions[cell] = action
  return actions


@functools.lru_cache
def _drawn_goals(num: int = 12) -> list[Any]:
  """Of each: the instance, the goal's factors, the actions of all cells."""
  world, params = _goals_world()

  @jax.jit
  @jax.vmap
  def draw(key: jax.Array) -> tuple[goals.Instance, jax.Array]:
    factors = world.sample_latent(params, key, 'train').argmax(-1)
    return goals.draw_instance(params, key, factors), factors

  drawn = jax.tree.map(
      np.asarray, draw(jax.random.split(jax.random.key(2), num))
  )
  walls = np.asarray(params.walls)
  cases = [jax.tree.map(lambda x, i=i: x[i], drawn) for i in range(num)]
  return [(*case, _optimal_actions(walls, *case)) for case in cases]


@functools.lru_cache
def _reach() -> Callable[..., Any]:
  _, params = _goals_world()

  @jax.jit
  def reach(
      instance: goals.Instance, factors: jax.Array, actions: jax.Array
  ) -> Any:
    _, _, rewards = acting.walk(
        params,
        instance,
        factors,
        lambda scenes: _one_hot_actions(actions[scenes.agent[0]], 6),
    )
    return rewards.any(), rewards.argmax()

  return reach


def test_an_optimal_agent_reaches_every_goal_on_a_shortest_path() -> None:
  _, params = _goals_world()
  lengths = np.asarray(params.lengths)
  for instance, factors, actions in _drawn_goals():
    success, moves = _reach()(instance, factors, actions)
    assert success
    shortest = lengths[instance.maze, instance.target, instance.agent]
    assert moves == shortest >= 11


def test_mistakes_have_consequences() -> None:
  """Of all kinds, in a world where the optimal agent succeeds."""
  for instance, factors, actions in _drawn_goals():
    right, wrong = 4 + int(factors[1]), 5 - int(factors[1])
    for mistake in (
        np.full(121, right),  # Never moves.
        np.full(121, 0),  # Walks up, against a wall in the end.
        np.where(actions == right, wrong, actions),  # The other interaction.
    ):
      assert not _reach()(instance, factors, mistake)[0]


def test_detours_are_counted() -> None:
  """An agent that shuns the best first step takes a longer way, if any."""
  _, params = _goals_world()
  lengths, num_longer = np.asarray(params.lengths), 0
  for instance, factors, actions in _drawn_goals(40):
    start = int(instance.agent)
    shunned = np.array(params.walls)
    shunned[instance.maze, start + (-11, 1, 11, -1)[actions[start]]] = 1
    maze = shunned[instance.maze].reshape(11, 11) > 0
    length = mazes.distances(maze)[int(instance.target), start]
    if length <= lengths[instance.maze, instance.target, start]:
      continue  # No other way, or one that is as short.
    detour = _optimal_actions(shunned, instance, factors)
    success, moves = _reach()(instance, factors, detour)
    assert success and moves == length
    num_longer += 1
  assert num_longer


@functools.lru_cache
def _goals_analysis() -> base.Analysis:
  """Agents' fast parameters are their actions in all cells, [121]."""
  world, _ = _goals_world()
  model = models.MetaModel(
      init=lambda key: (),
      init_fast=lambda meta_params: jnp.zeros(121, int),
      encode=lambda meta_params, inputs: inputs.agent[0],
      decode=lambda meta_params, fast, encoding: _one_hot_actions(
          fast[encoding], 6
      ),
  )
  return acting.make_goals_analysis(world, model)


def _measure_goals(
    latents: dict[str, np.ndarray], actions: dict[str, np.ndarray]
) -> base.Metrics:
  """Acts on goals, given each split's actions, [tasks, 121]."""
  return _goals_analysis().measure(
      base.Adapted(
          task_params=_goals_world()[1],
          meta_params=(),
          latents=latents,
          fast_params=actions,
          key=jax.random.key(0),
      )
  )


def test_an_agent_that_never_moves_reaches_nothing() -> None:
  latents = _latents(*_goals_world(), 3)
  never = {split: np.full((3, 121), 4) for split in latents}
  measured = _measure_goals(latents, never)
  assert _goals_analysis().splits == tuple(measured) == ('test', 'ood')
  for metrics in measured.values():
    assert metrics['success'] == 0.0
    assert np.isnan(metrics['path_ratio'])


def test_an_optimal_agent_is_measured_as_one() -> None:
  _, params = _goals_world()
  latents, actions = _latents(*_goals_world(), 3), {}
  walls = np.asarray(params.walls)
  draw = jax.jit(jax.vmap(goals.draw_instance, (None, 0, 0)))
  for split, latent in latents.items():
    keys = jax.random.split(randomness.stream(jax.random.key(0), split), 3)
    factors = latent.argmax(-1)
    drawn = jax.tree.map(np.asarray, draw(params, keys, factors))
    actions[split] = np.stack([
        _optimal_actions(
            walls, jax.tree.map(lambda x, i=i: x[i], drawn), factors[i]
        )
        for i in range(3)
    ])
  for metrics in _measure_goals(latents, actions).values():
    assert metrics == {'success': 1.0, 'path_ratio': pytest.approx(1.0)}


def test_means_of_goals() -> None:
  """Half of the tasks succeed, with 1 and 2 times the shortest path."""
  success = np.array([True, False, True, False])
  metrics = acting._goal_metrics(success, np.array([1.0, 9.0, 2.0, 9.0]))
  assert metrics == {'success': 0.5, 'path_ratio': 1.5}


# Preferences.


@functools.lru_cache
def _instances(num: int = 64) -> tuple[preferences.Instances, jax.Array]:
  worth = np.random.default_rng(4).normal(size=preferences.NUM_COLOURS)
  draw = jax.jit(preferences.draw_instances, static_argnums=1)
  instances = draw(jax.random.key(3), num)
  instances = jax.tree.map(np.asarray, instances)
  return instances, jnp.asarray(worth, jnp.float32)


def _play(
    instances: preferences.Instances,
    worth: jax.Array | np.ndarray,
    i: int,
    actions: Sequence[int],
) -> float:
  """Returns the discounted return, in a world written from the rules."""
  worth = np.asarray(worth)
  cells = [divmod(int(c), 7) for c in preferences.FREE_CELLS]
  agent = cells[instances.agent[i]]
  left = {
      cells[cell]: worth[colour]
      for cell, colour in zip(instances.object_cells[i], instances.colours[i])
  }
  total = 0.0
  for t, action in enumerate(actions):
    if action == 0:
      break
    row, column = [(-1, 0), (0, 1), (1, 0), (0, -1)][action - 1]
    moved = agent[0] + row, agent[1] + column
    agent = moved if moved in cells else agent
    total += 0.9**t * float(left.pop(agent, 0.0))
  return total


def _position(scenes: observations.Scenes) -> jax.Array:
  """Returns the agent's position among the free cells, [N]."""
  return jnp.searchsorted(
      jnp.asarray(preferences.FREE_CELLS), scenes.agent[:, 0]
  )


def test_returns_are_those_of_the_rules() -> None:
  """Of random walks, which bump, take and terminate."""
  instances, worth = _instances()
  # An action per cell, of each instance; seldom to terminate.
  actions = np.random.default_rng(5).integers(0, 20, (64, 19)) % 5
  actions[::2] = np.maximum(actions[::2], 1)

  @jax.jit
  def walk(instances: preferences.Instances) -> tuple[Any, jax.Array]:
    def action_values(cells: jax.Array, remaining: jax.Array) -> jax.Array:
      del remaining
      chosen = jnp.asarray(actions)[jnp.arange(64), cells]
      return _one_hot_actions(chosen, 5)

    done = preferences.act(instances, action_values)
    return done, preferences.discounted_returns(instances, worth, done)

  done, returns = jax.tree.map(np.asarray, walk(instances))
  expected = [_play(instances, worth, i, done.actions[i]) for i in range(64)]
  np.testing.assert_allclose(returns, expected, atol=1e-5)
  assert np.count_nonzero(expected) > 5
  assert (done.mask[:, -1] == 0).any() and (done.mask[:, -1] == 1).any()


def test_an_optimal_agent_earns_what_it_shows() -> None:
  """A policy that sees the scene alone, and values it by the recursion."""
  instances, worth = _instances()

  @jax.jit
  def act(instances: preferences.Instances) -> tuple[jax.Array, ...]:
    rewards = worth[instances.colours]
    arrival = preferences.arrival_values(instances.object_cells, rewards)

    def policy(scenes: observations.Scenes) -> jax.Array:
      bits = 2 ** jnp.arange(preferences.NUM_OBJECTS)
      left = (scenes.visible[:, 0].astype(int) * bits[None]).sum(-1)
      nexts = jnp.asarray(preferences.NEXT)[_position(scenes)]
      return arrival[left[:, None], nexts, jnp.arange(64)[:, None]]

    shown = preferences.demonstrate(instances, worth)
    return *acting.earn(instances, worth, policy), shown.values[:, 0].max(-1)

  earned, optimal, best = map(np.asarray, act(instances))
  np.testing.assert_array_equal(earned, optimal)
  # It plans beyond the end, so may fall short of the best, never exceed it.
  assert (optimal <= best + 1e-5).all()
  assert optimal.sum() > 0.9 * best.sum()
  assert ((best == 0) == (optimal == 0)).all() and (best == 0).any()


def test_agents_that_do_nothing_earn_nothing() -> None:
  """Terminating at once; walking into the wall that they stand below."""
  instances, worth = _instances()
  below_walls = np.flatnonzero(preferences.NEXT[:, 1] == np.arange(19))
  instances = instances._replace(agent=np.resize(below_walls, 64))
  # Else bumping into the wall takes the object that they stand on.
  apart = (instances.object_cells != instances.agent[:, None]).all(1)

  @jax.jit
  def act(action: int) -> jax.Array:
    stubborn = _one_hot_actions(jnp.full(64, action), 5)
    return acting.earn(instances, worth, lambda scenes: stubborn)[0]

  for action in (0, 1):
    np.testing.assert_array_equal(act(action)[apart], 0)
  assert apart.sum() > 30


@functools.lru_cache
def _preferences_world() -> tuple[tasks.TaskDistribution, Any]:
  world = preferences.make(
      num_modules=8,
      max_active=3,
      task_support='random',
      fraction_ood=0.25,
      sampler='released',
      num_support=1,
      num_query=1,
      num_query_evaluation=1,
  )
  return world, world.init(jax.random.key(0))


def test_relative_return_of_agents_that_see_one_step_ahead() -> None:
  """Fast parameters: what colours are worth, or nothing, or the opposite."""
  world, params = _preferences_world()
  nexts = preferences.FREE_CELLS[preferences.NEXT]

  def decode(meta_params: Any, fast: jax.Array, encoding: Any) -> jax.Array:
    seen, position = encoding
    objects = seen.reshape(len(seen), 49, 10)[..., : preferences.NUM_COLOURS]
    arrived = jnp.asarray(nexts)[position]
    return jnp.take_along_axis(objects @ fast, arrived, axis=1)

  model = models.MetaModel(
      init=lambda key: (),
      init_fast=lambda meta_params: jnp.zeros(preferences.NUM_COLOURS),
      encode=lambda meta_params, inputs: (inputs.dense(), _position(inputs)),
      decode=decode,
  )
  latents = _latents(world, params, 20)
  analysis = acting.make_preferences_analysis(world, model)
  templates = np.asarray(params.templates)
  worth = {split: latent[:, 0] @ templates for split, latent in latents.items()}

  def measure(factor: float) -> base.Metrics:
    return analysis.measure(
        base.Adapted(
            task_params=params,
            meta_params=(),
            latents=latents,
            fast_params={s: factor * w for s, w in worth.items()},
            key=jax.random.key(0),
        )
    )

  @jax.jit
  @functools.partial(jax.vmap, in_axes=(0, 0, None))
  def earn(key: jax.Array, worth: jax.Array, factor: float) -> Any:
    instances = preferences.draw_instances(key, 16)
    policy = functools.partial(model.predict, (), factor * worth)
    return acting.earn(instances, worth, policy)

  for factor, low, high in ((1, 0.05, 1.0), (0, 0.0, 0.0), (-1, -9.0, -0.03)):
    for split, metrics in measure(factor).items():
      assert low <= metrics['relative_return'] <= high
      keys = jax.random.split(randomness.stream(jax.random.key(0), split), 20)
      earned, shown = earn(keys, worth[split], factor)  # [tasks, instances]
      ratio = pytest.approx(float(earned.sum() / shown.sum()), rel=1e-4)
      assert metrics['relative_return'] == ratio
  for metrics in measure(np.nan).values():  # It diverged.
    assert np.isnan(metrics['relative_return'])


def test_analyses_are_combined() -> None:
  def report(splits: tuple[str, ...], metrics: Any) -> base.Analysis:
    return base.Analysis(splits, lambda adapted: metrics)

  combined = base.combine([
      report(('test', 'ood'), {'test': {'a': 1.0}, 'ood': {'a': 2.0}}),
      report(('ood', 'valid'), {'ood': {'b': 3.0}}),
  ])
  assert combined is not None
  assert combined.splits == ('test', 'ood', 'valid')
  assert combined.measure(cast(Any, None)) == {
      'test': {'a': 1.0},
      'ood': {'a': 2.0, 'b': 3.0},
  }
  assert base.combine([]) is None
