"""The hyperteacher against a NumPy twin, and what tasks promise."""

import functools
import math

import hypothesis
from hypothesis import strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.tasks import hyperteacher

_X, _H, _Y = 5, 6, 4


@functools.lru_cache
def _make(**overrides):
  fields = dict(
      num_modules=4,
      max_active=2,
      # Faster to compile than random support.
      task_support='non_compositional',
      fraction_ood=0.25,
      input_dim=_X,
      output_dim=_Y,
      teacher_hidden_dim=_H,
      teacher_num_hidden=3,
      num_support=12,
      num_query=8,
      temperature=0.3,
      num_standardisation=50,
  )
  return hyperteacher.make(**(fields | overrides))


@functools.lru_cache
def _params(world, seed=0):
  return world.init(jax.random.key(seed))


def _sample(world):
  # Not compiled: the operations of all worlds here are compiled once.
  return lambda params, key: world.sample(params, key, 'train')


def _examples(world):
  return lambda params, key, latent: world.sample_examples(
      params, key, latent, 'train'
  )


def _targets(world, params, latent, seed=0):
  """Returns the targets of all examples, [S + Q, Y]."""
  batches = _examples(world)(params, jax.random.key(seed), jnp.asarray(latent))
  return np.concatenate([batch.targets for batch in batches])


# The twin: loops, in double precision.


def _twin_generated(params, latent, num_hidden):
  """The generated matrices, entry by entry: W_l[i, j] = sum_r z_r Gamma."""
  fan_in = _H if num_hidden > 1 else _X
  latent = np.asarray(latent, np.float64).ravel()
  gamma = np.asarray(params.generator, np.float64)
  num_layers = max(num_hidden - 1, 1)
  matrices = np.zeros((num_layers, fan_in, _H))
  for layer in range(num_layers):
    for i in range(fan_in):
      for j in range(_H):
        column = layer * fan_in * _H + i * _H + j
        for row, z in enumerate(latent):
          matrices[layer, i, j] += z * gamma[row, column]
  return matrices


def _twin_raw(params, latent, inputs, num_hidden):
  """Outputs before standardisation, [N, Y]."""
  layers = list(_twin_generated(params, latent, num_hidden))
  if num_hidden > 1:
    layers.insert(0, np.asarray(params.input_weights, np.float64))
  assert len(layers) == num_hidden
  outputs = []
  for x in np.asarray(inputs, np.float64):
    for weights in layers:
      pre = [
          sum(x[i] * weights[i, j] for i in range(len(x))) / math.sqrt(len(x))
          for j in range(_H)
      ]
      x = [max(value, 0.0) for value in pre]
    readout = np.asarray(params.output_weights, np.float64)
    outputs.append([
        sum(x[i] * readout[i, j] for i in range(_H)) / math.sqrt(_H)
        for j in range(_Y)
    ])
  return np.array(outputs)


def _twin_targets(params, latent, inputs, num_hidden, temperature):
  raw = _twin_raw(params, latent, inputs, num_hidden)
  reference = _twin_raw(
      params, latent, params.standardisation_inputs, num_hidden
  )
  count = len(reference)
  targets = np.zeros_like(raw)
  mean = reference.sum(0) / count
  std = np.sqrt(((reference - mean) ** 2).sum(0) / count)
  for n, row in enumerate((raw - mean) / std):
    exponentials = [math.exp(value / temperature) for value in row]
    targets[n] = np.array(exponentials) / sum(exponentials)
  return targets


@pytest.mark.parametrize('num_hidden', [1, 2, 3])
def test_targets_against_the_twin(num_hidden):
  world = _make(teacher_num_hidden=num_hidden)
  params = _params(world)
  for seed in range(3):
    task = _sample(world)(params, jax.random.key(seed))
    for batch in (task.support, task.query):
      expected = _twin_targets(
          params, task.latent, batch.inputs, num_hidden, 0.3
      )
      assert np.ptp(expected) > 0.5  # Not the constant distribution.
      np.testing.assert_allclose(batch.targets, expected, atol=2e-5)


@pytest.mark.parametrize('num_hidden', [1, 2, 3])
def test_generated_matrices_against_the_twin(num_hidden):
  world = _make(teacher_num_hidden=num_hidden)
  params = _params(world)
  teacher = hyperteacher.Teacher(_X, _Y, _H, num_hidden)
  latent = jax.random.normal(jax.random.key(0), (teacher.num_layers, 4))
  np.testing.assert_allclose(
      teacher.generate(params.generator, latent),
      _twin_generated(params, latent, num_hidden),
      rtol=1e-5,
      atol=1e-5,
  )


