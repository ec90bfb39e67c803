"""Compositional preferences: what the colours are worth depends on the task.

Source: Section 4.2, Appendix C.3. An agent walks in a grid of four rooms, with
four objects of eight colours in it. Entering an object's cell removes it and
gives a reward; the preference vector over colours is a mixture of M templates,
B^T z. A model sees observations of an optimal agent and predicts the optimal
values of all five actions.

Values are those of eight backups with discount 0.9,

  Q_{t+1}(s, a) = r(s, a) + 0.9 max_a' Q_t(s', a'),   Q_0 = 0,

in which terminating, the action 0, is a move that leads nowhere: it ends the
demonstration, but not the recursion. As moves against a wall lead nowhere too,
an action's value is that of arriving where it leads, and that is all the
dynamic programming keeps: for every set of remaining objects and every cell,
the value of arriving there.

Worked example, one object worth 1, two steps away on a straight line: the
values towards it are 0.9, then 1, and after it all are 0, so the agent, whose
ties go to the lowest action, terminates.
"""

from typing import Callable, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import randomness
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import gridworld
from modular_hyperteacher.tasks import latents
from modular_hyperteacher.tasks import supports

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
# Where actions lead, as positions in the list of free cells: [free cells, 5].
# Action 0 terminates, the others go up, right, down and left.
NEXT = np.searchsorted(
    FREE_CELLS,
    np.concatenate(
        [FREE_CELLS[:, None], gridworld.neighbours(WALLS)[FREE_CELLS]], axis=1
    ),
)
NUM_ACTIONS = 5
NUM_COLOURS = 8
NUM_OBJECTS = 4
HORIZON = 8
DISCOUNT = 0.9
LAYOUT = gridworld.Layout(
    open_cells=tuple(FREE_CELLS.tolist()),
    num_cells=WALLS.size,
    num_types=NUM_COLOURS,
    agent=8,
    walls=9,
)
# Which objects are still there, for every number that stands for a set of them.
_REMAINING = np.arange(2**NUM_OBJECTS)[:, None] >> np.arange(NUM_OBJECTS) & 1


class PreferencesParams(NamedTuple):
  """What all tasks of a seed share."""

  templates: base.Array  # B, [M, colours]
  split: supports.SplitParams


class Instances(NamedTuple):
  """Worlds to act in; cells count free cells only, in the order of the map."""

  object_cells: base.Array  # [I, J] int
  colours: base.Array  # [I, J] int
  agent: base.Array  # [I] int, where the agent starts


class State(NamedTuple):
  """How instances stand, between two steps of their episodes."""

  cell: base.Array  # [I] int, where the agent is
  remaining: base.Array  # [I] int, the objects left, as a set's number
  over: base.Array  # [I] bool, whether the agent has ended the episode


class Demonstrations(NamedTuple):
  """What an agent does, such as an optimal one, step by step."""

  cells: base.Array  # [I, T] int, where the agent is before the step
  remaining: base.Array  # [I, T] int, the objects left, as a set's number
  values: base.Array  # [I, T, actions], of all actions
  actions: base.Array  # [I, T] int, the one taken
  mask: base.Array  # [I, T] float, 1 unless the episode was over before


def make(
    *,
    num_modules: int,
    max_active: int,
    task_support: str,
    fraction_ood: float,
    sampler: str,
    num_support: int,
    num_query: int,
    num_query_evaluation: int,
) -> base.TaskDistribution:
  """Returns the distribution of preference tasks.

  Args:
    num_modules: M, templates.
    max_active: K, templates that a task mixes at most.
    task_support: see `supports.make`.
    fraction_ood: see `supports.make`.
    sampler: of continuous latents, a name in `latents.SAMPLERS`.
    num_support: instances per task; each gives eight rows.
    num_query: instances to be judged on in training.
    num_query_evaluation: and in evaluation.

  Raises:
    ValueError: for impossible sizes or splits; names the field.
  """
  for field, value in (
      ('num_support', num_support),
      ('num_query', num_query),
      ('num_query_evaluation', num_query_evaluation),
  ):
    if not value > 0:
      raise ValueError(f'task.{field} is {value}; it must be positive.')
  if sampler not in latents.SAMPLERS:
    raise ValueError(
        f"task.sampler is '{sampler}'; choose one of"
        f' {", ".join(repr(name) for name in latents.SAMPLERS)}.'
    )
  task_support_ = supports.make(
      task_support,
      num_modules=num_modules,
      max_active=max_active,
      num_layers=1,
      fraction_ood=fraction_ood,
      ood_ks=tuple(range(max_active + 1, num_modules + 1)),
  )

  def init(key):
    return PreferencesParams(
        templates=jax.random.normal(
            randomness.stream(key, 'templates'), (num_modules, NUM_COLOURS)
        ),
        split=task_support_.init(randomness.stream(key, 'split')),
    )

  def sample_latent(params, key, split):
    mask_key, weight_key = jax.random.split(key)
    mask = task_support_.sample(params.split, mask_key, split)
    return latents.sample_continuous(weight_key, mask, sampler)

  def sample_examples(params, key, latent, split):
    queries = num_query if split == 'train' else num_query_evaluation
    preferences = latent[0] @ params.templates
    instances = draw_instances(key, num_support + queries)
    shown = demonstrate(instances, preferences)
    batches = []
    for first, end in ((0, num_support), (num_support, None)):
      part = jax.tree.map(lambda x: x[first:end], (instances, shown))
      batches.append(to_batch(*part))
    return tuple(batches)

  return base.TaskDistribution(
      input_dim=LAYOUT.num_features,
      output_dim=NUM_ACTIONS,
      num_modules=num_modules,
      evaluation_splits=('valid', 'test', 'ood')
      + tuple(f'ood_k{k}' for k in range(max_active + 1, num_modules + 1)),
      init=init,
      sample_latent=sample_latent,
      sample_examples=sample_examples,
      num_combinations=lambda params, split: task_support_.count(
          params.split, split
      ),
  )


