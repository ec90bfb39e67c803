"""Evaluates policies by acting: does an adapted model reach its goal?

Beyond the paper, which scores predictions along an optimal trajectory. There a
mistake has no consequences, and another optimal action counts as a mistake.
Here the model adapts to a task as usual, and then acts greedily in fresh
instances of the task: it takes the action with the largest output.

Goals: 'success' is the fraction of tasks in which the agent performs the goal's
interaction on the target. 'path_ratio' is the number of moves relative to the
shortest path, averaged over successes (at least 1; NaN without a success).
Mazes are static and policies have no memory, so an agent that revisits a cell
loops forever. Hence one forward pass over all cells determines the trajectory,
and as many steps as there are cells suffice.

Preferences: 'relative_return' is the discounted return of eight steps, summed
over all instances of all tasks, divided by the same sum for the demonstrator
that the model imitates. 1 matches the demonstrator, 0 equals terminating at
once, below 0 is worse. It is a ratio of sums because the ratio of one instance
is undefined where nothing can be gained. Such an instance (one in five) adds
nothing to the demonstrator's sum, but what the model loses there counts. The
demonstrator plans eight steps ahead at every step, although the episode ends
after eight steps in all. It is therefore slightly suboptimal, and values above
1 are possible.
"""

from collections.abc import Callable
from typing import Any, Protocol

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import randomness
from modular_hyperteacher.analysis import base
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks.gridworlds import goals
from modular_hyperteacher.tasks.gridworlds import observations
from modular_hyperteacher.tasks.gridworlds import preferences

_SPLITS = ('test', 'ood')
_NUM_INSTANCES = 16  # Per task of preferences.
_TASK_CHUNK_SIZE = 32  # Tasks evaluated together; bounds memory.


class Policy(Protocol):
  """Scores actions; the agent takes the one with the largest output."""

  def __call__(self, scenes: observations.Scenes, /) -> jax.Array:
    """Returns outputs [N, actions] for observations [N, X]."""
    ...


