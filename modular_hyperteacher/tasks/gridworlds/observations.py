"""Cells, moves and compact observations of both grid worlds.

Source: Appendix C.3 and C.4. Cells are numbered row by row. An observation has
one channel per type of object, one for the agent and one for walls; its
features are ordered by cell, then channel: feature = channels * cell + channel.

Worked example, a row of two cells, channels (object, agent, wall): an object
in cell 0 and the agent in cell 1 are the features 0 and 4, and the observation
is 1 0 0 0 1 0.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

# Change in row and column per move, in the order of the actions.
UP, RIGHT, DOWN, LEFT = range(4)
_MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))


def neighbours(walls: np.ndarray) -> np.ndarray:
  """Returns the cell each move leads to: [cells, 4], up, right, down and left.

  A move into a wall or off the grid stays in its cell.

  Args:
    walls: [rows, columns] bool.
  """
  rows, columns = np.indices(walls.shape)
  nexts = []
  for row_step, column_step in _MOVES:
    row, column = rows + row_step, columns + column_step
    row_inside = np.clip(row, 0, walls.shape[0] - 1)
    column_inside = np.clip(column, 0, walls.shape[1] - 1)
    blocked = (row != row_inside) | (column != column_inside)
    blocked |= walls[row_inside, column_inside]
    cell = row_inside * walls.shape[1] + column_inside
    nexts.append(np.where(blocked, rows * walls.shape[1] + columns, cell))
  return np.stack(nexts, axis=-1).reshape(walls.size, 4)


@dataclasses.dataclass(frozen=True)
class Layout:
  """The meaning of an observation's features.

  Attributes:
    open_cells: cells that an agent or an object can be in.
    num_cells: cells of the grid.
    num_types: types of object, which are the first channels.
    agent: the agent's channel.
    walls: the walls' channel.
  """

  open_cells: tuple[int, ...]
  num_cells: int
  num_types: int
  agent: int
  walls: int

  @property
  def num_channels(self) -> int:
    """The number of channels: types of object, agent and walls."""
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

  Attributes:
    agent: [I, T] int, the agent's cell.
    object_cells: [I, J] int.
    object_types: [I, J] int.
    visible: [I, T, J] float, 1 while the object is visible.
    walls: [cells] float, 1 where there is a wall.
    layout: the meaning of the features; static.
  """

  agent: jax.Array
  object_cells: jax.Array
  object_types: jax.Array
  visible: jax.Array
  walls: jax.Array
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
    inputs: Scenes, weights: jax.Array, walls: jax.Array
) -> jax.Array:
  """Returns `project(inputs, weights)`, given only the weights that it uses.

  Args:
    inputs: [N, X].
    weights: [V, H], the rows `layout.columns` of a layer's weights.
    walls: [H], the result of `wall_weights` for the layer's weights.
  """
  rows = np.zeros(inputs.layout.num_features, np.int32)
  rows[inputs.layout.columns] = np.arange(len(weights))
  return look_up(inputs, weights, rows) + walls[None]


def wall_weights(inputs: Scenes, weights: jax.Array) -> jax.Array:
  """Returns the walls' part of `inputs @ weights`, [H], equal in all rows."""
  layout = inputs.layout
  return inputs.walls @ weights[layout.walls :: layout.num_channels]


def look_up(inputs: Scenes, weights: jax.Array, rows: np.ndarray) -> jax.Array:
  """Returns the agent's and objects' part of `inputs @ weights`, [N, H].

  Args:
    inputs: [N, X].
    weights: [V, H], the weights of some of the features.
    rows: [X] int, the row of each feature in `weights`.
  """
  layout = inputs.layout
  row_of = jnp.asarray(rows)
  first = layout.num_channels * inputs.object_cells
  objects = weights[row_of[first + inputs.object_types]]  # [I, J, H]
  seen = jnp.einsum('itj,ijh->ith', inputs.visible, objects)
  agent = row_of[layout.num_channels * inputs.agent + layout.agent]
  return (weights[agent] + seen).reshape(-1, weights.shape[1])
