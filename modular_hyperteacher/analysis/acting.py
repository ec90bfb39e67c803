"""Policies judged by acting: does an adapted model get where it should?

Beyond the paper, which judges predictions along an optimal agent's way: there
a mistake has no consequences, and another optimal way counts as mistakes. Here
the model adapts to a task as ever, and then acts, greedily, in fresh instances
of the task: always the action of the largest output.

Goals: 'success' is the fraction of tasks whose target gets the goal's
interaction, 'path_ratio' how many moves it took, relative to the shortest path,
a mean over successes (at least 1; NaN without a success). Worlds never change
and policies have no memory, so an agent that comes back to a cell goes round in
circles. Hence one forward pass for all cells tells all that it will ever do,
and as many steps as there are cells suffice.

Preferences: 'relative_return' is the discounted return of eight steps, summed
over all instances of all tasks, relative to that of the agent which the model
imitates, summed alike: 1 is as good as that, 0 as good as terminating at once,
and below 0 is worse. A ratio of sums, as the ratio of a single instance means
nothing where nothing can be gained: such an instance (one in five) adds nothing
to the optimal sum, yet whatever the model loses there counts. The imitated
agent plans eight steps ahead at every step, for a future that ends after eight
in all; so it is a little short of the best possible, and more than 1 possible.
"""

from typing import Any, Callable

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import randomness
from modular_hyperteacher.analysis import base
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks import goals
from modular_hyperteacher.tasks import gridworld
from modular_hyperteacher.tasks import preferences

_SPLITS = ('test', 'ood')
_NUM_INSTANCES = 16  # To act in, per task of preferences.
_TASK_CHUNK_SIZE = 32  # Tasks at once; bounds memory.

Policy = Callable[[gridworld.Scenes], jax.Array]  # [N, X] -> [N, actions]


def make_goals_analysis(
    task: tasks.TaskDistribution, model: models.MetaModel
) -> base.Analysis:
  """Returns the analysis of agents that act on goals; one instance per task."""
  del task

  @jax.jit
  def act_on_all(adapted_params, params, nexts, latents, keys):
    meta_params, fast_params = adapted_params

    def act_on_one(task_inputs):
      fast, latent, key = task_inputs
      factors = latent.argmax(-1)
      instance = goals.draw_instance(params, key, factors)
      policy = _policy(model, meta_params, fast)
      success, moves = reach_goal(params, nexts, instance, factors, policy)
      shortest = params.lengths[instance.maze, instance.target, instance.agent]
      return success, moves / shortest

    return lax.map(
        act_on_one, (fast_params, latents, keys), batch_size=_TASK_CHUNK_SIZE
    )

  def measure(adapted):
    nexts = goals.move_table(adapted.task_params)
    return {
        split: _goal_metrics(*_act_on_split(act_on_all, adapted, split, nexts))
        for split in _SPLITS
    }

  return base.Analysis(_SPLITS, measure)


def make_preferences_analysis(
    task: tasks.TaskDistribution, model: models.MetaModel
) -> base.Analysis:
  """Returns the analysis of agents that act on preferences."""
  del task

  @jax.jit
  def act_on_all(adapted_params, params, latents, keys):
    meta_params, fast_params = adapted_params

    def act_on_one(task_inputs):
      fast, latent, key = task_inputs
      instances = preferences.draw_instances(key, _NUM_INSTANCES)
      policy = _policy(model, meta_params, fast)
      returns = earn(instances, latent[0] @ params.templates, policy)
      return jax.tree.map(jnp.sum, returns)

    return lax.map(
        act_on_one, (fast_params, latents, keys), batch_size=_TASK_CHUNK_SIZE
    )

  def measure(adapted):
    metrics = {}
    for split in _SPLITS:
      earned, optimal = _act_on_split(act_on_all, adapted, split)
      ratio = earned.sum() / optimal.sum() if optimal.any() else np.nan
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
    nexts: where moves lead, [mazes, cells, 4].
    instance: where everything is.
    factors: the goal's, [4].
    policy: the action of the largest output is taken.

  Returns:
    Success, [] bool, and moves before the right interaction, [] int; what it
    is without success means nothing.
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
  """Returns the cells an agent is in, what it does there, and its rewards.

  [cells] each: as many steps as there are cells, after which an agent without
  a memory goes round in circles. Arguments are those of `reach_goal`.
  """
  cells = jnp.arange(params.walls.shape[-1])
  actions = policy(goals.observe(params, instance, factors, cells)).argmax(-1)

  def act(state, _):
    action = actions[state.agent]
    after, reward = goals.step(instance, factors, nexts, state, action)
    return after, (state.agent, action, reward)

  _, walked = lax.scan(act, goals.start(instance), length=len(cells))
  return walked


def earn(
    instances: preferences.Instances, worth: jax.Array, policy: Policy
) -> tuple[jax.Array, jax.Array]:
  """Returns what an agent earns, and what the agent that it imitates does.

  Args:
    instances: where everything is at first, I of them.
    worth: of every colour.
    policy: the action of the largest output is taken.

  Returns:
    Discounted returns, [I] both.
  """
  return tuple(
      preferences.discounted_returns(instances, worth, done)
      for done in (
          follow(instances, policy),
          preferences.demonstrate(instances, worth),
      )
  )


def follow(
    instances: preferences.Instances, policy: Policy
) -> preferences.Demonstrations:
  """Returns what an agent does that takes the action of the largest output."""

  def action_values(cells, remaining):
    scenes = preferences.observe(
        instances, cells[:, None], remaining[:, None]
    )
    return policy(scenes)

  return preferences.act(instances, action_values)


def _policy(model, meta_params, fast_params):
  def policy(scenes):
    encoding = model.encode(meta_params, scenes)
    return model.decode(meta_params, fast_params, encoding)

  return policy


def _act_on_split(
    act_on_all: Callable[..., Any],
    adapted: base.Adapted,
    split: str,
    *tables: jax.Array,
) -> tuple[np.ndarray, np.ndarray]:
  """Returns what agents that adapted to the tasks of a split do, per task."""
  latents = adapted.latents[split]
  keys = jax.random.split(randomness.stream(adapted.key, split), len(latents))
  found = act_on_all(
      (adapted.meta_params, adapted.fast_params[split]),
      adapted.task_params,
      *tables,
      latents,
      keys,
  )
  return jax.tree.map(np.asarray, found)


def _goal_metrics(success, path_ratio):
  reached = path_ratio[success]
  return {
      'success': float(success.mean()),
      'path_ratio': float(reached.mean()) if reached.size else np.nan,
  }
