"""What the hyperteacher's tasks promise, and what it refuses."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from tests.helpers import small_hyperteacher


def test_latents_are_masks_of_their_split() -> None:
  world = small_hyperteacher.make(num_modules=8)
  params = small_hyperteacher.init(world)
  keys = jax.random.split(jax.random.key(0), 200)
  for split in ('train', 'ood', 'ood_k4'):
    draw = lambda key, split=split: world.sample_latent(params, key, split)
    latents = np.asarray(jax.vmap(draw)(keys))
    assert latents.dtype == np.float32
    assert latents.shape == (200, 2, 8)
    assert set(np.unique(latents)) == {0, 1}
    num_active = latents.sum(-1)
    if split == 'ood_k4':
      assert (num_active == 4).all()
    else:
      assert set(np.unique(num_active)) == {1, 2}


def test_a_split_decides_the_latent_only() -> None:
  world = small_hyperteacher.make()
  params, latent = small_hyperteacher.init(world), jnp.array(
      [[1.0, 0, 0, 0], [0, 1, 1, 0]]
  )
  key = jax.random.key(0)
  batches = [
      world.sample_examples(params, key, latent, split)
      for split in ('train', 'ood_k4')
  ]
  jax.tree.map(np.testing.assert_array_equal, *batches)


@pytest.mark.parametrize('num_hidden, num_layers', [(1, 1), (2, 1), (3, 2)])
def test_shapes(num_hidden: int, num_layers: int) -> None:
  world = small_hyperteacher.make(teacher_num_hidden=num_hidden)
  assert (world.input_dim, world.output_dim, world.num_modules) == (
      small_hyperteacher.X,
      small_hyperteacher.Y,
      4,
  )
  task = small_hyperteacher.sample(world)(
      small_hyperteacher.init(world), jax.random.key(0)
  )
  assert task.latent.shape == (num_layers, 4)
  for batch, count in ((task.support, 12), (task.query, 8)):
    assert batch.inputs.shape == (count, small_hyperteacher.X)
    assert batch.targets.shape == (count, small_hyperteacher.Y)
    np.testing.assert_array_equal(batch.mask, np.ones(count))
  params = small_hyperteacher.init(world)
  fan_in = small_hyperteacher.X if num_hidden == 1 else small_hyperteacher.H
  assert params.generator.shape == (
      num_layers * 4,
      num_layers * fan_in * small_hyperteacher.H,
  )
  assert params.output_weights.shape == (
      small_hyperteacher.H,
      small_hyperteacher.Y,
  )
  assert params.standardisation_inputs.shape == (50, small_hyperteacher.X)
  input_shape = (
      (0, 0)
      if num_hidden == 1
      else (small_hyperteacher.X, small_hyperteacher.H)
  )
  assert params.input_weights.shape == input_shape


def test_inputs_are_uniform_on_the_cube() -> None:
  world = small_hyperteacher.make(num_support=3000, num_query=2000)
  params = small_hyperteacher.init(world)
  task = small_hyperteacher.sample(world)(params, jax.random.key(0))
  for inputs in (task.support.inputs, task.query.inputs):
    inputs = np.asarray(inputs)
    assert inputs.min() >= -1 and inputs.max() <= 1
    assert inputs.min() < -0.99 and inputs.max() > 0.99
    counts = np.stack(
        [np.histogram(x, bins=8, range=(-1, 1))[0] for x in inputs.T]
    )
    probability = 1 / 8
    sigma = math.sqrt(len(inputs) * probability * (1 - probability))
    assert np.abs(counts - len(inputs) * probability).max() < 5 * sigma
  # Input features are drawn independently.
  correlation = np.corrcoef(np.asarray(task.support.inputs).T)
  assert np.abs(
      correlation - np.eye(small_hyperteacher.X)
  ).max() < 5 / math.sqrt(3000)


def test_support_query_and_standardisation_inputs_are_different_draws() -> None:
  world = small_hyperteacher.make(num_support=30, num_query=30)
  params = small_hyperteacher.init(world)
  inputs = [np.asarray(params.standardisation_inputs)]
  for seed in range(3):
    task = small_hyperteacher.sample(world)(params, jax.random.key(seed))
    inputs += [np.asarray(task.support.inputs), np.asarray(task.query.inputs)]
  rows = np.concatenate(inputs)
  assert len(np.unique(rows[:, 0])) == len(rows)


def test_same_key_same_task_other_key_other_task() -> None:
  world = small_hyperteacher.make()
  sample = small_hyperteacher.sample(world)
  one = sample(small_hyperteacher.init(world), jax.random.key(3))
  two = sample(small_hyperteacher.init(world), jax.random.key(3))
  jax.tree.map(np.testing.assert_array_equal, one, two)
  other = sample(small_hyperteacher.init(world), jax.random.key(4))
  assert (one.support.inputs != other.support.inputs).all()
  assert (one.query.inputs != other.query.inputs).all()
  latents = {
      np.asarray(
          sample(small_hyperteacher.init(world), jax.random.key(seed)).latent
      ).tobytes()
      for seed in range(30)
  }
  assert len(latents) > 15


def test_latent_and_inputs_are_independent() -> None:
  """The inputs of a task do not depend on its latent."""
  world = small_hyperteacher.make()
  params = small_hyperteacher.init(world)
  key = jax.random.key(0)
  one, _ = small_hyperteacher.examples(world)(params, key, jnp.eye(4)[:2])
  two, _ = small_hyperteacher.examples(world)(params, key, jnp.eye(4)[2:])
  np.testing.assert_array_equal(one.inputs, two.inputs)
  assert (np.abs(one.targets - two.targets) > 1e-3).mean() > 0.5


def test_all_tasks_share_the_standardisation_inputs() -> None:
  """They are parameters of the world, and the targets depend on them alone."""
  world = small_hyperteacher.make()
  params = small_hyperteacher.init(world)
  task = small_hyperteacher.sample(world)(params, jax.random.key(0))
  # A task asked for alone or among others: the same statistics.
  latents = jnp.stack([task.latent, jnp.eye(4)[:2], jnp.ones((2, 4))])
  keys = jax.random.split(jax.random.key(1), 3)
  together = jax.jit(
      jax.vmap(
          lambda key, latent: world.sample_examples(
              params, key, latent, 'train'
          )
      )
  )(keys, latents)
  for i in range(3):
    alone = small_hyperteacher.examples(world)(params, keys[i], latents[i])
    jax.tree.map(
        lambda a, b, i=i: np.testing.assert_allclose(a[i], b, atol=1e-5),
        together,
        alone,
    )
  other = params._replace(
      standardisation_inputs=small_hyperteacher.init(
          world, 1
      ).standardisation_inputs
  )
  changed = small_hyperteacher.targets(world, other, task.latent)
  assert (
      np.abs(
          changed - small_hyperteacher.targets(world, params, task.latent)
      ).max()
      > 1e-3
  )


def test_worlds_of_seeds() -> None:
  """Same key, same world; other key, another one of the same shapes."""
  world = small_hyperteacher.make()
  jax.tree.map(
      np.testing.assert_array_equal,
      world.init(jax.random.key(0)),
      world.init(jax.random.key(0)),
  )
  one, two = small_hyperteacher.init(world, 0), small_hyperteacher.init(
      world, 1
  )
  assert jax.tree.map(jnp.shape, one) == jax.tree.map(jnp.shape, two)
  for name in ('input_weights', 'generator', 'output_weights'):
    assert (getattr(one, name) != getattr(two, name)).all(), name
  assert (one.standardisation_inputs != two.standardisation_inputs).all()
  assert (one.split.round_keys != two.split.round_keys).all()


def test_teacher_does_not_depend_on_the_support_or_the_number_of_inputs() -> (
    None
):
  """Streams are separate, so that conditions compare the same teacher."""
  one = small_hyperteacher.init(small_hyperteacher.make(num_modules=8))
  two = small_hyperteacher.init(
      small_hyperteacher.make(
          num_modules=8, task_support='connected', num_standardisation=7
      )
  )
  for name in ('input_weights', 'generator', 'output_weights'):
    np.testing.assert_array_equal(getattr(one, name), getattr(two, name), name)


def test_weights_are_truncated_standard_normal() -> None:
  """Spec 4.1: scale 1, cut at two, no correction; deviation 0.8796."""
  world = small_hyperteacher.make(
      input_dim=64, teacher_hidden_dim=64, output_dim=64, num_modules=6
  )
  params = small_hyperteacher.init(world)
  for name in ('input_weights', 'generator', 'output_weights'):
    weights = np.asarray(getattr(params, name))
    assert np.abs(weights).max() <= 2
    assert np.abs(weights).max() > 1.95
    error = 5 / math.sqrt(weights.size)
    assert abs(weights.mean()) < error
    assert abs(weights.std() - 0.8796) < error


@pytest.mark.parametrize(
    'field',
    [
        'input_dim',
        'output_dim',
        'teacher_hidden_dim',
        'teacher_num_hidden',
        'num_support',
        'num_query',
        'temperature',
        'num_standardisation',
    ],
)
@pytest.mark.parametrize('value', [0, -2])
def test_sizes_must_be_positive(field: str, value: Any) -> None:
  with pytest.raises(ValueError, match=f'task.{field} is {value}; .*positive'):
    small_hyperteacher.make(**{field: value})


@pytest.mark.parametrize(
    'fields, message',
    [
        ({'task_support': 'conected'}, "task.task_support is 'conected'"),
        ({'num_modules': 0}, 'task.num_modules is 0'),
        ({'max_active': 5}, 'task.max_active is 5'),
        (
            {'task_support': 'random', 'fraction_ood': 1.0},
            'task.fraction_ood is 1.0',
        ),
    ],
)
def test_impossible_splits_are_refused(
    fields: dict[str, Any], message: str
) -> None:
  with pytest.raises(ValueError, match=message):
    small_hyperteacher.make(**fields)


@pytest.mark.parametrize(
    'num_modules, ks',
    [
        (4, [1, 2, 4]),
        (6, [1, 2, 4]),
        (8, [1, 2, 4, 8]),
        (12, [1, 2, 4, 8]),
        (16, [1, 2, 4, 8, 16]),
    ],
)
def test_evaluation_splits(num_modules: int, ks: list[int]) -> None:
  """Spec 2.6: OOD(K=k) for the powers of two up to M."""
  world = small_hyperteacher.make(num_modules=num_modules)
  expected = ('valid', 'test', 'ood') + tuple(f'ood_k{k}' for k in ks)
  assert world.evaluation_splits == expected


def test_numbers_of_combinations() -> None:
  """Spec 2.5; above K, all pairs of masks with k ones."""
  world = small_hyperteacher.make(task_support='connected', num_modules=8)
  params = small_hyperteacher.init(world)
  sizes = {
      split: world.num_combinations(params, split)
      for split in ('train',) + world.evaluation_splits
  }
  assert sizes == {
      'train': 576,
      'valid': 576,
      'test': 576,
      'ood': 698,
      'ood_k1': 0,
      'ood_k2': 506,
      'ood_k4': 4900,
      'ood_k8': 1,
  }


@pytest.mark.parametrize('num_hidden, num_layers', [(1, 1), (2, 1), (3, 2)])
def test_number_of_layers(num_hidden: int, num_layers: int) -> None:
  """Spec 2.5: all hidden layers but the first; the input layer if one."""
  world = small_hyperteacher.make(teacher_num_hidden=num_hidden)
  params = small_hyperteacher.init(world)
  # M = 4, K = 2: ten masks per layer, four of them with the last module.
  num_others = 10 ** (num_layers - 1)
  assert world.num_combinations(params, 'train') == 6 * num_others
  assert world.num_combinations(params, 'ood') == 4 * num_others


# In some seeds, training uses the only combination of both modules.
_TWO_MODULES: dict[str, Any] = dict(
    num_modules=2,
    max_active=2,
    fraction_ood=0.34,
    task_support='random',
    teacher_num_hidden=2,
)


def test_an_empty_split_is_repeated_if_asked() -> None:
  """That is, the one combination of all modules, if trained on."""
  counts = []
  for repeat_empty in (False, True):
    world = small_hyperteacher.make(**_TWO_MODULES, repeat_empty=repeat_empty)
    for seed in range(8):
      params = world.init(jax.random.key(seed))
      counts.append(world.num_combinations(params, 'ood_k2'))
      latent = world.sample_latent(params, jax.random.key(1), 'ood_k2')
      assert latent.sum() == 2
  assert 0 in counts[:8] and set(counts[8:]) == {1}


def test_one_ood_combination_is_repeated_if_asked() -> None:
  """As in the released code, where a split is empty, and only there."""
  usual = small_hyperteacher.make(**_TWO_MODULES)
  world = small_hyperteacher.make(**_TWO_MODULES, repeat_ood=True)
  keys = jax.random.split(jax.random.key(1), 64)

  def draw(world: Any, params: Any, split: str) -> np.ndarray:
    sample = functools.partial(world.sample_latent, params, split=split)
    return np.asarray(jax.vmap(lambda key: sample(key=key))(keys))

  were_empty = []
  for seed in range(8):
    params = world.init(jax.random.key(seed))
    drawn = draw(world, params, 'ood_k2')
    were_empty.append(usual.num_combinations(params, 'ood_k2') == 0)
    assert world.num_combinations(params, 'ood_k2') == 1
    if were_empty[-1]:
      (one,) = np.unique(drawn, axis=0)
      held_out = draw(usual, params, 'ood')
      assert (held_out == one).all(axis=tuple(range(1, held_out.ndim))).any()
    else:
      np.testing.assert_array_equal(drawn, draw(usual, params, 'ood_k2'))
  assert 0 < sum(were_empty) < 8
  with pytest.raises(errors.UserError, match='with task.repeat_empty it must'):
    small_hyperteacher.make(**_TWO_MODULES, repeat_empty=True, repeat_ood=True)


def test_where_no_combination_could_be_repeated_it_is_refused() -> None:
  sizes = dict(num_modules=6, max_active=2, task_support='connected')
  message = (
      "repeat_empty is True; with task.task_support 'connected' it must be"
  )
  with pytest.raises(errors.UserError, match=message):
    small_hyperteacher.make(**sizes, repeat_empty=True)
