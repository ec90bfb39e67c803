"""What the grid worlds share: cells, moves, and observations in compact form.

Source: Appendix C.3 and C.4. Cells are numbered row by row. An observation has
a channel per kind of thing; its features are numbered cell by cell, channel by
channel: feature = channels * cell + channel.

Worked example, a grid with two cells in a row, channels (object, agent, wall):
an object in cell 0 and the agent in cell 1 are the features 0 and 4, and the
observation is 1 0 0 0 1 0.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.tasks import base

# Rows and columns that a move adds, in the order of both worlds' actions.
UP, RIGHT, DOWN, LEFT = range(4)
_MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))


def neighbours(walls: np.ndarray) -> np.ndarray:
  """Returns where moves lead: [cells, 4], up, right, down and left.

  A move into a wall or off the grid leads nowhere: to the cell itself.

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
  """What the features of an observation stand for.

  Attributes:
    open_cells: cells that an agent or an object can ever be in.
    num_cells: cells of the grid.
    num_types: types of object; theirs are the first channels.
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
    """Channels of an observation: types of object, agent and walls."""
    return self.num_types + 2

  @property
  def num_features(self) -> int:
    """X, the features of an observation."""
    return self.num_cells * self.num_channels

  @property
  def columns(self) -> np.ndarray:
    """Features of agents and objects that can be other than 0: [V] int."""
    channels = np.append(np.arange(self.num_types), self.agent)
    cells = np.array(self.open_cells)[:, None]
    return (self.num_channels * cells + channels).ravel()


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Scenes:
  """The observations of I instances of T steps each, in compact form.

  A row of the batch is a step of an instance, so N = I * T. Within a batch
  walls never change, and within an instance objects never move. What a linear
  layer makes of it (`project`) is the sum of a few of its weights' rows.

  Attributes:
    agent: [I, T] int, the agent's cell.
    object_cells: [I, J] int.
    object_types: [I, J] int.
    visible: [I, T, J] float, 1 while the object is there to be seen.
    walls: [cells] float, 1 where there is a wall.
    layout: what the features mean; static.
  """

  agent: base.Array
  object_cells: base.Array
  object_types: base.Array
  visible: base.Array
  walls: base.Array
  layout: Layout = dataclasses.field(metadata={'static': True})

  @property
  def shape(self) -> tuple[int, int]:
    """(N, X), the shape of the observations that this stands for."""
    instances, steps, _ = self.visible.shape
    return instances * steps, self.layout.num_features

  def dense(self) -> base.Array:
    """Returns the observations themselves, [N, X]."""
    return project(self, jnp.eye(self.shape[1]))

  def take_rows(self, rows: base.Array) -> 'Scenes':
    """Returns these rows, as instances of a single step each."""
    instance, step = jnp.divmod(rows, self.agent.shape[1])
    return dataclasses.replace(
        self,
        agent=self.agent[instance, step][:, None],
        object_cells=self.object_cells[instance],
        object_types=self.object_types[instance],
        visible=self.visible[instance, step][:, None],
    )


def project(inputs: Scenes | base.Array, weights: base.Array) -> base.Array:
  """Returns `inputs @ weights`, [N, X] x [X, H] -> [N, H].

  For `Scenes` this is computed from what is in them, without multiplying any
  of the zeros between.
  """
  if not isinstance(inputs, Scenes):
    return inputs @ weights
  positions = np.arange(inputs.layout.num_features)
  walls = wall_weights(inputs, weights)
  return look_up(inputs, weights, positions) + walls[None]


def project_reduced(
    inputs: Scenes, weights: base.Array, walls: base.Array
) -> base.Array:
  """Returns what `project` does, from weights without those never needed.

  Args:
    inputs: [N, X].
    weights: [V, H], the rows `layout.columns` of a layer's weights.
    walls: [H], what `wall_weights` returns for these weights.
  """
  positions = np.zeros(inputs.layout.num_features, np.int32)
  positions[inputs.layout.columns] = np.arange(len(weights))
  return look_up(inputs, weights, positions) + walls[None]


def wall_weights(inputs: Scenes, weights: base.Array) -> base.Array:
  """Returns the walls' part of `inputs @ weights`, [H]; all rows have it."""
  layout = inputs.layout
  return inputs.walls @ weights[layout.walls :: layout.num_channels]


def look_up(
    inputs: Scenes, weights: base.Array, positions: np.ndarray
) -> base.Array:
  """Returns the agent's and objects' part of a product with weights, [N, H].

  Args:
    inputs: [N, X].
    weights: [V, H], one row for each of some of the features.
    positions: [X] int, the row of each feature.
  """
  layout = inputs.layout
  positions = jnp.asarray(positions)
  first = layout.num_channels * inputs.object_cells
  objects = weights[positions[first + inputs.object_types]]  # [I, J, H]
  seen = jnp.einsum('itj,ijh->ith', inputs.visible, objects)
  agent = positions[layout.num_channels * inputs.agent + layout.agent]
  return (weights[agent] + seen).reshape(-1, weights.shape[1])