def test_a_teacher_without_active_units_asks_nothing():
  world = _make()
  params = _params(world)
  params = params._replace(generator=-jnp.abs(params.generator))
  params = params._replace(input_weights=jnp.abs(params.input_weights))
  task = _sample(world)(params, jax.random.key(0))
  np.testing.assert_allclose(task.support.targets, 1 / _Y)


@pytest.mark.parametrize('num_hidden', [1, 2, 3])
def test_standardised_outputs_have_mean_0_and_std_1(num_hidden):
  """Reads the standardisation off the targets of its own inputs.

  The difference of two log targets is a y_i - b - (a' y_j - b'), where a is
  the factor that unit i was scaled by: a least-squares problem.
  """
  world = _make(
      teacher_num_hidden=num_hidden,
      temperature=1.0,
      num_support=150,
      num_query=50,
      num_standardisation=200,
  )
  params = _params(world)
  task = _sample(world)(params, jax.random.key(0))
  inputs = np.concatenate([task.support.inputs, task.query.inputs])
  params = params._replace(standardisation_inputs=jnp.asarray(inputs))
  task = _sample(world)(params, jax.random.key(0))
  again = np.concatenate([task.support.inputs, task.query.inputs])
  np.testing.assert_array_equal(again, inputs)

  targets = np.concatenate([task.support.targets, task.query.targets])
  raw = _twin_raw(params, task.latent, inputs, num_hidden)
  logs = np.log(targets.astype(np.float64))
  for i, j in ((0, 1), (2, 3), (1, 3)):
    difference = logs[:, i] - logs[:, j]
    assert abs(difference.mean()) < 1e-5
    design = np.stack([raw[:, i], raw[:, j], np.ones(len(raw))], axis=1)
    (scale_i, scale_j, _), *_ = np.linalg.lstsq(design, difference)
    assert scale_i * raw[:, i].std() == pytest.approx(1, abs=1e-3)
    assert -scale_j * raw[:, j].std() == pytest.approx(1, abs=1e-3)


def test_soft_targets_are_distributions():
  world = _make(temperature=0.1)
  for seed in range(5):
    task = _sample(world)(_params(world), jax.random.key(seed))
    for batch in (task.support, task.query):
      assert (np.asarray(batch.targets) >= 0).all()
      np.testing.assert_allclose(batch.targets.sum(-1), 1, atol=1e-6)


def test_published_teacher_has_the_published_entropy():
  """Spec 4.2, M = 4, K = 2: maximum 0.89, entropy 0.28 nats on average."""
  world = _make(
      task_support='random',
      input_dim=16,
      output_dim=8,
      teacher_hidden_dim=32,
      num_support=64,
      num_query=64,
      temperature=0.1,
      num_standardisation=1000,
  )
  assert world.num_combinations(_params(world), 'train') == 75
  assert world.num_combinations(_params(world), 'ood') == 25
  keys = jax.random.split(jax.random.key(0), 100)
  sample = jax.jit(jax.vmap(_sample(world), (None, 0)))
  targets = np.asarray(sample(_params(world), keys).support.targets)
  entropy = -(targets * np.log(np.maximum(targets, 1e-30))).sum(-1).mean()
  assert targets.max(-1).mean() == pytest.approx(0.89, abs=0.02)
  assert entropy == pytest.approx(0.28, abs=0.04)


@hypothesis.settings(deadline=None, max_examples=30)
@hypothesis.given(factor=st.floats(0.01, 100), seed=st.integers(0, 1000))
def test_scaling_a_latent_leaves_targets_unchanged(factor, seed):
  world = _make()
  params = _params(world)
  latent = _sample(world)(params, jax.random.key(seed)).latent
  expected = _targets(world, params, latent)
  scaled = _targets(world, params, factor * latent)
  np.testing.assert_allclose(scaled, expected, atol=1e-4)


def test_scaling_the_latent_of_one_layer_changes_targets():
  """The layers are mixed by Gamma, so only their ratio matters."""
  world = _make()
  params = _params(world)
  latent = np.array([[1, 0, 0, 0], [0, 1, 1, 0]], np.float32)
  scaled = latent * np.array([[3], [1]], np.float32)
  change = _targets(world, params, scaled) - _targets(world, params, latent)
  assert np.abs(change).max() > 0.1


