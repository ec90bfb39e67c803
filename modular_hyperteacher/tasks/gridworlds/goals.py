"""Compositional goals: which object to use, where, and how.

Source: Section 4.3, Appendix C.4. A goal combines four factors: a maze (of
five), a quadrant of it, a type of object (of five) in that quadrant, and one
of two interactions. The agent goes to the object by a shortest path and
interacts with it. A model sees one such demonstration and imitates another one,
with the same goal and new positions.

Worked example: target in cell 2 of a corridor, agent in cell 0, interaction 1.
The actions are 1 (right), 1, 5; rows 0 to 2 of the demonstration have mask 1,
and all later rows repeat the last observation with mask 0.

The latent is [4, 5]: one-hot rows, one per factor. All paths are computed in
`init`, so drawing a task is a table look-up. In the paper, mazes are `SIDE`
cells wide and high; the functions here take the side G from their arguments.
"""

import functools
import logging
import math
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher import randomness
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import objectives
from modular_hyperteacher.tasks.gridworlds import mazes
from modular_hyperteacher.tasks.gridworlds import observations
from modular_hyperteacher.untrusted import rules

SIDE = 11
NUM_TYPES = 5
NUM_DISTRACTORS = 4
# Values per factor: quadrant, interaction, maze, target type.
FACTORS = (4, 2, 5, NUM_TYPES)
NUM_GOALS = int(np.prod(FACTORS))
# Four moves, then the interactions.
NUM_ACTIONS = 6
# Cell numbers must fit into a byte.
_MIN_SIDE, _MAX_SIDE = 5, 15
_HELD_OUT_QUADRANT = 3
_MAX_REDRAWS = 1000
_GridSize = Annotated[
    int,
    rules.that(
        lambda side: _MIN_SIDE <= side <= _MAX_SIDE and side % 2,
        f'odd, and from {_MIN_SIDE} to {_MAX_SIDE}',
    ),
]


class GoalsParams(NamedTuple):
  """Parameters that all tasks share; cells are numbered from 0 to G^2 - 1."""

  walls: jax.Array  # [mazes, cells] float
  free: jax.Array  # [mazes, cells] uint8, free ones first
  num_free: jax.Array  # [mazes] int32
  targets: jax.Array  # [mazes, quadrants, cells] uint8, possible ones first
  num_targets: jax.Array  # [mazes, quadrants] int32
  starts: jax.Array  # [mazes, targets, cells] uint8, possible ones first
  num_starts: jax.Array  # [mazes, targets] int32
  lengths: jax.Array  # [mazes, targets, starts] int32, -1 if there is no path
  paths: jax.Array  # [mazes, targets, starts, T] uint8, see `mazes.paths`
  goals: jax.Array  # [goals, 4] int32, factors; training goals first
  num_train: jax.Array  # [] int32


class Instance(NamedTuple):
  """Positions and types at the start of an episode, all int."""

  maze: jax.Array  # []
  target: jax.Array  # []
  agent: jax.Array  # []
  distractors: jax.Array  # [4], distinct
  distractor_types: jax.Array  # [4]


class State(NamedTuple):
  """The state of an episode between two steps."""

  agent: jax.Array  # [] int, the agent's cell
  over: jax.Array  # [] bool, whether the goal was reached


