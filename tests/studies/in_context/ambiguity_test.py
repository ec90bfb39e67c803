"""Ambiguous instances of sRAVEN, against loops and published shares."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.studies.in_context import ambiguity
from modular_hyperteacher.studies.in_context import sraven
from tests.helpers import slow
from tests.studies.in_context import sraven_test


def _draw(num_features: int, num_values: int, number: int) -> np.ndarray:
  multisets = sraven.list_multisets(num_features)
  rng = np.random.default_rng(1)
  rules = jnp.asarray(multisets[rng.integers(0, len(multisets), number)])
  sample = jax.jit(
      jax.vmap(lambda key, rule: sraven.draw_panels(key, rule, num_values))
  )
  return np.asarray(sample(jax.random.split(jax.random.key(0), number), rules))


def _allowed_answers(panels: np.ndarray, num_values: int) -> set:
  """Tries all answers, orders of features and rules."""
  num_features = panels.shape[-1]
  orders = list(itertools.permutations(range(num_features)))
  found = set()
  for answer in itertools.product(range(num_values), repeat=num_features):
    filled = panels.copy()
    filled[2, 2] = answer
    for second, third in itertools.product(orders, repeat=2):
      features = [
          filled[:, np.arange(3), [i, second[i], third[i]]]
          for i in range(num_features)
      ]
      if all(
          any(sraven_test.follows(rule, rows, num_values) for rule in range(8))
          for rows in features
      ):
        found.add(answer)
  return found


@pytest.mark.parametrize(
    'num_features, num_values', slow.mark([(1, 8), (2, 4), (2, 5)], [(2, 5)])
)
def test_the_search_finds_what_loops_find(
    num_features: int, num_values: int
) -> None:
  panels = _draw(num_features, num_values, 60)
  found = ambiguity.find(panels, num_values)
  for index, one in enumerate(panels):
    answers = _allowed_answers(one, num_values)
    truth = tuple(one[2, 2])
    assert truth in answers
    assert found.in_any_feature[index] == (len(answers) > 1)
    is_other = [all(x != y for x, y in zip(truth, a)) for a in answers]
    assert found.in_every_feature[index] == any(is_other)
    # The lenient check allows more.
    assert found.as_released[index] >= any(is_other)
  assert found.in_any_feature.any() and not found.in_any_feature.all()


def test_the_worked_example() -> None:
  rows = [[3, 4, 7], [1, 4, 5], [2, 5, 7]]
  panels = np.array(rows)[None, :, :, None]
  assert ambiguity.find(panels, 8).in_any_feature[0]
  assert _allowed_answers(panels[0], 8) == {(7,), (5,)}
  panels[0, 2, 1:] = [[4], [6]]
  assert not ambiguity.find(panels, 8).in_any_feature[0]


@pytest.mark.parametrize(
    'last, answer, is_ambiguous',
    [
        # Rows hold 1, 2 and 2. Allowed is the value that is shown least, or the
        # lowest: here 1, although 2 is missing.
        ((1, 2), 1, False),
        ((2, 1), 2, True),
        ((2, 2), 1, False),
        ((2, 2), 0, True),
        # 3 is not among the values.
        ((1, 3), 0, False),
    ],
)
def test_the_released_check_lets_values_repeat(
    last: tuple[int, int], answer: int, is_ambiguous: bool
) -> None:
  panels = np.array([[1, 2, 2], [2, 2, 1], [*last, answer]])[None, :, :, None]
  found = ambiguity.find(panels, 16)
  assert not found.in_every_feature[0]
  assert found.as_released[0] == is_ambiguous


@pytest.mark.parametrize(
    'num_values, published, error',
    slow.mark(
        [(4, 0.0642, 0.0038), (8, 0.0032, 0.0009), (16, 0.0005, 0.0003)],
        [(16, 0.0005, 0.0003)],
    ),
)
def test_shares_are_those_of_table_a2(
    num_values: int, published: float, error: float
) -> None:
  """Each from 4,096 instances; another answer in every feature.

  Values that repeat are frequent among four; without them it is 0.044.
  """
  number = 4096
  found = ambiguity.find(_draw(4, num_values, number), num_values)
  ours = math.sqrt(published * (1 - published) / number)
  bound = 3 * math.hypot(error, ours)
  assert abs(found.as_released.mean() - published) < bound
  strict = found.in_every_feature.mean()
  assert strict <= found.as_released.mean()
  assert num_values == 4 or abs(strict - published) < bound