def test_the_mask_of_a_layer_changes_all_matrices():
  """Gamma is dense (discrepancy D10)."""
  params = _params(_make())
  teacher = hyperteacher.Teacher(_X, _Y, _H, 3)
  latent = np.array([[1, 0, 0, 0], [0, 1, 1, 0]], np.float32)
  before = np.asarray(teacher.generate(params.generator, latent))
  for layer in range(2):
    other = latent.copy()
    other[layer] = [0, 0, 0, 1]
    after = np.asarray(teacher.generate(params.generator, other))
    assert after.shape == (2, _H, _H)
    # Nearly every entry of W_1 and of W_2.
    assert (np.abs(after - before) > 1e-3).mean((1, 2)).min() > 0.9


def test_matrices_add_up_as_in_the_docstring():
  """M = 3, masks 100 and 011: the sum of rows 0, 4 and 5 of Gamma."""
  world = _make(num_modules=3)
  params = _params(world)
  teacher = hyperteacher.Teacher(_X, _Y, _H, 3)
  latent = jnp.array([[1.0, 0, 0], [0, 1, 1]])
  total = np.asarray(params.generator)[[0, 4, 5]].sum(0)
  generated = teacher.generate(params.generator, latent)
  np.testing.assert_allclose(
      generated[0], total[: _H**2].reshape(_H, _H), atol=1e-6
  )
  np.testing.assert_allclose(
      generated[1], total[_H**2 :].reshape(_H, _H), atol=1e-6
  )


@hypothesis.settings(deadline=None, max_examples=20)
@hypothesis.given(
    orders=st.tuples(st.permutations(range(4)), st.permutations(range(4))),
    seed=st.integers(0, 1000),
)
def test_permuting_modules_with_the_latent_changes_nothing(orders, seed):
  world = _make()
  params = _params(world)
  latent = np.asarray(_sample(world)(params, jax.random.key(seed)).latent)
  expected = _targets(world, params, latent)
  rows = np.concatenate([np.array(orders[0]), 4 + np.array(orders[1])])
  permuted = params._replace(generator=params.generator[rows])
  latent = np.take_along_axis(latent, np.array(orders), axis=1)
  np.testing.assert_allclose(
      _targets(world, permuted, latent), expected, atol=1e-4
  )


def test_latents_are_masks_of_their_split():
  world = _make(num_modules=8)
  params = _params(world)
  keys = jax.random.split(jax.random.key(0), 200)
  for split in ('train', 'ood', 'ood_k4'):
    draw = functools.partial(world.sample_latent, params, split=split)
    latents = np.asarray(jax.vmap(draw)(keys))
    assert latents.dtype == np.float32
    assert latents.shape == (200, 2, 8)
    assert set(np.unique(latents)) == {0, 1}
    num_active = latents.sum(-1)
    if split == 'ood_k4':
      assert (num_active == 4).all()
    else:
      assert set(np.unique(num_active)) == {1, 2}


def test_a_split_decides_the_latent_only():
  world = _make()
  params, latent = _params(world), jnp.array([[1.0, 0, 0, 0], [0, 1, 1, 0]])
  key = jax.random.key(0)
  batches = [
      world.sample_examples(params, key, latent, split)
      for split in ('train', 'ood_k4')
  ]
  jax.tree.map(np.testing.assert_array_equal, *batches)


@pytest.mark.parametrize('num_hidden, num_layers', [(1, 1), (2, 1), (3, 2)])
def test_shapes(num_hidden, num_layers):
  world = _make(teacher_num_hidden=num_hidden)
  assert (world.input_dim, world.output_dim, world.num_modules) == (_X, _Y, 4)
  task = _sample(world)(_params(world), jax.random.key(0))
  assert task.latent.shape == (num_layers, 4)
  for batch, count in ((task.support, 12), (task.query, 8)):
    assert batch.inputs.shape == (count, _X)
    assert batch.targets.shape == (count, _Y)
    np.testing.assert_array_equal(batch.mask, np.ones(count))
  params = _params(world)
  fan_in = _X if num_hidden == 1 else _H
  assert params.generator.shape == (
      num_layers * 4,
      num_layers * fan_in * _H,
  )
  assert params.output_weights.shape == (_H, _Y)
  assert params.standardisation_inputs.shape == (50, _X)
  input_shape = (0, 0) if num_hidden == 1 else (_X, _H)
  assert params.input_weights.shape == input_shape


def test_inputs_are_uniform_on_the_cube():
  world = _make(num_support=3000, num_query=2000)
  params = _params(world)
  task = _sample(world)(params, jax.random.key(0))
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
  assert np.abs(correlation - np.eye(_X)).max() < 5 / math.sqrt(3000)


