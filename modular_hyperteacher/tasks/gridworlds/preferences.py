"""Compositional preferences: the reward of each colour depends on the task.

Source: Section 4.2, Appendix C.3. An agent walks in a grid of four rooms with
four objects of eight colours. Entering an object's cell removes it and gives a
reward; the preference vector over colours is a mixture of M templates, B^T z.
A model sees observations of an optimal agent and predicts the optimal values
of all five actions.

Values result from eight backups with discount 0.9,

  Q_{t+1}(s, a) = r(s, a) + 0.9 max_a' Q_t(s', a'),   Q_0 = 0.

Action 0 terminates. It ends the demonstration, but the recursion treats it as
staying in the cell, like a move into a wall. So the value of an action is the
value of arriving in the next cell. The dynamic programming stores only these
values, one per set of remaining objects and cell.

Worked example, one object of reward 1, two steps away on a straight line: the
values of moving towards it are 0.9, then 1. Afterwards all values are 0. Ties
go to the lowest action, so the agent terminates.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import randomness
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import objectives
from modular_hyperteacher.tasks.gridworlds import observations
from modular_hyperteacher.tasks.supports import latents
from modular_hyperteacher.tasks.supports import splits
from modular_hyperteacher.untrusted import rules

_MAP = """
#######
#..#..#
#..#..#
##...##
#..#..#
#..#..#
#######
"""
WALLS = np.array([[c == '#' for c in row] for row in _MAP.split()])
FREE_CELLS = np.flatnonzero(~WALLS)
# The cell each action leads to, as an index into FREE_CELLS: [free cells, 5].
# Action 0 terminates, the others go up, right, down and left.
NEXT = np.searchsorted(
    FREE_CELLS,
    np.concatenate(
        [FREE_CELLS[:, None], observations.neighbours(WALLS)[FREE_CELLS]],
        axis=1,
    ),
)
NUM_ACTIONS = 5
NUM_COLOURS = 8
NUM_OBJECTS = 4
HORIZON = 8
DISCOUNT = 0.9
LAYOUT = observations.Layout(
    open_cells=tuple(FREE_CELLS.tolist()),
    num_cells=WALLS.size,
    num_types=NUM_COLOURS,
    agent=8,
    walls=9,
)
# Sets of objects are coded as bits of an integer: [sets, J], 1 for members.
_REMAINING = np.arange(2**NUM_OBJECTS)[:, None] >> np.arange(NUM_OBJECTS) & 1


class PreferencesParams(NamedTuple):
  """The parameters that all tasks of a seed share."""

  templates: jax.Array  # B, [M, colours]
  split: splits.SplitParams


class Instances(NamedTuple):
  """Episodes to act in; cells are indices into FREE_CELLS."""

  object_cells: jax.Array  # [I, J] int
  colours: jax.Array  # [I, J] int
  agent: jax.Array  # [I] int, where the agent starts


class State(NamedTuple):
  """The state of episodes between two steps."""

  cell: jax.Array  # [I] int, the agent's cell
  remaining: jax.Array  # [I] int, the set of objects left
  over: jax.Array  # [I] bool, whether the agent has ended the episode


class Demonstrations(NamedTuple):
  """Episodes of an agent, step by step."""

  cells: jax.Array  # [I, T] int, the agent's cell before the step
  remaining: jax.Array  # [I, T] int, the set of objects left before the step
  values: jax.Array  # [I, T, actions], the values of all actions
  actions: jax.Array  # [I, T] int, the action taken
  mask: jax.Array  # [I, T] float, 0 after the end of the episode


@rules.enforce('task')
def make(
    *,
    num_modules: int,
    max_active: int,
    task_support: str,
    fraction_ood: float,
    sampler: latents.Sampler,
    num_support: rules.Count,
    num_query: rules.Count,
    num_query_evaluation: rules.Count,
) -> base.TaskDistribution:
  """Returns the distribution of preference tasks.

  A task mixes up to K = `max_active` of M = `num_modules` templates; see
  `splits.make` for the splits. Sets are of instances of eight steps; the query
  set is smaller in evaluation (as in the released code).

  Raises:
    UserError: for impossible sizes or splits; names the field.
  """
  task_splits = splits.make(
      task_support,
      num_modules=num_modules,
      max_active=max_active,
      num_layers=1,
      fraction_ood=fraction_ood,
      ood_ks=range(max_active + 1, num_modules + 1),
  )

  def init(key: jax.Array) -> PreferencesParams:
    return PreferencesParams(
        templates=jax.random.normal(
            randomness.stream(key, 'templates'), (num_modules, NUM_COLOURS)
        ),
        split=task_splits.init(randomness.stream(key, 'split')),
    )

  def sample_latent(
      params: PreferencesParams, key: jax.Array, split: str
  ) -> jax.Array:
    mask_key, weight_key = jax.random.split(key)
    mask = task_splits.sample(params.split, mask_key, split)
    return latents.sample_continuous(weight_key, mask, sampler)

  def sample_examples(
      params: PreferencesParams, key: jax.Array, latent: jax.Array, split: str
  ) -> tuple[base.Batch, base.Batch]:
    num_asked = num_query if split == 'train' else num_query_evaluation
    preferences = latent[0] @ params.templates
    instances = draw_instances(key, num_support + num_asked)
    shown = instances, demonstrate(instances, preferences)
    support, query = base.divide(shown, num_support)
    return to_batch(*support), to_batch(*query)

  return base.TaskDistribution(
      input_dim=LAYOUT.num_features,
      output_dim=NUM_ACTIONS,
      num_modules=num_modules,
      objective=objectives.ACTION_VALUES,
      evaluation_splits=task_splits.evaluation_splits,
      init=init,
      sample_latent=sample_latent,
      sample_examples=sample_examples,
      num_combinations=lambda params, split: task_splits.count(
          params.split, split
      ),
  )


def draw_instances(key: jax.Array, num_instances: int) -> Instances:
  """Draws distinct free cells for objects and agent, and colours."""
  cell_key, colour_key = jax.random.split(key)
  # Sampling without replacement: the cells of the largest random numbers.
  numbers = jax.random.bits(
      cell_key, (num_instances, len(FREE_CELLS)), jnp.uint32
  )
  _, cells = lax.top_k(numbers, NUM_OBJECTS + 1)
  colours = jax.random.randint(
      colour_key, (num_instances, NUM_OBJECTS), 0, NUM_COLOURS
  )
  return Instances(cells[:, :-1], colours, cells[:, -1])


def start(instances: Instances) -> State:
  """Returns the state before the first step."""
  all_objects = jnp.full(len(instances.agent), 2**NUM_OBJECTS - 1)
  over = jnp.zeros(len(instances.agent), bool)
  return State(instances.agent, all_objects, over)


def step(
    instances: Instances, state: State, actions: jax.Array
) -> tuple[State, jax.Array]:
  """Returns the next state and which objects were taken, [I, J] bool.

  Actions are [I] int: 0 ends the episode, the others are moves. After the end,
  nothing changes. The reward is the agent's preference for the colours taken.
  """
  over = state.over | (actions == 0)
  onward = jnp.asarray(NEXT)[state.cell, actions]
  cell = jnp.where(state.over, state.cell, onward)
  taken = instances.object_cells == cell[:, None]
  taken &= jnp.asarray(_REMAINING, bool)[state.remaining] & ~over[:, None]
  gone = (taken.astype(jnp.int32) << jnp.arange(NUM_OBJECTS)[None]).sum(-1)
  return State(cell, state.remaining & ~gone, over), taken


def demonstrate(instances: Instances, preferences: jax.Array) -> Demonstrations:
  """Returns the episodes of an optimal agent with preferences [colours]."""
  rewards = preferences[instances.colours]
  arrival = arrival_values(instances.object_cells, rewards)
  arrival = arrival.reshape(-1, arrival.shape[-1])  # [sets * cells, I]
  index = jnp.arange(len(instances.agent))[:, None]

  def look_up(cell: jax.Array, remaining: jax.Array) -> jax.Array:
    state = len(FREE_CELLS) * remaining[:, None] + jnp.asarray(NEXT)[cell]
    return arrival[state, index]

  return act(instances, look_up)


def act(
    instances: Instances,
    action_values: Callable[[jax.Array, jax.Array], jax.Array],
) -> Demonstrations:
  """Returns the episodes of an agent that acts greedily on action values.

  `action_values(cells, remaining) -> [I, actions]` is given the agent's cell
  and the set of objects left, both [I] int.
  """
  state = start(instances)
  steps = []
  for _ in range(HORIZON):
    values = action_values(state.cell, state.remaining)
    actions = values.argmax(-1)
    mask = (~state.over).astype(jnp.float32)
    steps.append((state.cell, state.remaining, values, actions, mask))
    state, _ = step(instances, state, actions)
  return Demonstrations(*(jnp.stack(x, axis=1) for x in zip(*steps)))


def discounted_returns(
    instances: Instances, preferences: jax.Array, done: Demonstrations
) -> jax.Array:
  """Returns the discounted return [I] of episodes for preferences [colours]."""
  states = State(done.cells, done.remaining, done.mask == 0)
  _, taken = jax.vmap(step, in_axes=(None, 1, 1), out_axes=1)(
      instances, states, done.actions
  )
  rewards = jnp.einsum('itj,ij->it', taken, preferences[instances.colours])
  return rewards @ DISCOUNT ** jnp.arange(HORIZON)


def arrival_values(object_cells: jax.Array, rewards: jax.Array) -> jax.Array:
  """Returns the value of arriving in each cell, for all sets of objects.

  Objects are in distinct free cells [I, J] and give rewards [I, J]. The value
  of action a in a cell is `values[s, NEXT[cell, a]]`.

  Returns:
    [sets, free cells, I] after `HORIZON` backups; bit j of a set's index says
    whether object j is left.
  """
  # Instances come last, so that vector operations run over many of them.
  cells = jnp.arange(len(FREE_CELLS))[None, :, None]
  at = object_cells.T[:, None] == cells  # [J, cells, I]

  def arrive(state_values: jax.Array) -> jax.Array:
    """Maps max_a Q(s, a) of all states to the values of arriving in them."""
    onward = DISCOUNT * state_values
    values = onward
    for j in range(NUM_OBJECTS):
      # Sets without object j, then the same sets with it.
      shape = (2 ** (NUM_OBJECTS - 1 - j), 2, 2**j) + at.shape[1:]
      without, _ = jnp.split(onward.reshape(shape), 2, axis=1)
      _, having = jnp.split(values.reshape(shape), 2, axis=1)
      gained = rewards[:, j][None, None, None, None] + without
      having = jnp.where(at[j][None, None, None], gained, having)
      kept, _ = jnp.split(values.reshape(shape), 2, axis=1)
      values = jnp.concatenate([kept, having], axis=1).reshape(values.shape)
    return values

  def backup(_: int, values: jax.Array) -> jax.Array:
    return arrive(values[:, NEXT].max(2))

  zeros = jnp.zeros((2**NUM_OBJECTS,) + at.shape[1:], rewards.dtype)
  return lax.fori_loop(0, HORIZON - 1, backup, arrive(zeros))


def observe(
    instances: Instances, cells: jax.Array, remaining: jax.Array
) -> observations.Scenes:
  """Returns what an agent sees in cells [I, T], given the sets left [I, T]."""
  numbers = jnp.asarray(FREE_CELLS)
  return observations.Scenes(
      agent=numbers[cells],
      object_cells=numbers[instances.object_cells],
      object_types=instances.colours,
      visible=jnp.asarray(_REMAINING, jnp.float32)[remaining],
      walls=jnp.asarray(WALLS.ravel(), jnp.float32),
      layout=LAYOUT,
  )


def to_batch(instances: Instances, shown: Demonstrations) -> base.Batch:
  """Returns demonstrations as examples: observations and action values."""
  return base.Batch(
      observe(instances, shown.cells, shown.remaining),
      shown.values.reshape(-1, NUM_ACTIONS),
      shown.mask.reshape(-1),
  )
