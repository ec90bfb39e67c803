"""Mazes: what spec 6.1 says of them; paths against breadth-first search."""

import collections
from collections.abc import Iterator
import functools

import numpy as np
import pytest

from modular_hyperteacher.tasks.gridworlds import mazes

_SIDE = 11
# The authors' runs use these integers.
_INTEGERS = range(2020, 2029)


@functools.lru_cache
def _maze(integer: int) -> np.ndarray:
  return mazes.generate(_SIDE, integer)


def _neighbours(
    walls: np.ndarray, cell: tuple[int, int]
) -> Iterator[tuple[int, int]]:
  """Free cells next to a cell, in the order up, right, down, left."""
  row, column = cell
  for r, c in (
      (row - 1, column),
      (row, column + 1),
      (row + 1, column),
      (row, column - 1),
  ):
    if 0 <= r < _SIDE and 0 <= c < _SIDE and not walls[r, c]:
      yield r, c


def _breadth_first(
    walls: np.ndarray, start: tuple[int, int]
) -> dict[tuple[int, int], int]:
  """Returns cell -> distance from the start."""
  distance = {start: 0}
  queue = collections.deque([start])
  while queue:
    cell = queue.popleft()
    for other in _neighbours(walls, cell):
      if other not in distance:
        distance[other] = distance[cell] + 1
        queue.append(other)
  return distance


def _free(walls: np.ndarray) -> list[tuple[int, int]]:
  return list(zip(*map(np.ndarray.tolist, np.where(~walls))))


@pytest.mark.parametrize('integer', _INTEGERS)
def test_mazes_have_the_published_sizes_and_are_connected(integer: int) -> None:
  walls = _maze(integer)
  free = _free(walls)
  assert walls.shape == (_SIDE, _SIDE) and walls.dtype == bool
  assert 72 <= len(free) <= 75
  assert len(_breadth_first(walls, free[0])) == len(free)
  num_edges = sum(len(list(_neighbours(walls, cell))) for cell in free) / 2
  num_cycles = num_edges - len(free) + 1
  # Spec 6.1 gives 1 to 3 for the integers 2020 to 2025.
  assert integer > 2025 or 1 <= num_cycles <= 3


def test_an_integer_is_a_maze() -> None:
  np.testing.assert_array_equal(
      mazes.generate(_SIDE, 7), mazes.generate(_SIDE, 7)
  )
  assert (mazes.generate(_SIDE, 7) != mazes.generate(_SIDE, 8)).any()


@pytest.mark.parametrize('integer', [2020, 2024])
def test_distances_against_breadth_first_search(integer: int) -> None:
  walls = _maze(integer)
  expected = np.full((_SIDE**2, _SIDE**2), -1)
  for start in _free(walls):
    for (row, column), distance in _breadth_first(walls, start).items():
      expected[_SIDE * start[0] + start[1], _SIDE * row + column] = distance
  np.testing.assert_array_equal(mazes.distances(walls), expected)


@pytest.mark.parametrize('integer', [2020, 2024])
def test_paths_are_shortest_and_ties_go_to_the_first_move(integer: int) -> None:
  walls = _maze(integer)
  lengths = mazes.distances(walls)
  longest = int(lengths.max())
  paths = mazes.paths(walls, lengths, longest + 2)
  assert paths.shape == (_SIDE**2, _SIDE**2, longest + 3)
  num_ties = 0
  for target in _free(walls):
    distance = _breadth_first(walls, target)
    for start in _free(walls):
      path = paths[_number(target), _number(start)].tolist()
      assert path[distance[start] :] == [_number(target)] * (
          len(path) - distance[start]
      )
      cell = start
      for step in range(distance[start]):
        assert path[step] == _number(cell)
        nearer = [
            other
            for other in _neighbours(walls, cell)
            if distance[other] == distance[cell] - 1
        ]
        num_ties += len(nearer) > 1
        cell = nearer[0]
  assert num_ties > 0, 'no ties: cannot tell how they are broken'


def _number(cell: tuple[int, int]) -> int:
  return _SIDE * cell[0] + cell[1]


def test_where_there_is_no_path_it_stays() -> None:
  walls = np.zeros((3, 3), bool)
  walls[:, 1] = True
  lengths = mazes.distances(walls)
  assert lengths[0, 2] == -1 and lengths[0, 1] == -1 and lengths[0, 6] == 2
  paths = mazes.paths(walls, lengths, 4)
  assert paths[2, 0].tolist() == [0] * 5
  assert paths[0, 6].tolist() == [6, 3, 0, 0, 0]
