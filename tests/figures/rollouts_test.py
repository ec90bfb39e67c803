"""Rollouts of known agents, read back from the figures."""

from collections.abc import Callable
import functools
import math
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.configs import fig3b
from modular_hyperteacher.configs import fig4c
from modular_hyperteacher.configs import fig4e
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.worlds import rollouts
from modular_hyperteacher.pretrained import student
from modular_hyperteacher.tasks.gridworlds import observations
from modular_hyperteacher.tasks.gridworlds import preferences
from tests.helpers import built
from tests.helpers import made_up

_KEY = jax.random.key(5)
_MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # Rows down, columns right.


_CONFIGS = {'goals': fig4e, 'preferences': fig4c, 'hyperteacher': fig3b}


@functools.cache
def _untrained(world: str) -> student.Student:
  """A student of the smoke preset, before any training."""
  config = _CONFIGS[world].get_config('smoke')
  run = sweeps.expand(config)[0]
  experiment = built.bilevel_experiment(run.config)
  root = build.root_keys(experiment.training)[0]
  return student.Student(
      run.config,
      experiment,
      run.config['training']['seeds'][0],
      *build.draw_tasks(experiment)[0],
      experiment.model.init(root),
  )


def _agent(world: str, predict: Callable[[Any], Any]) -> Any:
  """Stands for a student whose outputs are those of a function of scenes."""
  real = _untrained(world)
  return types.SimpleNamespace(
      config=real.config,
      task_params=real.task_params,
      sample=real.sample,
      adapt=lambda task: None,
      predict=lambda fast_params, scenes: predict(scenes),
  )


def _path(figure: Any, name: str) -> list[Any]:
  return next(
      list(zip(trace.x, trace.y))
      for trace in made_up.traces(figure)
      if trace.name == name and len(trace.x)
  )


def _towards(lengths: np.ndarray, interaction: int) -> np.ndarray:
  """By the rules: of all cells, the action that comes closer to the goal."""
  side = math.isqrt(len(lengths))
  actions = np.full(side**2, 4 + interaction)
  for cell in np.flatnonzero(lengths > 0):
    for action, (down, right) in enumerate(_MOVES):
      row, column = cell // side + down, cell % side + right
      inside = 0 <= row < side and 0 <= column < side
      if inside and lengths[side * row + column] == lengths[cell] - 1:
        actions[cell] = action
  return actions


@pytest.mark.slow
def test_a_perfect_agent_takes_a_shortest_path() -> None:
  real = _untrained('goals')
  params = real.task_params
  seen = {}

  def predict(scenes: observations.Scenes) -> jax.Array:
    target = int(scenes.object_cells[0, 0])
    maze = next(
        i
        for i, walls in enumerate(params.walls)
        if np.array_equal(walls, scenes.walls)
    )
    factors = real.sample('ood', jax.random.split(_KEY)[0]).latent.argmax(-1)
    lengths = np.asarray(params.lengths[maze, target])
    seen['actions'] = _towards(lengths, int(factors[1]))
    return jax.nn.one_hot(seen['actions'][scenes.agent[0]], 6)

  figure, table = rollouts.draw_goals(_agent('goals', predict), 'ood', _KEY)
  # Agents start at least as many moves away as a maze is wide.
  least = real.config['task']['grid_size'] + 1
  assert len(table['optimal'].dropna()) == len(table['model'].dropna())
  assert len(table['optimal'].dropna()) >= least
  ways = [_path(figure, name) for name in ('optimal path', "the model's path")]
  assert ways[0][0] == ways[1][0] and ways[0][-1] == ways[1][-1]
  moves = len(ways[0]) - 1
  assert made_up.texts(figure).count(f': {moves} moves') == 2


def test_an_agent_that_walks_against_a_wall_does_not_succeed() -> None:
  side = _untrained('goals').config['task']['grid_size']
  up = lambda scenes: jax.nn.one_hot(jnp.zeros(side**2, int), 6)
  figure, table = rollouts.draw_goals(_agent('goals', up), 'test', _KEY)
  assert ': does not succeed' in made_up.texts(figure)
  cells = table['model'].dropna().tolist()
  assert cells[-1] == cells[-2]  # Where it repeats itself.
  steps = zip(cells, cells[1:-1])
  assert all(after == before - side for before, after in steps)


def _optimal_values(scenes: observations.Scenes) -> jax.Array:
  """Of the drawn instance, by the world's own dynamic programming."""
  task_key, instance_key = jax.random.split(_KEY)
  real = _untrained('preferences')
  worth = real.sample('ood', task_key).latent[0]
  worth = worth @ real.task_params.templates
  instances = preferences.draw_instances(instance_key, 1)
  arrival = preferences.arrival_values(
      instances.object_cells, worth[instances.colours]
  )[:, :, 0]
  cells = jnp.searchsorted(preferences.FREE_CELLS, scenes.agent[0])
  remaining = (scenes.visible[0] @ (2.0 ** jnp.arange(4))).astype(int)
  return arrival[remaining[:, None], jnp.asarray(preferences.NEXT)[cells]]


@pytest.mark.slow
def test_an_agent_with_optimal_values_earns_the_optimal_return() -> None:
  agent = _agent('preferences', _optimal_values)
  figure, table = rollouts.draw_preferences(agent, 'ood', _KEY)
  returns = table.set_index('agent')['return']
  assert returns['model'] == pytest.approx(returns['optimal']) and returns.all()
  assert _path(figure, 'optimal path') == _path(figure, "the model's path")
  values = [
      trace.marker.color
      for trace in made_up.traces(figure)
      if trace.type == 'scatter' and trace.marker.coloraxis
  ]
  np.testing.assert_allclose(values[:5], values[5:], rtol=1e-5)


@pytest.mark.slow
def test_an_agent_that_stays_earns_nothing() -> None:
  stay = lambda scenes: jax.nn.one_hot(jnp.zeros(scenes.agent.shape[1], int), 5)
  agent = _agent('preferences', stay)
  _, table = rollouts.draw_preferences(agent, 'ood', _KEY)
  assert table.set_index('agent')['return']['model'] == 0.0


@pytest.mark.parametrize('world', ['goals', 'preferences'])
def test_models_can_be_drawn(world: str) -> None:
  trained = _untrained(world)
  draw = rollouts.WORLDS[world]
  figure, _ = draw(trained, 'ood', _KEY)
  assert _path(figure, "the model's path")[0] == _path(figure, 'agent')[0]
  again, _ = draw(trained, 'ood', _KEY)
  assert again.to_json() == figure.to_json()


def test_what_is_decoded_is_drawn_beside_the_latent() -> None:
  trained = _untrained('hyperteacher')
  figure, table = rollouts.draw_latent(trained, 'ood', _KEY)
  task = trained.sample('ood', _KEY)
  np.testing.assert_array_equal(made_up.traces(figure)[0].y, task.latent[0])
  expected = trained.fit_decoder()(trained.adapt(task))
  np.testing.assert_allclose(
      made_up.traces(figure)[1].y, expected[0], rtol=1e-6
  )
  assert len(table) == 8
