"""Splits of task supports: published sizes, and errors.

Numbers cite the paper's appendix or the section of the specification that
they were recomputed in.
"""

from typing import Any

import pytest

from tests.helpers import small_supports

# Sizes.

# Spec 2.5, G = 2, a quarter held out: (M, K, |T|, OOD).
_TWO_LAYERS = [
    (4, 1, 16, 4),
    (4, 2, 100, 25),
    (4, 3, 196, 49),
    (4, 4, 225, 56),
    (6, 1, 36, 9),
    (6, 2, 441, 110),
    (6, 3, 1681, 420),
    (6, 4, 3136, 784),
    (6, 6, 3969, 992),
    (8, 1, 64, 16),
    (8, 2, 1296, 324),
    (8, 3, 8464, 2116),
    (8, 4, 26244, 6561),
    (8, 6, 60516, 15129),
    (8, 8, 65025, 16256),
    (10, 2, 3025, 756),
    (10, 3, 30625, 7656),
    (10, 4, 148225, 37056),
    (12, 2, 6084, 1521),
    (12, 3, 88804, 22201),
    (12, 4, 628849, 157212),
    (14, 2, 11025, 2756),
    (14, 3, 219961, 54990),
    (14, 4, 2160900, 540225),
    (16, 1, 256, 64),
    (16, 2, 18496, 4624),
    (16, 3, 484416, 121104),
    (16, 4, 6330256, 1582564),
]


@pytest.mark.parametrize('num_modules, max_active, total, num_ood', _TWO_LAYERS)
def test_sizes_of_random_support_with_two_layers(
    num_modules: int, max_active: int, total: int, num_ood: int
) -> None:
  task_support = small_supports.make(
      num_modules=num_modules, max_active=max_active
  )
  sizes = small_supports.sizes(task_support, 'train', 'valid', 'test', 'ood')
  num_train = total - num_ood
  assert sizes == (num_train, num_train, num_train, num_ood)


@pytest.mark.parametrize(
    'task_support, max_active, num_layers, num_train, num_ood',
    [
        # Spec 2.4: one mask (preferences), M = 8.
        ('random', 3, 1, 69, 23),
        ('non_compositional', 3, 1, 63, 29),
        ('connected', 2, 1, 24, 10),
        ('disconnected', 2, 1, 20, 10),
        # Spec 2.5: two generated layers (hyperteacher), M = 8.
        ('non_compositional', 2, 2, 1008, 288),
        ('connected', 2, 2, 576, 698),
        ('disconnected', 2, 2, 104, 698),
    ],
)
def test_sizes_with_eight_modules(
    task_support: str,
    max_active: int,
    num_layers: int,
    num_train: int,
    num_ood: int,
) -> None:
  made = small_supports.make(task_support, 8, max_active, num_layers)
  assert small_supports.sizes(made, 'train', 'ood') == (num_train, num_ood)
  # The same numbers of different combinations are drawn; none is in both.
  params = small_supports.init(made)
  train, train_codes = small_supports.members(made, params, 'train')
  ood, ood_codes = small_supports.members(made, params, 'ood')
  assert not train_codes & ood_codes
  every = set(
      small_supports.codes(
          small_supports.every(8, max_active, num_layers)
      ).tolist()
  )
  assert train_codes | ood_codes <= every
  if task_support in ('random', 'non_compositional'):
    assert train_codes | ood_codes == every
  # Only non-compositional support never sees a module of a layer.
  num_unseen = 1 if task_support == 'non_compositional' else 0
  assert train.any(0).sum() == num_layers * 8 - num_unseen
  assert len(ood) == num_ood


@pytest.mark.parametrize(
    'fraction_ood, num_ood',
    [(0.1, 129), (0.3, 388), (0.5, 648), (0.7, 907), (0.9, 1166)],
)
def test_sizes_of_figure_a5(fraction_ood: float, num_ood: int) -> None:
  """M = 8, K = 2: the floor of the fraction of 1296."""
  made = small_supports.make(num_modules=8, fraction_ood=fraction_ood)
  assert small_supports.sizes(made, 'train', 'ood') == (1296 - num_ood, num_ood)


# Errors.


@pytest.mark.parametrize(
    'fields, expected',
    [
        (
            {'task_support': 'conected'},
            [
                "task.task_support is 'conected'",
                'random, non_compositional, connected, disconnected',
            ],
        ),
        ({'num_modules': 0}, ['task.num_modules is 0', 'positive']),
        ({'num_modules': -3}, ['task.num_modules is -3', 'positive']),
        (
            {'max_active': 5},
            ['task.max_active is 5', 'between 1 and task.num_modules', '4'],
        ),
        ({'max_active': 0}, ['task.max_active is 0', 'between 1 and']),
        (
            {'fraction_ood': 0.0099},
            ['task.fraction_ood is 0.0099', 'at least 1/100', 'below 1'],
        ),
        ({'fraction_ood': 1.0}, ['task.fraction_ood is 1.0', 'below 1']),
        ({'fraction_ood': 0.0}, ['task.fraction_ood is 0.0', 'at least 1/100']),
        ({'fraction_ood': -0.5}, ['task.fraction_ood is -0.5', 'at least']),
        ({'fraction_ood': 1.5}, ['task.fraction_ood is 1.5', 'below 1']),
        (
            {'num_modules': 16, 'max_active': 16},
            ['task.max_active is 16', '16 modules', '4294836225', '2147483647'],
        ),
        (
            {'num_modules': 32, 'max_active': 16},
            ['task.num_modules is 32', '10518300', '8 active', '4194304'],
        ),
        (
            {
                'task_support': 'non_compositional',
                'num_modules': 1,
                'max_active': 1,
            },
            ['task.num_modules is 1', 'non_compositional', 'at least 2'],
        ),
        (
            {'task_support': 'connected', 'num_modules': 8, 'max_active': 3},
            ['task.max_active is 3', 'connected support', '2 only'],
        ),
        (
            {
                'task_support': 'disconnected',
                'num_modules': 8,
                'max_active': 1,
            },
            ['task.max_active is 1', 'disconnected support', '2 only'],
        ),
        (
            {
                'task_support': 'connected',
                'num_modules': 8,
                'num_layers': 5,
            },
            ['task.num_modules is 8', 'at most 2097152', 'are 60466176'],
        ),
        (
            {'task_support': 'connected', 'num_modules': 7},
            ['task.num_modules is 7', 'connected support', 'even', 'above 4'],
        ),
        (
            {'task_support': 'disconnected', 'num_modules': 4},
            ['task.num_modules is 4', 'disconnected support', 'above 4'],
        ),
    ],
    ids=lambda value: None,
)
def test_errors_name_the_field_and_the_value(
    fields: dict[str, Any], expected: list[str]
) -> None:
  with pytest.raises(ValueError) as error:
    small_supports.make(**fields)
  for part in expected:
    assert part in str(error.value)


def test_the_smallest_fraction_holds_out_one_combination() -> None:
  """The limit that the message names."""
  assert small_supports.sizes(
      small_supports.make(fraction_ood=0.01), 'train', 'ood'
  ) == (99, 1)
