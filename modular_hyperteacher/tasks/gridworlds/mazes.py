"""Random mazes and the shortest paths through them. Host code, NumPy.

Source: Appendix C.4. Walls start at random even cells and grow, two cells at a
time, into even cells that are still free. A wall never grows into another one,
so the free cells stay connected; where walls do not meet, there are loops.

Cells are numbered row by row. A maze is determined by an integer, the seed of
NumPy's default generator; the authors use the run's seed and the next four.
"""

import numpy as np
from scipy.sparse import csgraph

from modular_hyperteacher.tasks.gridworlds import observations

# Walls started, as a share of the even cells; attempts to grow each of them,
# in multiples of the perimeter.
_DENSITY = 0.75
_COMPLEXITY = 0.75
# How far a wall grows to the right and down, in the published order.
_STEPS = ((-2, 0), (2, 0), (0, -2), (0, 2))


def generate(side: int, integer: int) -> np.ndarray:
  """Returns the maze of a seed, [G, G] bool, true where there is a wall.

  The side G must be odd. The enclosing border, needed while drawing, is cut
  off.
  """
  rng = np.random.default_rng(integer)
  outer = side + 2
  half = outer // 2
  num_starts = int(_DENSITY * half * half)
  num_attempts = int(_COMPLEXITY * 5 * 2 * outer)
  walls = np.zeros((outer, outer), bool)
  walls[[0, -1]] = walls[:, [0, -1]] = True
  for _ in range(num_starts):
    x, y = (2 * int(rng.integers(0, half + 1)) for _ in range(2))
    walls[y, x] = True
    for _ in range(num_attempts):
      neighbours = [
          (x + right, y + down)
          for right, down in _STEPS
          if 0 <= x + right < outer and 0 <= y + down < outer
      ]
      next_x, next_y = neighbours[int(rng.integers(0, len(neighbours)))]
      if not walls[next_y, next_x]:
        walls[next_y, next_x] = True
        walls[(y + next_y) // 2, (x + next_x) // 2] = True
        x, y = next_x, next_y
  return walls[1:-1, 1:-1]


def distances(walls: np.ndarray) -> np.ndarray:
  """Returns the length of the shortest path between any two cells.

  In steps, [G^2, G^2] int32; -1 if there is no path, or if one of the two cells
  is a wall.
  """
  free = np.flatnonzero(~walls)
  adjacent = np.zeros((walls.size, walls.size))
  adjacent[free[:, None], observations.neighbours(walls)[free]] = 1
  lengths = csgraph.shortest_path(adjacent, directed=False, unweighted=True)
  lengths[walls.ravel()] = lengths[:, walls.ravel()] = np.inf
  return np.where(np.isfinite(lengths), lengths, -1).astype(np.int32)


def paths(
    walls: np.ndarray, lengths: np.ndarray, max_length: int
) -> np.ndarray:
  """Returns one shortest path for every ordered pair of cells.

  [G^2 targets, G^2 starts, T] uint8: the cells of the path from its start. It
  stays at the target once there, or at its start if there is no path. T - 1 is
  `max_length`, at least the longest of the finite `lengths` (`distances`).

  Ties between moves go to the first of up, right, down, left. (The authors
  leave the choice to SciPy.)
  """
  nexts = observations.neighbours(walls)
  num_cells = walls.size
  targets, cells = np.indices((num_cells, num_cells))
  # Whether a move leads one step closer to the target, [targets, cells, moves].
  closer = lengths[targets[..., None], nexts[cells]] == (
      lengths[targets, cells][..., None] - 1
  )
  closer &= (lengths[targets, cells] > 0)[..., None]
  step = np.where(closer.any(-1), nexts[cells, closer.argmax(-1)], cells)
  path = np.empty((num_cells, num_cells, max_length + 1), np.uint8)
  for t in range(max_length + 1):
    path[..., t] = cells
    cells = step[targets, cells]
  return path
