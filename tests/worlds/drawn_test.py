"""Every machine draws the same tasks: hashes of drawn arrays."""

import hashlib

import numpy as np
import pytest

from modular_hyperteacher import worlds
from tests.helpers import slow

_UNIT = 1e-3
_NUM_ROUNDED = 32
# World, split, seed of the tasks -> hash. Those of 'test' and 'ood' hold what
# is drawn for evaluation, 'train' what a learner sees.
_HASHES = {
    ('hyperteacher', 'train', 0): 'b7c09dd8fdc16496',
    ('hyperteacher', 'ood', 0): 'cba8c0b810479f05',
    ('teacher_student', 'train', 1): '818c5d1bb85fa51d',
    ('teacher_student', 'ood', 3): '94a22bb276732d8e',
    ('preferences', 'train', 0): 'dc91948459e5586a',
    ('preferences', 'ood', 0): 'dd78bf019111ad08',
    ('goals', 'train', 0): '3748f03ee7c6a464',
    ('goals', 'ood', 0): 'c1c8f22c3839eaac',
    ('modular_regression', 'train', 1): '479bf7576129880e',
    ('modular_regression', 'ood', 0): '530d61c706d7b3c8',
    ('fuzzy_logic', 'train', 1): 'a07512ed6b0750f9',
    ('fuzzy_logic', 'ood', 0): '88247d495ac57f12',
    ('sraven', 'train', 1): '3986626d06701836',
    ('sraven', 'ood', 0): '564ca6e359462e4c',
    ('graded_hyperteacher', 'train', 1): '2d193016b4f7f5ce',
    ('graded_hyperteacher', 'ood', 0): '5dddabf499152525',
    # Equal to the teacher-student's: here, all families have one weight.
    ('weighted_families', 'train', 1): '818c5d1bb85fa51d',
    ('weighted_families', 'ood', 3): '94a22bb276732d8e',
    ('mutual_exclusivity', 'train', 0): 'c459f37e423d83e3',
    ('mutual_exclusivity', 'ood', 0): '5b01966b96fd12f0',
    ('scan', 'train', 0): '59009c232b2b09cd',
    ('scan', 'ood', 0): 'c5cb578b84581518',
}


def _digest(tasks: worlds.Tasks, computed_inputs: bool) -> str:
  """Returns a hash that rounding errors of a processor do not change.

  Inputs and masks follow from random bits without rounding, or by one correctly
  rounded product, so every bit counts. Latents and targets are computed, and
  machines differ in their last digits: of these, the first values of each array
  count, to three decimals, and none may be near where rounding turns. So do
  computed inputs: those of modular regression are scaled and shifted.
  """
  digest = hashlib.sha256()
  for name, array in tasks._asdict().items():
    digest.update(f'{name} {array.dtype} {array.shape}\n'.encode())
    if array.dtype.kind == 'f' and (computed_inputs or 'inputs' not in name):
      scaled = array.ravel()[:_NUM_ROUNDED].astype(float) / _UNIT
      nearest = np.round(scaled)
      assert (np.abs(np.abs(scaled - nearest) - 0.5) > 0.005).all(), name
      array = nearest.astype(np.int64)
    digest.update(np.ascontiguousarray(array).tobytes())
  return digest.hexdigest()[:16]


def _draw(name: str, split: str, seed: int) -> worlds.Tasks:
  world = worlds.make(name, preset='smoke')
  fixed = split in world.fixed_sizes
  return world.sample(split, None if fixed else 3, seed)


@pytest.mark.parametrize(
    'name, split, seed', slow.mark(_HASHES, list(_HASHES)[1::2])
)
def test_hashes_of_drawn_arrays(name: str, split: str, seed: int) -> None:
  drawn = _draw(name, split, seed)
  digest = _digest(drawn, name == 'modular_regression')
  assert digest == _HASHES[name, split, seed]


def test_every_world_has_hashes() -> None:
  assert {name for name, _, _ in _HASHES} == set(worlds.list())