@rules.enforce('task')
def make(
    *,
    task_support: Annotated[str, rules.one_of(('random', 'non_compositional'))],
    fraction_ood: float,
    max_path_length: int,
    grid_size: _GridSize = SIDE,
) -> base.TaskDistribution:
  """Returns the distribution of goal tasks.

  Compositional ('random') support holds out a random `fraction_ood` of the 200
  goals, and training has every value of every factor; 'non_compositional' holds
  out the last quadrant. Mazes whose longest shortest path has more moves than
  `max_path_length` are redrawn. Agents start at least `grid_size` (G) moves
  from their target.

  Raises:
    UserError: for an impossible value; names the field.
  """
  num_ood = int(fraction_ood * NUM_GOALS) if 0 < fraction_ood < 1 else 0
  errors.require(
      num_ood or task_support != 'random',
      'task.fraction_ood',
      fraction_ood,
      f'it must be at least 1/{NUM_GOALS} and below 1, so that at least one of'
      f' {NUM_GOALS} goals is held out',
  )
  errors.require(
      grid_size <= max_path_length < grid_size**2,
      'task.max_path_length',
      max_path_length,
      f'it must be at least {grid_size}, the length of the shortest'
      f' demonstration, and below {grid_size**2}, the number of cells',
  )

  def init(key: jax.Array) -> GoalsParams:
    goals, num_train = draw_split(
        randomness.stream(key, 'split'), task_support, num_ood
    )
    maze_key = randomness.stream(key, 'mazes')
    walls = draw_mazes(maze_key, max_path_length, grid_size)
    return GoalsParams(
        **maze_tables(walls, max_path_length), goals=goals, num_train=num_train
    )

  def sample_latent(
      params: GoalsParams, key: jax.Array, split: str
  ) -> jax.Array:
    factors = params.goals[jax.random.randint(key, (), *_range(params, split))]
    return jax.nn.one_hot(factors, max(FACTORS))

  def sample_examples(
      params: GoalsParams, key: jax.Array, latent: jax.Array, split: str
  ) -> tuple[base.Batch, base.Batch]:
    del split  # All splits have one demonstration per set.
    factors = latent.argmax(-1)
    support, query = (
        to_batch(params, draw_instance(params, instance_key, factors), factors)
        for instance_key in jax.random.split(key)
    )
    return support, query

  def num_combinations(params: GoalsParams, split: str) -> int:
    first, end = map(int, _range(params, split))
    return end - first

  return base.TaskDistribution(
      input_dim=layout(grid_size).num_features,
      output_dim=NUM_ACTIONS,
      num_modules=max(FACTORS),
      objective=objectives.ACTIONS,
      evaluation_splits=('valid', 'test', 'ood'),
      init=init,
      sample_latent=sample_latent,
      sample_examples=sample_examples,
      num_combinations=num_combinations,
  )


def _range(params: GoalsParams, split: str) -> tuple[Any, Any]:
  """Returns where a split begins and ends in the list of goals."""
  if split == 'ood':
    return params.num_train, NUM_GOALS
  return 0, params.num_train


@functools.cache
def layout(side: int) -> observations.Layout:
  """Returns the layout of observations, given G."""
  return observations.Layout(
      open_cells=tuple(range(side**2)),
      num_cells=side**2,
      num_types=NUM_TYPES,
      agent=6,
      walls=5,
  )


def side_of(params: GoalsParams) -> int:
  """Returns G, the side of the mazes."""
  return math.isqrt(params.walls.shape[-1])


def draw_split(
    key: jax.Array, task_support: str, num_ood: int
) -> tuple[jax.Array, jax.Array]:
  """Returns all goals [goals, 4], training goals first, and their number.

  Raises:
    UserError: if no split leaves every value of every factor in training.
  """
  goals = np.indices(FACTORS).reshape(len(FACTORS), -1).T
  if task_support == 'non_compositional':
    held_out = goals[:, 0] == _HELD_OUT_QUADRANT
    order = np.argsort(held_out, stable=True)
    return jnp.asarray(goals[order]), jnp.asarray(NUM_GOALS - held_out.sum())
  num_train = NUM_GOALS - num_ood
  for redraw in range(_MAX_REDRAWS):
    order = jax.random.permutation(jax.random.fold_in(key, redraw), NUM_GOALS)
    shuffled = goals[np.asarray(order)]
    if all(
        len(np.unique(values)) == size
        for values, size in zip(shuffled[:num_train].T, FACTORS)
    ):
      if redraw:
        logging.info(
            'Drew the split %d times to cover all values of every factor',
            redraw + 1,
        )
      return jnp.asarray(shuffled), jnp.asarray(num_train)
  raise errors.UserError(
      f'task.fraction_ood is {num_ood / NUM_GOALS:g}, which leaves {num_train}'
      f' training goals: none of {_MAX_REDRAWS} random splits has every value'
      ' of every factor in training; it must be smaller.'
  )


