"""Figures 4A and 4D: a sampled task of each grid world.

Each figure shows two instances of one task, as a model sees them in support and
query sets. To draw any other seed: `python -m figures.render --world=goals`.
"""

from collections.abc import Callable

import jax
import numpy as np
import pandas as pd

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.plotting import pictures
from modular_hyperteacher.figures.worlds import gridworld_pictures
from modular_hyperteacher.figures.worlds import sampled
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks.gridworlds import goals
from modular_hyperteacher.tasks.gridworlds import preferences

TITLE_4A = 'Figure 4A: what is a task of compositional preferences?'
TITLE_4D = 'Figure 4D: what is a task of compositional goals?'
SEED = 2020
_NUM_SHOWN = 2  # Instances of a task.


def draw_preferences(seed: int) -> cells.Drawn:
  """Returns two instances of the seed's task, and what colours are worth."""
  world, key = sampled.make('preferences', seed, 'paper')

  @jax.jit
  def sample(
      params: preferences.PreferencesParams, key: jax.Array
  ) -> tuple[
      jax.Array, preferences.Instances, preferences.Demonstrations, jax.Array
  ]:
    latent_key, instance_key = jax.random.split(key)
    latent = world.distribution.sample_latent(params, latent_key, 'train')
    worth = latent[0] @ params.templates
    instances = preferences.draw_instances(instance_key, _NUM_SHOWN)
    arrival = preferences.arrival_values(
        instances.object_cells, worth[instances.colours]
    )
    return worth, instances, preferences.demonstrate(instances, worth), arrival

  worth, instances, shown, arrival = jax.tree.map(
      np.asarray, sample(world.params, key)
  )
  drawn = []
  for i in range(_NUM_SHOWN):
    instance, actions = jax.tree.map(lambda x, i=i: x[i], (instances, shown))
    best = shown.values[i, 0].max()
    drawn.append(
        gridworld_pictures.make_preferences(
            f'the best action is worth {best:.2f}',
            instance,
            actions,
            arrival[-1, :, i][preferences.NEXT],
            worth,
        )
    )
  figure = pictures.draw(
      drawn,
      caption=[
          (
              'Values of moves (arrows) and of terminating (dots) before any'
              ' object is collected. Dotted line: eight steps of the optimal'
              ' agent.'
          ),
          (
              'The value of a colour depends on the task and is the same in all'
              f' of its instances. Seed {seed}.'
          ),
      ],
  )
  table = pd.DataFrame({
      'colour': gridworld_pictures.COLOUR_NAMES,
      'symbol': pictures.SYMBOLS,
      'worth': worth,
  })
  return figure, table


def draw_goals(seed: int) -> cells.Drawn:
  """Returns two demonstrations of the seed's goal, and their actions."""
  world, key = sampled.make('goals', seed, 'paper')

  @jax.jit
  def sample(
      params: goals.GoalsParams, key: jax.Array
  ) -> tuple[jax.Array, goals.Instance, base.Batch]:
    latent_key, instance_key = jax.random.split(key)
    latent = world.distribution.sample_latent(params, latent_key, 'train')
    factors = latent.argmax(-1)

    def show(key: jax.Array) -> tuple[goals.Instance, base.Batch]:
      instance = goals.draw_instance(params, key, factors)
      return instance, goals.to_batch(params, instance, factors)

    keys = jax.random.split(instance_key, _NUM_SHOWN)
    return factors, *jax.vmap(show)(keys)

  factors, instances, batches = jax.tree.map(
      np.asarray, sample(world.params, key)
  )
  walls = np.asarray(world.params.walls)
  drawn, columns = [], {}
  for i in range(_NUM_SHOWN):
    instance, batch = jax.tree.map(lambda x, i=i: x[i], (instances, batches))
    num_rows = int(batch.mask.sum())
    name = f'demonstration {i + 1}'
    columns[name] = pd.Series(batch.targets[:num_rows], dtype='Int64')
    title_i = f'{name}: {num_rows} actions'
    path = batch.inputs.agent[0, :num_rows]
    drawn.append(
        gridworld_pictures.make_goals(title_i, walls, instance, path, factors)
    )
  figure = pictures.draw(
      drawn,
      caption=[
          gridworld_pictures.name_goal(factors),
          (
              'A shortest path, then the interaction; a distractor in the cell'
              f' of the goal hides it. Seed {seed}.'
          ),
      ],
  )
  table = pd.DataFrame(columns).rename_axis('step').reset_index()
  return figure, table


WORLDS: dict[str, Callable[[int], cells.Drawn]] = {
    'preferences': draw_preferences,
    'goals': draw_goals,
}
