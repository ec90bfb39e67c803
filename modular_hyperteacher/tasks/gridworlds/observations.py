"""Cells, moves and compact observations of both grid worlds.

Source: Appendix C.3 and C.4. Cells are numbered row by row. An observation has
one channel per type of object, one for the agent and one for walls; its
features are ordered by cell, then channel: feature = channels * cell + channel.

Worked example, a row of two cells, channels (object, agent, wall): an object
in cell 0 and the agent in cell 1 are the features 0 and 4, and the observation
is 1 0 0 0 1 0.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

# Change in row and column per move, in the order of the actions.
UP, RIGHT, DOWN, LEFT = range(4)
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))


def neighbours(walls: np.ndarray) -> np.ndarray:
  """Returns the cell each move leads to: [cells, 4], up, right, down and left.

  A move into a wall, of [rows, columns] bool, or off the grid stays in its
  cell.
  """
  blocked = np.pad(walls, 1, constant_values=True)
  cells = np.pad(np.arange(walls.size).reshape(walls.shape), 1)
  nexts = []
  for move in MOVES:
    ahead = functools.partial(np.roll, shift=np.negative(move), axis=(0, 1))
    nexts.append(np.where(ahead(blocked), cells, ahead(cells)))
  return np.stack(nexts, axis=-1)[1:-1, 1:-1].reshape(walls.size, 4)


@dataclasses.dataclass(frozen=True)
class Layout:
  """The meaning of an observation's features."""

  open_cells: tuple[int, ...]  # Cells that an agent or an object can be in.
  num_cells: int
  num_types: int  # Types of object, which are the first channels.
  agent: int  # The agent's channel.
  walls: int  # The walls' channel.

  @property
  def num_channels(self) -> int:
    """Types of object, agent and walls."""
    return self.num_types + 2

  @property
  def num_features(self) -> int:
    """X, the number of features of an observation."""
    return self.num_cells * self.num_channels

  @property
  def columns(self) -> np.ndarray:
    """The agent and object features that can be nonzero: [V] int."""
    channels = np.append(np.arange(self.num_types), self.agent)
    cells = np.array(self.open_cells)[:, None]
    return (self.num_channels * cells + channels).ravel()


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Scenes:
  """The observations of I instances of T steps each, in compact form.

  A row of the batch is a step of an instance, so N = I * T. Walls are the same
  throughout a batch, object cells throughout an instance. A linear layer's
  output (`project`) is the sum of a few rows of its weights.
  """

  agent: jax.Array  # [I, T] int, the agent's cell
  object_cells: jax.Array  # [I, J] int
  object_types: jax.Array  # [I, J] int
  visible: jax.Array  # [I, T, J] float, 1 while the object is visible
  walls: jax.Array  # [cells] float, 1 where there is a wall
  layout: Layout = dataclasses.field(metadata={'static': True})

  @property
  def shape(self) -> tuple[int, int]:
    """(N, X), the shape of the dense observations."""
    instances, steps, _ = self.visible.shape
    return instances * steps, self.layout.num_features

  def dense(self) -> jax.Array:
    """Returns the dense observations, [N, X]."""
    return project(self, jnp.eye(self.shape[1]))

  def take_rows(self, rows: jax.Array) -> 'Scenes':
    """Returns the given rows as instances of one step each."""
    instance, step = jnp.divmod(rows, self.agent.shape[1])
    return dataclasses.replace(
        self,
        agent=self.agent[instance, step][:, None],
        object_cells=self.object_cells[instance],
        object_types=self.object_types[instance],
        visible=self.visible[instance, step][:, None],
    )


def project(inputs: Scenes | jax.Array, weights: jax.Array) -> jax.Array:
  """Returns `inputs @ weights`, [N, X] x [X, H] -> [N, H].

  For `Scenes`, sums the weights of the nonzero features only.
  """
  if not isinstance(inputs, Scenes):
    return inputs @ weights
  rows = np.arange(inputs.layout.num_features)
  walls = wall_weights(inputs, weights)
  return look_up(inputs, weights, rows) + walls[None]


def project_reduced(
    inputs: Scenes,
    weights: jax.Array,  # [V, H], the rows `layout.columns` of all weights.
    walls: jax.Array,  # [H], the result of `wall_weights` for all weights.
) -> jax.Array:
  """Returns `project(inputs, weights)`, given only the weights it uses."""
  rows = np.zeros(inputs.layout.num_features, np.int32)
  rows[inputs.layout.columns] = np.arange(len(weights))
  return look_up(inputs, weights, rows) + walls[None]


def wall_weights(inputs: Scenes, weights: jax.Array) -> jax.Array:
  """Returns the walls' part of `inputs @ weights`, [H], equal in all rows."""
  layout = inputs.layout
  return inputs.walls @ weights[layout.walls :: layout.num_channels]


def look_up(inputs: Scenes, weights: jax.Array, rows: np.ndarray) -> jax.Array:
  """Returns the agent's and objects' part of `inputs @ weights`, [N, H].

  `weights` [V, H] are those of some of the features, whose rows in it are
  `rows` [X].
  """
  layout = inputs.layout
  row_of = jnp.asarray(rows)
  first = layout.num_channels * inputs.object_cells
  objects = weights[row_of[first + inputs.object_types]]  # [I, J, H]
  seen = jnp.einsum('itj,ijh->ith', inputs.visible, objects)
  agent = row_of[layout.num_channels * inputs.agent + layout.agent]
  return (weights[agent] + seen).reshape(-1, weights.shape[1])
