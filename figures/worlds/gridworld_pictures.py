"""Pictures of an instance of a grid-world task and an agent's path."""

import math

import numpy as np

from modular_hyperteacher.figures.plotting import pictures
from modular_hyperteacher.tasks.gridworlds import goals
from modular_hyperteacher.tasks.gridworlds import preferences

COLOUR_NAMES = tuple(f'colour {i}' for i in range(preferences.NUM_COLOURS))
_TYPE_NAMES = tuple(f'object {i}' for i in range(goals.NUM_TYPES))
_QUADRANTS = ('top left', 'top right', 'bottom left', 'bottom right')


def make_preferences(
    title: str,
    instance: preferences.Instances,
    shown: preferences.Demonstrations,
    values: np.ndarray,
    worth: np.ndarray,
) -> pictures.Picture:
  """Returns the picture of an instance of preferences and an agent's path.

  `instance` and `shown` have no axis of instances. Values are those of all
  actions before any object is collected, [free cells, actions]; `worth` is that
  of the colours.
  """
  cells = preferences.FREE_CELLS
  by_action = {}
  for action, name in enumerate(('stay', 'up', 'right', 'down', 'left')):
    cell_values = np.full(preferences.WALLS.size, np.nan)
    cell_values[cells] = values[:, action]
    by_action[name] = cell_values
  num_steps = int(shown.mask.sum())
  path = [*shown.cells[:num_steps]]
  path.append(preferences.NEXT[path[-1], shown.actions[num_steps - 1]])
  return pictures.Picture(
      title=title,
      walls=preferences.WALLS,
      object_cells=cells[instance.object_cells],
      object_types=np.asarray(instance.colours).tolist(),
      type_names=[f'{n}, worth {w:.2f}' for n, w in zip(COLOUR_NAMES, worth)],
      path=cells[path].tolist(),
      values=by_action,
  )


def make_goals(
    title: str,
    walls: np.ndarray,
    instance: goals.Instance,
    path: np.ndarray,
    factors: np.ndarray,
) -> pictures.Picture:
  """Returns the picture of an instance of goals and an agent's path.

  Walls are those of all mazes, [mazes, cells], factors those of the goal, [4].
  """
  side = math.isqrt(walls.shape[-1])
  target = int(instance.target)
  cells = np.asarray(instance.distractors).tolist()
  types = np.asarray(instance.distractor_types).tolist()
  # As the agent sees it: a distractor in the goal's cell hides the goal.
  if target not in cells:
    cells, types = [target, *cells], [int(factors[3]), *types]
  return pictures.Picture(
      title=title,
      walls=walls[instance.maze].reshape(side, side) > 0,
      object_cells=cells,
      object_types=types,
      type_names=_TYPE_NAMES,
      path=path.tolist(),
      goal=target,
  )


def name_goal(factors: np.ndarray) -> str:
  """Returns a goal in words."""
  quadrant, interaction, maze, target_type = factors
  return (
      f'The goal: {_TYPE_NAMES[target_type]}, in the {_QUADRANTS[quadrant]}'
      f' quadrant of maze {maze}, by interaction {interaction}.'
  )
