"""Supports that share eigenvalues, or share families."""

import numpy as np
import pytest

from modular_hyperteacher.studies.learning_dynamics import supports
from modular_hyperteacher.tasks.supports import families


@pytest.mark.parametrize('kind', supports.COSPECTRAL)
def test_pairs_differ_in_connectivity_alone(kind: str) -> None:
  connected, disconnected = supports.COSPECTRAL[kind]
  moments = [supports.moment(kind, n) for n in (connected, disconnected)]
  values = [np.linalg.eigvalsh(moment) for moment in moments]
  np.testing.assert_allclose(*values, rtol=1e-12)
  assert np.ptp(values[0]) > 0.1
  for moment in moments:
    np.testing.assert_allclose(np.diag(moment), moment[0, 0])
  assert supports.is_connected(connected)
  assert not supports.is_connected(disconnected)
  counts = [len(supports.masks(n)) for n in (connected, disconnected)]
  assert counts[0] == counts[1]


def test_weights_vary_the_smallest_eigenvalue_of_the_same_families() -> None:
  names = ('singles_3_ring', 'singles_ring', 'singles_ring_3', 'singles_ring_7')
  distinct = [np.unique(supports.masks(name), axis=0) for name in names]
  for masks in distinct[1:]:
    np.testing.assert_array_equal(masks, distinct[0])
  smallest = [supports.smallest_eigenvalue('discrete', name) for name in names]
  # A ring alone has the eigenvalue zero, singles alone 1/6.
  expected = np.array([3 / 4, 1 / 2, 1 / 4, 1 / 8]) / 6
  np.testing.assert_allclose(smallest, expected)


def test_runs_are_distinct_and_compositional() -> None:
  assert len(set(supports.RUNS)) == len(supports.RUNS)
  assert set(families.TABLE_A9.values()) < set(supports.RUNS)
  for kind, name in supports.RUNS:
    assert families.is_compositional(supports.masks(name))
    assert supports.smallest_eigenvalue(kind, name) > 0


def test_families_have_splits_of_their_own() -> None:
  masks = np.unique(supports.masks('chained_triples'), axis=0)
  names = {supports.family_split(mask) for mask in masks}
  assert names == {'ood_family_012', 'ood_family_234', 'ood_family_045'}