def make_goals_analysis(
    task: tasks.TaskDistribution, model: models.MetaModel
) -> base.Analysis:
  """Returns the analysis of acting on goals, in one instance per task."""
  del task

  @jax.jit
  def act_on_all(
      adapted_params: tuple[models.MetaParams, models.FastParams],
      task_params: goals.GoalsParams,
      nexts: jax.Array,
      latents: jax.Array,
      keys: jax.Array,
  ) -> tuple[jax.Array, jax.Array]:
    meta_params, fast_params = adapted_params

    def act_on_one(
        task_inputs: tuple[models.FastParams, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array]:
      fast, latent, key = task_inputs
      factors = latent.argmax(-1)
      instance = goals.draw_instance(task_params, key, factors)
      policy = _make_policy(model, meta_params, fast)
      success, moves = reach_goal(task_params, nexts, instance, factors, policy)
      start = instance.maze, instance.target, instance.agent
      return success, moves / task_params.lengths[start]

    return lax.map(
        act_on_one, (fast_params, latents, keys), batch_size=_TASK_CHUNK_SIZE
    )

  def measure(adapted: base.Adapted) -> base.Metrics:
    nexts = goals.move_table(adapted.task_params)
    return {
        split: _goal_metrics(*_act_on_split(act_on_all, adapted, split, nexts))
        for split in _SPLITS
    }

  return base.Analysis(_SPLITS, measure)


def make_preferences_analysis(
    task: tasks.TaskDistribution, model: models.MetaModel
) -> base.Analysis:
  """Returns the analysis of acting on preferences."""
  del task

  @jax.jit
  def act_on_all(
      adapted_params: tuple[models.MetaParams, models.FastParams],
      task_params: preferences.PreferencesParams,
      latents: jax.Array,
      keys: jax.Array,
  ) -> tuple[jax.Array, jax.Array]:
    meta_params, fast_params = adapted_params

    def act_on_one(
        task_inputs: tuple[models.FastParams, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array]:
      fast, latent, key = task_inputs
      instances = preferences.draw_instances(key, _NUM_INSTANCES)
      policy = _make_policy(model, meta_params, fast)
      returns = earn(instances, latent[0] @ task_params.templates, policy)
      return jax.tree.map(jnp.sum, returns)

    return lax.map(
        act_on_one, (fast_params, latents, keys), batch_size=_TASK_CHUNK_SIZE
    )

  def measure(adapted: base.Adapted) -> base.Metrics:
    metrics = {}
    for split in _SPLITS:
      earned, demonstrated = _act_on_split(act_on_all, adapted, split)
      ratio = np.nan
      if demonstrated.any():
        ratio = earned.sum() / demonstrated.sum()
      metrics[split] = {'relative_return': float(ratio)}
    return metrics

  return base.Analysis(_SPLITS, measure)


def reach_goal(
    params: goals.GoalsParams,
    nexts: jax.Array,
    instance: goals.Instance,
    factors: jax.Array,
    policy: Policy,
) -> tuple[jax.Array, jax.Array]:
  """Returns whether an agent reaches its goal, and after how many moves.

  Args:
    params: what all tasks share.
    nexts: the cell after each move, [mazes, cells, 4].
    instance: the initial scene.
    factors: the goal's, [4].
    policy: followed greedily.

  Returns:
    Success, [] bool, and the number of moves before the right interaction,
    [] int, meaningless without success.
  """
  _, _, rewards = walk(params, nexts, instance, factors, policy)
  return rewards.any(), rewards.argmax()


def walk(
    params: goals.GoalsParams,
    nexts: jax.Array,
    instance: goals.Instance,
    factors: jax.Array,
    policy: Policy,
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Returns an agent's cells, actions and rewards, [cells] each.

  Takes as many steps as there are cells; after that, an agent without memory
  only repeats itself. For the arguments see `reach_goal`.
  """
  cells = jnp.arange(params.walls.shape[-1])
  actions = policy(goals.observe(params, instance, factors, cells)).argmax(-1)

  def act(
      state: goals.State, _: None
  ) -> tuple[goals.State, tuple[jax.Array, jax.Array, jax.Array]]:
    action = actions[state.agent]
    after, reward = goals.step(instance, factors, nexts, state, action)
    return after, (state.agent, action, reward)

  _, walked = lax.scan(act, goals.start(instance), length=len(cells))
  return walked


def earn(
    instances: preferences.Instances, worth: jax.Array, policy: Policy
) -> tuple[jax.Array, jax.Array]:
  """Returns the discounted returns of an agent and of the demonstrator.

  Args:
    instances: I initial scenes.
    worth: reward of each colour, [colours].
    policy: followed greedily.

  Returns:
    Discounted returns, [I] both.
  """
  earned = preferences.discounted_returns(
      instances, worth, follow(instances, policy)
  )
  demonstrated = preferences.discounted_returns(
      instances, worth, preferences.demonstrate(instances, worth)
  )
  return earned, demonstrated


def follow(
    instances: preferences.Instances, policy: Policy
) -> preferences.Demonstrations:
  """Returns the trajectories of an agent that follows a policy greedily."""

  def action_values(cells: jax.Array, remaining: jax.Array) -> jax.Array:
    scenes = preferences.observe(instances, cells[:, None], remaining[:, None])
    return policy(scenes)

  return preferences.act(instances, action_values)


def _make_policy(
    model: models.MetaModel,
    meta_params: models.MetaParams,
    fast_params: models.FastParams,
) -> Policy:
  def policy(scenes: observations.Scenes) -> jax.Array:
    encoding = model.encode(meta_params, scenes)
    return model.decode(meta_params, fast_params, encoding)

  return policy


def _act_on_split(
    act_on_all: Callable[..., Any],
    adapted: base.Adapted,
    split: str,
    *tables: jax.Array,
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the two results of acting on each task of a split, [tasks] each.

  Args:
    act_on_all: takes (meta params, fast params), task params, the tables,
      latents and keys.
    adapted: whose fast parameters act.
    split: whose tasks to act on.
    *tables: further arguments that all tasks share.
  """
  latents = adapted.latents[split]
  keys = jax.random.split(randomness.stream(adapted.key, split), len(latents))
  results = act_on_all(
      (adapted.meta_params, adapted.fast_params[split]),
      adapted.task_params,
      *tables,
      latents,
      keys,
  )
  return jax.tree.map(np.asarray, results)


def _goal_metrics(
    success: np.ndarray, path_ratio: np.ndarray
) -> dict[str, float]:
  reached = path_ratio[success]
  return {
      'success': float(success.mean()),
      'path_ratio': float(reached.mean()) if reached.size else np.nan,
  }