def draw_instances(key: base.Key, num_instances: int) -> Instances:
  """Draws objects and agent in distinct free cells, and colours."""
  cell_key, colour_key = jax.random.split(key)
  # The largest of random numbers, one per cell, are in cells without bias.
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
  everything = jnp.full(len(instances.agent), 2**NUM_OBJECTS - 1)
  over = jnp.zeros(len(instances.agent), bool)
  return State(instances.agent, everything, over)


def step(
    instances: Instances, state: State, actions: base.Array
) -> tuple[State, base.Array]:
  """Returns the next state, and which objects were taken.

  Args:
    instances: where everything is at first.
    state: before the step.
    actions: [I] int; 0 ends the episode, the others are moves.

  Returns:
    The state after the step, and [I, J] bool. An agent gets its preference for
    the colour of what it takes. Once the episode is over nothing changes.
  """
  over = state.over | (actions == 0)
  onward = jnp.asarray(NEXT)[state.cell, actions]
  cell = jnp.where(state.over, state.cell, onward)
  taken = instances.object_cells == cell[:, None]
  taken &= jnp.asarray(_REMAINING, bool)[state.remaining] & ~over[:, None]
  gone = (taken.astype(jnp.int32) << jnp.arange(NUM_OBJECTS)[None]).sum(-1)
  return State(cell, state.remaining & ~gone, over), taken


def demonstrate(
    instances: Instances, preferences: base.Array
) -> Demonstrations:
  """Returns what an agent with these preferences [colours] optimally does."""
  rewards = preferences[instances.colours]
  arrival = arrival_values(instances.object_cells, rewards)
  arrival = arrival.reshape(-1, arrival.shape[-1])  # [sets * cells, I]
  index = jnp.arange(len(instances.agent))[:, None]

  def look_up(cell, remaining):
    state = len(FREE_CELLS) * remaining[:, None] + jnp.asarray(NEXT)[cell]
    return arrival[state, index]

  return act(instances, look_up)


def act(
    instances: Instances,
    action_values: Callable[[base.Array, base.Array], base.Array],
) -> Demonstrations:
  """Returns what an agent does that acts greedily on action values.

  Args:
    instances: where everything is at first.
    action_values: `action_values(cells, remaining) -> [I, actions]`, given
      where the agent is, and the objects that are left, both [I] int.
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
    instances: Instances, preferences: base.Array, done: Demonstrations
) -> base.Array:
  """Returns what these actions earn an agent with these preferences, [I].

  Args:
    instances: where everything is at first.
    preferences: [colours].
    done: what the agent does.
  """
  states = State(done.cells, done.remaining, done.mask == 0)
  _, taken = jax.vmap(step, in_axes=(None, 1, 1), out_axes=1)(
      instances, states, done.actions
  )
  rewards = jnp.einsum('itj,ij->it', taken, preferences[instances.colours])
  return rewards @ DISCOUNT ** jnp.arange(HORIZON)


def arrival_values(
    object_cells: base.Array, rewards: base.Array
) -> base.Array:
  """Returns the values of arriving in a cell, for all sets of objects.

  The value of action a in a cell is that of arriving where a leads,
  `values[s, NEXT[cell, a]]`.

  Args:
    object_cells: [I, J] int, distinct free cells.
    rewards: [I, J].

  Returns:
    [sets, free cells, I] from `HORIZON` backups; object j is left in the sets
    whose number has bit j.
  """
  # Instances come last, where their number makes for long vectors.
  cells = jnp.arange(len(FREE_CELLS))[None, :, None]
  at = object_cells.T[:, None] == cells  # [J, cells, I]

  def arrive(state_values):
    """max_a Q(s, .) of all states -> values of arriving in them."""
    onward = DISCOUNT * state_values
    values = onward
    for j in range(NUM_OBJECTS):
      # Sets without object j, and the same sets with it.
      shape = (2 ** (NUM_OBJECTS - 1 - j), 2, 2**j) + at.shape[1:]
      without, _ = jnp.split(onward.reshape(shape), 2, axis=1)
      _, having = jnp.split(values.reshape(shape), 2, axis=1)
      gained = rewards[:, j][None, None, None, None] + without
      having = jnp.where(at[j][None, None, None], gained, having)
      kept, _ = jnp.split(values.reshape(shape), 2, axis=1)
      values = jnp.concatenate([kept, having], axis=1).reshape(values.shape)
    return values

  def backup(_, values):
    return arrive(values[:, NEXT].max(2))

  zeros = jnp.zeros((2**NUM_OBJECTS,) + at.shape[1:], rewards.dtype)
  return lax.fori_loop(0, HORIZON - 1, backup, arrive(zeros))


def observe(
    instances: Instances, cells: base.Array, remaining: base.Array
) -> gridworld.Scenes:
  """Returns what is seen from these cells, with these objects left.

  Args:
    instances: where everything is at first.
    cells: [I, T] int, where the agent is.
    remaining: [I, T] int, sets' numbers.
  """
  numbers = jnp.asarray(FREE_CELLS)
  return gridworld.Scenes(
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