def draw_mazes(
    key: jax.Array, max_path_length: int, side: int = SIDE
) -> np.ndarray:
  """Returns the mazes of a seed, [mazes, G, G] bool.

  As published, maze i is generated from an integer plus i. The authors use the
  run's seed as the integer; here it is random, so that seeds share no mazes.

  Raises:
    UserError: if shortest paths are too long, or mazes equal, in every draw.
  """
  for redraw in range(_MAX_REDRAWS):
    bits = jax.random.bits(jax.random.fold_in(key, redraw), (), jnp.uint32)
    walls = np.stack(
        [mazes.generate(side, int(bits) + i) for i in range(FACTORS[2])]
    )
    # With two equal mazes, a goal could be trained on in one and held out in
    # the other.
    are_distinct = len({maze.tobytes() for maze in walls}) == len(walls)
    if are_distinct and all(_is_usable(w, max_path_length) for w in walls):
      if redraw:
        logging.info('Drew the mazes %d times to get usable ones', redraw + 1)
      return walls
  raise errors.UserError(
      f'task.max_path_length is {max_path_length}; it must be larger: all of'
      f' {_MAX_REDRAWS} draws gave mazes with longer shortest paths, or equal'
      ' mazes.'
  )


def _is_usable(walls: np.ndarray, max_path_length: int) -> bool:
  """Returns whether all paths fit and every target has a start far away."""
  lengths = mazes.distances(walls)
  free = ~walls.ravel()
  has_start = np.any(lengths >= len(walls), axis=1)[free].all()
  in_quadrant = quadrants(len(walls))
  has_targets = all((free & (in_quadrant == q)).any() for q in range(4))
  return bool(lengths.max() <= max_path_length and has_start and has_targets)


def quadrants(side: int = SIDE) -> np.ndarray:
  """Returns the quadrant of every cell, [cells] int; the first is largest."""
  row, column = np.indices((side, side)) > side // 2
  return (2 * row + column).ravel()


def maze_tables(
    walls: np.ndarray, max_path_length: int
) -> dict[str, jax.Array]:
  """Returns the fields of GoalsParams that mazes [mazes, G, G] determine."""
  free = ~walls.reshape(len(walls), -1)
  lengths = np.stack([mazes.distances(maze) for maze in walls])
  side = walls.shape[-1]
  in_quadrant = quadrants(side)[None] == np.arange(FACTORS[0])[:, None]
  tables = {
      'walls': (~free).astype(np.float32),
      'lengths': lengths,
      'paths': np.stack([
          mazes.paths(maze, length, max_path_length)
          for maze, length in zip(walls, lengths)
      ]),
  }
  for name, member in (
      ('free', free),
      ('targets', free[:, None] & in_quadrant[None]),
      ('starts', lengths >= side),
  ):
    # Members first, in ascending order.
    tables[name] = np.argsort(~member, axis=-1, stable=True).astype(np.uint8)
    tables[f'num_{name}'] = member.sum(-1).astype(np.int32)
  return jax.tree.map(jnp.asarray, tables)


def draw_instance(
    params: GoalsParams, key: jax.Array, factors: jax.Array
) -> Instance:
  """Draws an instance of the goal with these factors [4]."""
  quadrant, _, maze, target_type = factors
  keys = jax.random.split(key, 4)

  def draw_one(
      key: jax.Array, cells: jax.Array, number: jax.Array
  ) -> jax.Array:
    return cells[jax.random.randint(key, (), 0, number)].astype(jnp.int32)

  where = maze, quadrant
  target = draw_one(keys[0], params.targets[where], params.num_targets[where])
  where = maze, target
  agent = draw_one(keys[1], params.starts[where], params.num_starts[where])
  ranks = _distinct(keys[2], NUM_DISTRACTORS, params.num_free[maze])
  types = jax.random.randint(keys[3], (NUM_DISTRACTORS,), 0, NUM_TYPES - 1)
  return Instance(
      maze=maze,
      target=target,
      agent=agent,
      distractors=params.free[maze, ranks].astype(jnp.int32),
      distractor_types=types + (types >= target_type),
  )


