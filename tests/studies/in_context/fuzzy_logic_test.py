"""Fuzzy logic: functions, splits, what a query's target reaches."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.studies.in_context import fuzzy_logic
from modular_hyperteacher.tasks import base

_FIELDS = dict(
    num_variables=4,
    num_active=2,
    ood_fraction=0.7,
    num_support=31,
    num_query=1,
)


def make(**overrides: object) -> base.TaskDistribution:
  return fuzzy_logic.make(**{**_FIELDS, **overrides})  # type: ignore


def _sets(masks: jax.Array) -> set[tuple[int, ...]]:
  return {tuple(map(int, np.flatnonzero(mask))) for mask in masks}


def _written_out(terms: tuple[int, ...], x: np.ndarray) -> float:
  """Returns a function's value, with terms as binary numbers."""
  conjunctions = []
  for term in terms:
    plain = format(term, f'0{len(x)}b')
    literals = [v if bit == '1' else 1 - v for bit, v in zip(plain, x)]
    conjunctions.append(min(literals))
  return max(conjunctions)


def test_functions_written_out() -> None:
  world = make()
  params = world.init(jax.random.key(0))
  for seed, split in enumerate(('train', *world.evaluation_splits)):
    task = world.sample(params, jax.random.key(seed), split)
    (terms,) = _sets(task.latent)
    assert len(terms) == 2
    for batch, number in ((task.support, 31), (task.query, 1)):
      assert batch.inputs.shape == (number, 4)
      assert ((batch.inputs >= 0) & (batch.inputs < 1)).all()
      expected = [_written_out(terms, x) for x in np.asarray(batch.inputs)]
      np.testing.assert_allclose(batch.targets[:, 0], expected, rtol=1e-6)


def test_boolean_inputs_give_the_truth_table() -> None:
  """A term is true for the inputs that spell it, and for no others."""
  corners = np.array(list(itertools.product((0.0, 1.0), repeat=4)))
  for terms in itertools.combinations(range(16), 2):
    latent = jnp.zeros(16).at[jnp.array(terms)].set(1)
    found = fuzzy_logic.respond(latent, jnp.asarray(corners))[:, 0]
    assert tuple(np.flatnonzero(found)) == terms
    assert set(np.asarray(found)) == {0.0, 1.0}


def test_a_target_is_the_value_of_a_literal() -> None:
  """Minima and maxima choose among x and 1 - x; they make no new values."""
  inputs = jax.random.uniform(jax.random.key(0), (200, 4))
  literals = jnp.concatenate([inputs, 1 - inputs], 1)
  for seed in range(5):
    terms = jax.random.permutation(jax.random.key(seed), 16)[:2]
    latent = jnp.zeros(16).at[terms].set(1)
    targets = fuzzy_logic.respond(latent, inputs)
    assert (jnp.abs(targets - literals).min(1) == 0).all()


def test_the_worked_example() -> None:
  xor = jnp.array([0.0, 1.0, 1.0, 0.0])
  found = fuzzy_logic.respond(xor, jnp.array([[0.2, 0.7]]))
  assert found.item() == pytest.approx(0.7)


@pytest.mark.parametrize(
    'ood_fraction, num_train, num_ood',
    [(0.3, 47, 19), (0.5, 33, 33), (0.7, 20, 46)],
)
def test_splits(ood_fraction: float, num_train: int, num_ood: int) -> None:
  """They are a partition, and training shows every known term."""
  world = make(ood_fraction=ood_fraction)
  pairs = set(itertools.combinations(range(12), 2))
  seen = []
  for seed in range(12):  # At 0.7 a term is missing in one draw of seven.
    params = world.init(jax.random.key(seed))
    train, ood = _sets(params.train), _sets(params.ood)
    assert (len(train), len(ood)) == (num_train, num_ood)
    assert not train & ood and train | ood == pairs
    assert set(itertools.chain(*train)) == set(range(12))
    seen.append(frozenset(ood))
  assert len(set(seen)) == 12
  counts = {
      split: world.num_combinations(params, split)
      for split in world.evaluation_splits
  }
  assert counts == {
      'valid': num_train,
      'test': num_train,
      'ood': num_ood,
      'ood_unknown_terms': 6,
      'valid_fixed_context': num_train,
      'ood_fixed_context': num_ood,
  }


def test_fixed_contexts_have_the_same_inputs() -> None:
  """For all functions; queries and functions differ as in other splits."""
  world = make()
  params = world.init(jax.random.key(0))
  keys = jax.random.split(jax.random.key(1), 50)
  for split, source in fuzzy_logic.FIXED_CONTEXT.items():
    drawn = jax.vmap(lambda key, s=split: world.sample(params, key, s))(keys)
    contexts = np.asarray(drawn.support.inputs)
    assert (contexts == contexts[0]).all()
    assert len(np.unique(drawn.query.inputs, axis=0)) == 50
    functions = _sets(drawn.latent[:, 0])
    assert len(functions) > 10
    masks = params.ood if source == 'ood' else params.train
    assert functions <= _sets(masks)
    targets = [
        fuzzy_logic.respond(latent[0], contexts[0]) for latent in drawn.latent
    ]
    np.testing.assert_array_equal(drawn.support.targets, targets)
  other = world.init(jax.random.key(1))
  assert not np.array_equal(params.context, other.context)


@pytest.mark.parametrize(
    'split',
    [
        'train',
        'test',
        'ood',
        'ood_unknown_terms',
        'valid_fixed_context',
        'ood_fixed_context',
    ],
)
def test_a_split_draws_all_of_its_combinations_and_no_others(
    split: str,
) -> None:
  world = make()
  params = world.init(jax.random.key(0))
  keys = jax.random.split(jax.random.key(1), 2000)
  latents = jax.vmap(lambda key: world.sample_latent(params, key, split))(keys)
  expected = {
      'ood': _sets(params.ood),
      'ood_fixed_context': _sets(params.ood),
      'ood_unknown_terms': set(itertools.combinations(range(12, 16), 2)),
  }.get(split, _sets(params.train))
  assert _sets(latents[:, 0]) == expected


@pytest.mark.parametrize(
    'field, value',
    [
        ('num_variables', 2),
        ('num_active', 1),
        ('num_active', 5),
        ('ood_fraction', 0.0),
        ('ood_fraction', 0.9),
        ('num_support', 0),
    ],
)
def test_impossible_fields_are_refused(field: str, value: float) -> None:
  with pytest.raises(errors.UserError, match=f'task.{field} is {value}'):
    make(**{field: value})