def test_support_query_and_standardisation_inputs_are_different_draws():
  world = _make(num_support=30, num_query=30)
  params = _params(world)
  inputs = [np.asarray(params.standardisation_inputs)]
  for seed in range(3):
    task = _sample(world)(params, jax.random.key(seed))
    inputs += [np.asarray(task.support.inputs), np.asarray(task.query.inputs)]
  rows = np.concatenate(inputs)
  assert len(np.unique(rows[:, 0])) == len(rows)


def test_same_key_same_task_other_key_other_task():
  world = _make()
  sample = _sample(world)
  one = sample(_params(world), jax.random.key(3))
  two = sample(_params(world), jax.random.key(3))
  jax.tree.map(np.testing.assert_array_equal, one, two)
  other = sample(_params(world), jax.random.key(4))
  assert (one.support.inputs != other.support.inputs).all()
  assert (one.query.inputs != other.query.inputs).all()
  latents = {
      np.asarray(sample(_params(world), jax.random.key(seed)).latent).tobytes()
      for seed in range(30)
  }
  assert len(latents) > 15


def test_latent_and_inputs_are_independent():
  """The inputs of a task do not depend on its latent."""
  world = _make()
  params = _params(world)
  key = jax.random.key(0)
  one, _ = _examples(world)(params, key, jnp.eye(4)[:2])
  two, _ = _examples(world)(params, key, jnp.eye(4)[2:])
  np.testing.assert_array_equal(one.inputs, two.inputs)
  assert (np.abs(one.targets - two.targets) > 1e-3).mean() > 0.5


def test_all_tasks_share_the_standardisation_inputs():
  """They are parameters of the world, and the targets depend on them alone."""
  world = _make()
  params = _params(world)
  task = _sample(world)(params, jax.random.key(0))
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
    alone = _examples(world)(params, keys[i], latents[i])
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a[i], b, atol=1e-5),
        together,
        alone,
    )
  other = params._replace(
      standardisation_inputs=_params(world, 1).standardisation_inputs
  )
  changed = _targets(world, other, task.latent)
  assert np.abs(changed - _targets(world, params, task.latent)).max() > 1e-3


def test_worlds_of_seeds():
  """Same key, same world; other key, another one of the same shapes."""
  world = _make()
  jax.tree.map(
      np.testing.assert_array_equal,
      world.init(jax.random.key(0)),
      world.init(jax.random.key(0)),
  )
  one, two = _params(world, 0), _params(world, 1)
  assert jax.tree.map(jnp.shape, one) == jax.tree.map(jnp.shape, two)
  for name in ('input_weights', 'generator', 'output_weights'):
    assert (getattr(one, name) != getattr(two, name)).all(), name
  assert (one.standardisation_inputs != two.standardisation_inputs).all()
  assert (one.split.round_keys != two.split.round_keys).all()


def test_teacher_does_not_depend_on_the_support_or_the_number_of_inputs():
  """Streams are separate, so that conditions compare the same teacher."""
  one = _params(_make(num_modules=8))
  two = _params(
      _make(num_modules=8, task_support='connected', num_standardisation=7)
  )
  for name in ('input_weights', 'generator', 'output_weights'):
    np.testing.assert_array_equal(getattr(one, name), getattr(two, name), name)


def test_weights_are_truncated_standard_normal():
  """Spec 4.1: scale 1, cut at two, no correction; deviation 0.8796."""
  world = _make(
      input_dim=64, teacher_hidden_dim=64, output_dim=64, num_modules=6
  )
  params = _params(world)
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
def test_sizes_must_be_positive(field, value):
  with pytest.raises(ValueError, match=f'task.{field} is {value}; .*positive'):
    _make(**{field: value})


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
def test_impossible_splits_are_refused(fields, message):
  with pytest.raises(ValueError, match=message):
    _make(**fields)


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
def test_evaluation_splits(num_modules, ks):
  """Spec 2.6: OOD(K=k) for the powers of two up to M."""
  world = _make(num_modules=num_modules)
  expected = ('valid', 'test', 'ood') + tuple(f'ood_k{k}' for k in ks)
  assert world.evaluation_splits == expected


def test_numbers_of_combinations():
  """Spec 2.5; above K, all pairs of masks with k ones."""
  world = _make(task_support='connected', num_modules=8)
  params = _params(world)
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
def test_number_of_layers(num_hidden, num_layers):
  """Spec 2.5: all hidden layers but the first; the input layer if one."""
  world = _make(teacher_num_hidden=num_hidden)
  params = _params(world)
  # M = 4, K = 2: ten masks per layer, four of them with the last module.
  num_others = 10 ** (num_layers - 1)
  assert world.num_combinations(params, 'train') == 6 * num_others
  assert world.num_combinations(params, 'ood') == 4 * num_others
