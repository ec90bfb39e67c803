"""Figures 4A and 4D: a task of each grid world, drawn from the world itself.

Two instances of one task each, as a model sees them when it adapts and when it
is judged. Any seed can be drawn: `python -m figures.render --world=goals`.
"""

import math
from typing import Callable

import jax
import numpy as np
import pandas as pd
import plotly.graph_objects as go

from figures import data
from figures import pictures
from figures import reference
from modular_hyperteacher import randomness
from modular_hyperteacher.tasks import goals
from modular_hyperteacher.tasks import preferences

TITLE_4A = 'Figure 4A: a task of compositional preferences'
TITLE_4D = 'Figure 4D: a task of compositional goals'
SEED = 2020
_NUM_SHOWN = 2  # Instances of a task.
_COLOUR_NAMES = tuple(f'colour {i}' for i in range(preferences.NUM_COLOURS))
_TYPE_NAMES = tuple(f'object {i}' for i in range(goals.NUM_TYPES))
_QUADRANTS = ('top left', 'top right', 'bottom left', 'bottom right')

Drawn = tuple[go.Figure, pd.DataFrame]


def draw_4a(library: data.Library) -> Drawn:
  """Returns Figure 4A and the table of what the colours are worth."""
  del library  # A task, not a result.
  return draw_preferences(SEED, TITLE_4A)


def draw_4d(library: data.Library) -> Drawn:
  """Returns Figure 4D and the table of the demonstrated actions."""
  del library
  return draw_goals(SEED, TITLE_4D)


def draw_preferences(seed: int, title: str) -> Drawn:
  """Returns two instances of the seed's task, and what colours are worth."""
  world, params, key = _world('fig4c', preferences.make, seed)
  worth, instances, shown, arrival = jax.tree.map(
      np.asarray, _sample_preferences(world, params, key)
  )
  drawn = [
      preferences_picture(
          f'the best action is worth {shown.values[i, 0].max():.2f}',
          *jax.tree.map(lambda x, i=i: x[i], (instances, shown)),
          arrival[-1, :, i][preferences.NEXT],
          worth,
      )
      for i in range(_NUM_SHOWN)
  ]
  figure = pictures.draw(
      drawn,
      title=title,
      caption=[
          'Arrows: values of moves while all objects are there; dots: of'
          ' terminating. Dotted: what the optimal agent does in eight steps.',
          'What a colour is worth depends on the task, and is the same in all'
          f' of its instances. Seed {seed}.',
      ],
  )
  table = {'colour': _COLOUR_NAMES, 'symbol': pictures.SYMBOLS, 'worth': worth}
  return figure, pd.DataFrame(table)


def draw_goals(seed: int, title: str) -> Drawn:
  """Returns two demonstrations of the seed's goal, and their actions."""
  world, params, key = _world('fig4e', goals.make, seed)
  factors, instances, batches = jax.tree.map(
      np.asarray, _sample_goals(world, params, key)
  )
  walls = np.asarray(params.walls)
  drawn, columns = [], {}
  for i in range(_NUM_SHOWN):
    instance, batch = jax.tree.map(lambda x, i=i: x[i], (instances, batches))
    num_rows = int(batch.mask.sum())
    name = f'demonstration {i + 1}'
    columns[name] = pd.Series(batch.targets[:num_rows], dtype='Int64')
    title_i = f'{name}: {num_rows} actions'
    path = batch.inputs.agent[0, :num_rows]
    drawn.append(goals_picture(title_i, walls, instance, path, factors))
  figure = pictures.draw(
      drawn,
      title=title,
      caption=[
          name_goal(factors),
          'A shortest path, then the interaction; a distractor in the cell of'
          f' the goal hides it. Seed {seed}.',
      ],
  )
  table = pd.DataFrame(columns).rename_axis('step').reset_index()
  return figure, table


WORLDS: dict[str, Callable[[int, str], Drawn]] = {
    'preferences': draw_preferences,
    'goals': draw_goals,
}