def start(instance: Instance) -> State:
  """Returns the state before the first step."""
  return State(instance.agent, jnp.zeros((), bool))


def step(
    params: GoalsParams,
    instance: Instance,
    factors: jax.Array,  # [4], the goal's.
    state: State,
    action: jax.Array,  # [] int: four moves, then two interactions.
) -> tuple[State, jax.Array]:
  """Returns the next state and the reward.

  The reward is 1 for the goal's interaction in the target's cell, which ends
  the episode. All other interactions do nothing.
  """
  side = side_of(params)
  position = jnp.stack(jnp.divmod(state.agent, side))
  ahead = position + jnp.asarray(observations.MOVES)[jnp.minimum(action, 3)]
  is_inside = ((ahead >= 0) & (ahead < side)).all()
  moved = ahead[0] * side + ahead[1]
  is_free = is_inside & (params.walls[instance.maze, moved] == 0)
  moves = (action < 4) & is_free & ~state.over
  reached = (action == 4 + factors[1]) & (state.agent == instance.target)
  reached &= ~state.over
  agent = jnp.where(moves, moved, state.agent)
  return State(agent, state.over | reached), reached.astype(jnp.float32)


def _distinct(key: jax.Array, number: int, size: jax.Array) -> jax.Array:
  """Draws distinct integers below `size`, uniformly: [number] int32.

  The i-th draw is a rank among the integers that are left.
  """
  limits = size - jnp.arange(number)
  draws = jax.random.randint(key, (number,), 0, limits)
  chosen = draws[:1]
  for i in range(1, number):
    value = draws[i]
    for other in jnp.sort(chosen):
      value += value >= other
    chosen = jnp.append(chosen, value)
  return chosen


def to_batch(
    params: GoalsParams, instance: Instance, factors: jax.Array
) -> base.Batch:
  """Returns the demonstration of an instance: T rows, targets are actions."""
  interaction = factors[1]
  index = instance.maze, instance.target, instance.agent
  path = params.paths[index].astype(jnp.int32)
  length = params.lengths[index]
  step = jnp.arange(len(path))
  moves = _moves(path, side_of(params))
  actions = jnp.where(step < length, moves, interaction + 4)
  scenes = observe(params, instance, factors, path)
  return base.Batch(scenes, actions, (step <= length).astype(jnp.float32))


def observe(
    params: GoalsParams,
    instance: Instance,
    factors: jax.Array,
    agent: jax.Array,
) -> observations.Scenes:
  """Returns the observations of an agent in the given cells, [T] int."""
  cells = jnp.append(instance.target, instance.distractors)
  # A distractor in the target's cell hides the target.
  hidden = (cells == instance.target).at[0].set(False).any()
  visible = jnp.ones(len(cells)).at[0].set(1.0 - hidden)
  return observations.Scenes(
      agent=agent[None],
      object_cells=cells[None],
      object_types=jnp.append(factors[3], instance.distractor_types)[None],
      visible=jnp.broadcast_to(visible, (1, len(agent), len(cells))),
      walls=params.walls[instance.maze],
      layout=layout(side_of(params)),
  )


def _moves(path: jax.Array, side: int) -> jax.Array:
  """Returns the moves from each cell of a path to the next, [T] int."""
  change = jnp.diff(path, append=path[-1:])
  return jnp.select(
      [change == -side, change == 1, change == side],
      [observations.UP, observations.RIGHT, observations.DOWN],
      observations.LEFT,
  )
