"""sRAVEN: rules by hand, orders of features, splits, what a learner reads."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.studies.in_context import sraven
from modular_hyperteacher.tasks import base

_FIELDS = dict(num_features=2, num_values=8, ood_fraction=0.25)


def make(**overrides: object) -> base.TaskDistribution:
  return sraven.make(**{**_FIELDS, **overrides})  # type: ignore


def third(rule: int, a: int, b: int, num_values: int) -> set[int]:
  """Returns what may follow a and b in a row; 'distribute three' aside."""
  if rule <= 4:
    step = (0, 1, 2, -1, -2)[rule]
    return (
        {(b + step) % num_values} if (b - a - step) % num_values == 0 else set()
    )
  return {(a + b if rule == 5 else a - b) % num_values}


def follows(rule: int, rows: np.ndarray, num_values: int) -> bool:
  """Whether all three rows [3, 3] of a feature follow a rule."""
  if rule == 7:
    return len({*rows[0]}) == 3 and all({*row} == {*rows[0]} for row in rows)
  return all(
      int(c) in third(rule, int(a), int(b), num_values) for a, b, c in rows
  )


def draw(
    rules: tuple[int, ...], number: int, num_values: int = 8, **kwargs: bool
) -> np.ndarray:
  """Returns panels [instances, rows, columns, K]."""
  sample = jax.vmap(
      lambda key: sraven.draw_panels(
          key, jnp.array(rules), num_values, **kwargs
      )
  )
  return np.asarray(sample(jax.random.split(jax.random.key(3), number)))


@pytest.mark.parametrize('rule', range(8))
@pytest.mark.parametrize('num_values', [3, 8])
def test_features_follow_their_rules(rule: int, num_values: int) -> None:
  drawn = draw((rule,), 300, num_values)[..., 0]
  assert drawn.min() == 0 and drawn.max() == num_values - 1
  assert all(follows(rule, rows, num_values) for rows in drawn)
  if rule == 7:
    orders = {tuple(np.argsort(row)) for row in drawn.reshape(-1, 3)}
    assert len(orders) == 6
    return
  free = 2 if rule > 4 else 1  # Numbers that a row is drawn from.
  rows = {tuple(row[:free]) for row in drawn.reshape(-1, 3)}
  assert len(rows) == num_values**free
  # They are drawn anew for each row.
  assert (drawn[:, 0, 0] != drawn[:, 1, 0]).mean() > 0.5


def test_names_of_the_rules() -> None:
  assert len(sraven.RULES) == 8
  for step, name in zip(sraven.STEPS, sraven.RULES):
    assert name == 'constant' if step == 0 else name.endswith(f'{step:+d}')


def test_the_worked_example() -> None:
  rows = np.array([
      [(1, 3), (3, 4), (5, 7)],
      [(7, 6), (1, 5), (3, 3)],
      [(4, 0), (6, 2), (0, 2)],
  ])
  for feature, name in enumerate(['progression by +2', 'addition']):
    assert follows(sraven.RULES.index(name), rows[..., feature], 8)


def test_one_order_of_features_per_column() -> None:
  """Undoing it gives features that follow the rules; three orders occur."""
  rules = (2, 5, 7)
  orders = list(itertools.permutations(range(3)))
  found = set()
  for panels in draw(rules, 40):
    fitting = [
        chosen
        for chosen in itertools.product(orders, repeat=3)
        if all(
            follows(
                rule,
                np.stack([panels[:, c, chosen[c][i]] for c in range(3)], 1),
                8,
            )
            for i, rule in enumerate(rules)
        )
    ]
    assert fitting
    if len(fitting) == 1:
      found.add(fitting[0])
  assert len(found) > 20  # Of 216.
  assert any(len(set(chosen)) == 3 for chosen in found)


def test_unpermuted_features_follow_the_rules_in_order() -> None:
  rules = (1, 6)
  for panels in draw(rules, 50, is_permuted=False):
    assert all(follows(r, panels[..., i], 8) for i, r in enumerate(rules))


@pytest.mark.parametrize(
    'num_features, number, num_ood',
    [(2, 36, 9), (3, 120, 30), (4, 330, 82), (5, 792, 198)],
)
def test_splits(num_features: int, number: int, num_ood: int) -> None:
  world = make(num_features=num_features)
  everything = {
      tuple(sorted(rules))
      for rules in itertools.product(range(8), repeat=num_features)
  }
  held_out = []
  for seed in range(3):
    params = world.init(jax.random.key(seed))
    train, ood = ({tuple(map(int, r)) for r in part} for part in params)
    assert len(train) + len(ood) == number and len(ood) == num_ood
    assert not train & ood and train | ood == everything
    held_out.append(frozenset(ood))
    counts = {
        s: world.num_combinations(params, s) for s in world.evaluation_splits
    }
    seen = number - num_ood
    assert counts == {
        'valid': seen,
        'test': seen,
        'ood': num_ood,
        'valid_unpermuted': seen,
        'ood_unpermuted': num_ood,
    }
  assert len(set(held_out)) == 3


@pytest.mark.parametrize(
    'split', ['train', 'test', 'ood', 'valid_unpermuted', 'ood_unpermuted']
)
def test_a_split_draws_all_of_its_multisets_and_no_others(split: str) -> None:
  world = make()
  params = world.init(jax.random.key(0))
  keys = jax.random.split(jax.random.key(1), 1000)
  latents = jax.vmap(lambda key: world.sample_latent(params, key, split))(keys)
  assert latents.shape == (1000, 2, 8)
  np.testing.assert_array_equal(latents.sum(-1), 1)
  drawn = {tuple(map(int, row)) for row in latents.argmax(-1)}
  part = params.ood if split.startswith('ood') else params.train
  assert drawn == {tuple(map(int, row)) for row in part}


@pytest.mark.parametrize('split', ['train', 'ood', 'ood_unpermuted'])
def test_a_sequence_holds_eight_panels_and_no_answer(split: str) -> None:
  world = make(num_features=3)
  params = world.init(jax.random.key(0))
  latent = world.sample_latent(params, jax.random.key(1), split)
  key = jax.random.key(2)
  support, query = world.sample_examples(params, key, latent, split)
  panels = sraven.draw_panels(
      key, latent.argmax(-1), 8, not split.endswith('unpermuted')
  ).reshape(9, 3)
  assert support.inputs.shape == (24, 8) and query.inputs.shape == (3, 8)
  assert world.sequence_lengths == (24, 3)
  np.testing.assert_array_equal(
      support.inputs.argmax(-1).reshape(8, 3), panels[:8]
  )
  np.testing.assert_array_equal(support.inputs.sum(-1), 1)
  np.testing.assert_array_equal(support.targets, panels[:8].ravel())
  # Nothing that a learner reads depends on the last panel.
  np.testing.assert_array_equal(query.inputs, 0)
  np.testing.assert_array_equal(query.targets, panels[8])


@pytest.mark.parametrize('seed', range(5))
def test_training_has_every_rule(seed: int) -> None:
  world = make(num_features=2, ood_fraction=0.7)
  params = world.init(jax.random.key(seed))
  assert set(np.ravel(params.train)) == set(range(8))
  assert len(params.ood) == 25


def test_splits_without_a_rule_are_refused() -> None:
  world = make(num_features=1)
  with pytest.raises(errors.UserError, match='task.ood_fraction is 0.25; it'):
    world.init(jax.random.key(0))


@pytest.mark.parametrize(
    'field, value',
    [
        ('num_features', 0),
        ('num_features', 7),
        ('num_values', 4),
        ('ood_fraction', 0.0),
        ('ood_fraction', 1.0),
        ('ood_fraction', 0.01),
    ],
)
def test_impossible_fields_are_refused(field: str, value: float) -> None:
  with pytest.raises(errors.UserError, match=f'task.{field} is {value}'):
    make(**{field: value})
