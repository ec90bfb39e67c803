"""Rank and connectedness of every family, as tabulated (Table A9)."""

import numpy as np
import pytest

from modular_hyperteacher.tasks.supports import families

_PROPERTIES = [  # Name, families, rank, connected.
    ('singles', 6, 6, False),
    ('ring', 6, 5, True),
    ('triangles', 6, 6, False),
    ('singles_triangles', 12, 6, False),
    ('halves', 2, 2, False),
    ('sliding_triples', 6, 4, True),
    ('all', 1, 1, True),
    ('singles_ring', 12, 6, True),
    ('singles_chained_triples', 9, 6, True),
    ('singles_six_triples', 12, 6, True),
    ('singles_all', 7, 6, True),
    ('halves_triangles', 8, 6, False),
    ('chained_triples', 3, 3, True),
    ('six_triples', 6, None, True),
    ('triangles_1_bridges', 7, None, True),
    ('singles_triangles_9_bridges', 21, 6, True),
]


@pytest.mark.parametrize('name, count, rank, connected', _PROPERTIES)
def test_properties(name: str, count: int, rank: int, connected: bool) -> None:
  masks = families.masks(families.FAMILIES[name])
  assert masks.shape == (count, 6)
  assert len(np.unique(masks, axis=0)) == count
  if rank is not None:
    assert np.linalg.matrix_rank(masks) == rank
  assert families.is_connected(masks) == connected
  assert families.is_compositional(masks)


def test_connectedness_by_search() -> None:
  """Against breadth-first search over families, one after another."""
  rng = np.random.default_rng(0)
  outcomes = set()
  for _ in range(200):
    masks = rng.random((rng.integers(1, 6), 6)) < 0.3
    masks = masks[masks.any(1)]
    if not len(masks):
      continue
    reached, queue = {0}, [0]
    while queue:
      here = queue.pop()
      for other in range(len(masks)):
        if other not in reached and (masks[here] & masks[other]).any():
          reached.add(other)
          queue.append(other)
    expected = len(reached) == len(masks)
    outcomes.add(expected)
    assert families.is_connected(masks) == expected
  assert outcomes == {True, False}


def test_masks_are_those_of_table_a9() -> None:
  """Drawn by hand: a row per family, a column per module."""
  ring = ['110000', '011000', '001100', '000110', '000011', '100001']
  triangles = ['110000', '011000', '101000', '000110', '000011', '000101']
  singles = ['100000', '010000', '001000', '000100', '000010', '000001']
  halves = ['111000', '000111']
  drawn = {
      'DC1': singles + ring,
      'DD1': singles + triangles,
      'CC1': ring,
      'CC2': ['111000', '001110', '100011'],
      'CD1': triangles,
      'CD2': singles,
      'CD3': halves + triangles,
  }
  for column, rows in drawn.items():
    name = families.TABLE_A9[column][1]
    masks = families.masks(families.FAMILIES[name])
    found = [''.join(str(int(entry)) for entry in mask) for mask in masks]
    assert sorted(found) == sorted(rows), column


def test_bridges_join_the_triangles() -> None:
  triangles = families.masks(families.FAMILIES['triangles'])
  most = families.masks(families.FAMILIES['triangles_9_bridges'])
  bridges = most[len(triangles) :]
  assert (bridges[:, :3].sum(1) == 1).all()
  assert (bridges[:, 3:].sum(1) == 1).all()
  assert len(np.unique(bridges, axis=0)) == 9


@pytest.mark.parametrize('pairs', [2, 4, 9])
def test_one_family_connects_as_many_pairs(pairs: int) -> None:
  name = f'singles_triangles_bridge_of_{pairs}_pairs'
  masks = families.masks(families.FAMILIES[name])
  assert len(masks) == 13 and families.is_connected(masks)
  bridge = masks[-1]
  assert bridge[:3].sum() * bridge[3:].sum() == pairs


def test_table_a9() -> None:
  connected = {
      column: families.is_connected(families.masks(families.FAMILIES[name]))
      for column, (_, name) in families.TABLE_A9.items()
  }
  assert connected == {
      'DC1': True,
      'DD1': False,
      'CC1': True,
      'CC2': True,
      'CD1': False,
      'CD2': False,
      'CD3': False,
  }
