"""Evaluates policies by acting: does an adapted model reach its goal?

Beyond the paper, which scores predictions along an optimal trajectory. There,
mistakes have no consequences, and other optimal actions count as mistakes.
Here the adapted model acts greedily in fresh instances of the task: it takes
the action with the largest output.

Goals: 'success' is the fraction of tasks in which the agent performs the goal's
interaction on the target. 'path_ratio' is the number of moves relative to the
shortest path, averaged over successes (at least 1; NaN without a success).
Mazes are static and policies have no memory, so an agent that revisits a cell
loops forever. One forward pass over all cells determines the trajectory, and as
many steps as there are cells suffice.

Preferences: 'relative_return' is the discounted return of eight steps, summed
over all instances of all tasks, divided by the same sum for the demonstrator
that the model imitates. 1 matches the demonstrator, 0 equals terminating at
once. It is a ratio of sums because one instance in five offers no reward, which
leaves its own ratio undefined; the model's losses there still count. The
demonstrator always plans eight steps ahead, although the episode ends after
eight steps in all. So it is slightly suboptimal, and values can exceed 1.
"""

from collections.abc import Callable
import functools
from typing import Any

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
_NUM_INSTANCES = 16  # A task of preferences is acted in so many scenes.
_TASK_CHUNK_SIZE = 32  # Tasks evaluated together; bounds memory.


# Observations of N scenes -> outputs [N, actions]. The agent takes the action
# with the largest.
Policy = Callable[[observations.Scenes], jax.Array]


def make_goals_analysis(
    task: tasks.TaskDistribution, model: models.MetaModel
) -> base.Analysis:
  """Returns the analysis of acting on goals, in one instance per task."""
  del task

  def act(
      policy: Policy,
      task_params: goals.GoalsParams,
      latent: jax.Array,
      key: jax.Array,
  ) -> tuple[jax.Array, jax.Array]:
    factors = latent.argmax(-1)
    instance = goals.draw_instance(task_params, key, factors)
    _, _, rewards = walk(task_params, instance, factors, policy)
    success, moves = rewards.any(), rewards.argmax()
    start = instance.maze, instance.target, instance.agent
    return success, moves / task_params.lengths[start]

  act_on_split = _make_act_on_split(model, act)

  def measure(adapted: base.Adapted) -> base.Metrics:
    return {
        split: _goal_metrics(*act_on_split(adapted, split)) for split in _SPLITS
    }

  return base.Analysis(_SPLITS, measure)


def make_preferences_analysis(
    task: tasks.TaskDistribution, model: models.MetaModel
) -> base.Analysis:
  """Returns the analysis of acting on preferences."""
  del task

  def act(
      policy: Policy,
      task_params: preferences.PreferencesParams,
      latent: jax.Array,
      key: jax.Array,
  ) -> tuple[jax.Array, jax.Array]:
    instances = preferences.draw_instances(key, _NUM_INSTANCES)
    returns = earn(instances, latent[0] @ task_params.templates, policy)
    return jax.tree.map(jnp.sum, returns)

  act_on_split = _make_act_on_split(model, act)

  def measure(adapted: base.Adapted) -> base.Metrics:
    metrics = {}
    for split in _SPLITS:
      earned, demonstrated = act_on_split(adapted, split)
      ratio = np.nan
      # If a model diverged, argmax would end every walk at once.
      student = adapted.meta_params, adapted.fast_params[split]
      if demonstrated.any() and base.is_finite(student):
        ratio = earned.sum() / demonstrated.sum()
      metrics[split] = {'relative_return': float(ratio)}
    return metrics

  return base.Analysis(_SPLITS, measure)


def walk(
    params: goals.GoalsParams,
    instance: goals.Instance,
    factors: jax.Array,
    policy: Policy,
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Returns an agent's cells, actions and rewards, [cells] each.

  Takes as many steps as there are cells; after that, an agent without memory
  only repeats itself. One that reaches its goal earns one reward, whose index
  is its number of moves before the right interaction; without a reward, the
  argmax of the rewards means nothing.

  The policy is followed greedily.
  """
  cells = jnp.arange(params.walls.shape[-1])
  actions = policy(goals.observe(params, instance, factors, cells)).argmax(-1)

  def act(
      state: goals.State, _: None
  ) -> tuple[goals.State, tuple[jax.Array, jax.Array, jax.Array]]:
    action = actions[state.agent]
    after, reward = goals.step(params, instance, factors, state, action)
    return after, (state.agent, action, reward)

  _, walked = lax.scan(act, goals.start(instance), length=len(cells))
  return walked


def earn(
    instances: preferences.Instances, worth: jax.Array, policy: Policy
) -> tuple[jax.Array, jax.Array]:
  """Returns the discounted returns [I] of an agent and of the demonstrator.

  `worth` is the reward of each colour; the policy is followed greedily.
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


def _make_act_on_split(
    model: models.MetaModel, act: Callable[..., tuple[jax.Array, jax.Array]]
) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
  """Returns `act_on_split(adapted, split)`.

  It returns the two results of acting on each task of a split, [tasks] each:
  `act` takes a policy, task parameters, a latent and a key.
  """

  @jax.jit
  def act_on_all(
      adapted_params: tuple[models.MetaParams, models.FastParams],
      task_params: Any,
      latents: jax.Array,
      keys: jax.Array,
  ) -> tuple[jax.Array, jax.Array]:
    meta_params, fast_params = adapted_params

    def act_on_one(
        task_inputs: tuple[models.FastParams, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array]:
      fast, latent, key = task_inputs
      policy = functools.partial(model.predict, meta_params, fast)
      return act(policy, task_params, latent, key)

    return lax.map(
        act_on_one, (fast_params, latents, keys), batch_size=_TASK_CHUNK_SIZE
    )

  def act_on_split(
      adapted: base.Adapted, split: str
  ) -> tuple[np.ndarray, np.ndarray]:
    latents = adapted.latents[split]
    keys = jax.random.split(randomness.stream(adapted.key, split), len(latents))
    params = adapted.meta_params, adapted.fast_params[split]
    results = act_on_all(params, adapted.task_params, latents, keys)
    return jax.tree.map(np.asarray, results)

  return act_on_split


def _goal_metrics(
    success: np.ndarray, path_ratio: np.ndarray
) -> dict[str, float]:
  reached = path_ratio[success]
  return {
      'success': float(success.mean()),
      'path_ratio': float(reached.mean()) if reached.size else np.nan,
  }