def _world(experiment, make, seed):
  """Returns the world of an experiment, its parameters and a key to draw."""
  config = reference.described_runs(experiment, 'paper')[0].config
  world = make(**{n: v for n, v in config['task'].items() if n != 'name'})
  root = randomness.root_key(seed, 'threefry2x32')
  params = world.init(randomness.stream(root, 'task'))
  return world, params, randomness.stream(root, 'picture')


def _sample_preferences(world, params, key):
  @jax.jit
  def sample(params, key):
    latent_key, instance_key = jax.random.split(key)
    latent = world.sample_latent(params, latent_key, 'train')
    worth = latent[0] @ params.templates
    instances = preferences.draw_instances(instance_key, _NUM_SHOWN)
    arrival = preferences.arrival_values(
        instances.object_cells, worth[instances.colours]
    )
    shown = preferences.demonstrate(instances, worth)
    return worth, instances, shown, arrival

  return sample(params, key)


def _sample_goals(world, params, key):
  @jax.jit
  def sample(params, key):
    latent_key, instance_key = jax.random.split(key)
    factors = world.sample_latent(params, latent_key, 'train').argmax(-1)

    def show(key):
      instance = goals.draw_instance(params, key, factors)
      return instance, goals.to_batch(params, instance, factors)

    keys = jax.random.split(instance_key, _NUM_SHOWN)
    return factors, *jax.vmap(show)(keys)

  return sample(params, key)


def preferences_picture(
    title: str,
    instance: preferences.Instances,
    shown: preferences.Demonstrations,
    values: np.ndarray,
    worth: np.ndarray,
) -> pictures.Picture:
  """Returns the picture of one instance and what an agent does in it.

  Args:
    title: of the picture.
    instance: leaves without the axis of instances.
    shown: the same.
    values: of all actions while all objects are there, [free cells, actions].
    worth: of the colours.
  """
  cells = preferences.FREE_CELLS
  by_action = {}
  for action, name in enumerate(('stay', 'up', 'right', 'down', 'left')):
    of_cells = np.full(preferences.WALLS.size, np.nan)
    of_cells[cells] = values[:, action]
    by_action[name] = of_cells
  num_steps = int(shown.mask.sum())
  path = [*shown.cells[:num_steps]]
  path.append(preferences.NEXT[path[-1], shown.actions[num_steps - 1]])
  names = [f'{n}, worth {w:.2f}' for n, w in zip(_COLOUR_NAMES, worth)]
  return pictures.Picture(
      title=title,
      walls=preferences.WALLS,
      object_cells=cells[instance.object_cells],
      object_types=instance.colours,
      type_names=names,
      path=cells[path],
      values=by_action,
  )


def goals_picture(
    title: str,
    walls: np.ndarray,
    instance: goals.Instance,
    path: np.ndarray,
    factors: np.ndarray,
) -> pictures.Picture:
  """Returns the picture of one instance and an agent's way in it.

  Args:
    title: of the picture.
    walls: of all mazes, [mazes, cells].
    instance: where everything is.
    path: the agent's cells.
    factors: the goal's, [4].
  """
  side = math.isqrt(walls.shape[-1])
  # As seen: a distractor replaces the goal in its cell.
  seen = [] if instance.target in instance.distractors else [instance.target]
  return pictures.Picture(
      title=title,
      walls=walls[instance.maze].reshape(side, side) > 0,
      object_cells=[*seen, *instance.distractors],
      object_types=[*[factors[3]] * len(seen), *instance.distractor_types],
      type_names=_TYPE_NAMES,
      path=path,
      goal=int(instance.target),
  )


def name_goal(factors: np.ndarray) -> str:
  """Returns a goal in words."""
  quadrant, interaction, maze, target_type = factors
  return (
      f'The goal: {_TYPE_NAMES[target_type]}, in the {_QUADRANTS[quadrant]}'
      f' quadrant of maze {maze}, by interaction {interaction}.'
  )
