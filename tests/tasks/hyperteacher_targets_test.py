"""Targets of the hyperteacher, against a NumPy twin."""

import math
from typing import Any

import hypothesis
from hypothesis import strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.tasks import hyperteacher
from tests.helpers import small_hyperteacher

# The twin: loops, in double precision.


def _twin_generated(
    params: hyperteacher.HyperteacherParams, latent: Any, num_hidden: int
) -> np.ndarray:
  """The generated matrices, entry by entry: W_l[i, j] = sum_r z_r Gamma."""
  fan_in = small_hyperteacher.H if num_hidden > 1 else small_hyperteacher.X
  latent = np.asarray(latent, np.float64).ravel()
  gamma = np.asarray(params.generator, np.float64)
  num_layers = max(num_hidden - 1, 1)
  matrices = np.zeros((num_layers, fan_in, small_hyperteacher.H))
  for layer in range(num_layers):
    for i in range(fan_in):
      for j in range(small_hyperteacher.H):
        column = (
            layer * fan_in * small_hyperteacher.H + i * small_hyperteacher.H + j
        )
        for row, z in enumerate(latent):
          matrices[layer, i, j] += z * gamma[row, column]
  return matrices


def _twin_raw(
    params: hyperteacher.HyperteacherParams,
    latent: Any,
    inputs: Any,
    num_hidden: int,
) -> np.ndarray:
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
          for j in range(small_hyperteacher.H)
      ]
      x = [max(value, 0.0) for value in pre]
    readout = np.asarray(params.output_weights, np.float64)
    outputs.append([
        sum(x[i] * readout[i, j] for i in range(small_hyperteacher.H))
        / math.sqrt(small_hyperteacher.H)
        for j in range(small_hyperteacher.Y)
    ])
  return np.array(outputs)


def _twin_targets(
    params: hyperteacher.HyperteacherParams,
    latent: Any,
    inputs: Any,
    num_hidden: int,
    temperature: float,
) -> np.ndarray:
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
def test_targets_against_the_twin(num_hidden: int) -> None:
  world = small_hyperteacher.make(teacher_num_hidden=num_hidden)
  params = small_hyperteacher.init(world)
  for seed in range(3):
    task = small_hyperteacher.sample(world)(params, jax.random.key(seed))
    for batch in (task.support, task.query):
      expected = _twin_targets(
          params, task.latent, batch.inputs, num_hidden, 0.3
      )
      assert np.ptp(expected) > 0.5  # Not the constant distribution.
      np.testing.assert_allclose(batch.targets, expected, atol=2e-5)


@pytest.mark.parametrize('num_hidden', [1, 2, 3])
def test_generated_matrices_against_the_twin(num_hidden: int) -> None:
  world = small_hyperteacher.make(teacher_num_hidden=num_hidden)
  params = small_hyperteacher.init(world)
  teacher = hyperteacher.Teacher(
      small_hyperteacher.X,
      small_hyperteacher.Y,
      small_hyperteacher.H,
      num_hidden,
  )
  latent = jax.random.normal(jax.random.key(0), (teacher.num_layers, 4))
  np.testing.assert_allclose(
      teacher.generate(params.generator, jnp.asarray(latent)),
      _twin_generated(params, latent, num_hidden),
      rtol=1e-5,
      atol=1e-5,
  )


def test_a_teacher_without_active_units_asks_nothing() -> None:
  world = small_hyperteacher.make()
  params = small_hyperteacher.init(world)
  params = params._replace(generator=-jnp.abs(params.generator))
  params = params._replace(input_weights=jnp.abs(params.input_weights))
  task = small_hyperteacher.sample(world)(params, jax.random.key(0))
  np.testing.assert_allclose(task.support.targets, 1 / small_hyperteacher.Y)


@pytest.mark.parametrize('num_hidden', [1, 2, 3])
def test_standardised_outputs_have_mean_0_and_std_1(num_hidden: int) -> None:
  """Reads the standardisation off the targets of its own inputs.

  The difference of two log targets is a y_i - b - (a' y_j - b'), where a is
  the factor that unit i was scaled by: a least-squares problem.
  """
  world = small_hyperteacher.make(
      teacher_num_hidden=num_hidden,
      temperature=1.0,
      num_support=150,
      num_query=50,
      num_standardisation=200,
  )
  params = small_hyperteacher.init(world)
  task = small_hyperteacher.sample(world)(params, jax.random.key(0))
  inputs = np.concatenate([task.support.inputs, task.query.inputs])
  params = params._replace(standardisation_inputs=jnp.asarray(inputs))
  task = small_hyperteacher.sample(world)(params, jax.random.key(0))
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


def test_soft_targets_are_distributions() -> None:
  world = small_hyperteacher.make(temperature=0.1)
  for seed in range(5):
    task = small_hyperteacher.sample(world)(
        small_hyperteacher.init(world), jax.random.key(seed)
    )
    for batch in (task.support, task.query):
      assert (np.asarray(batch.targets) >= 0).all()
      np.testing.assert_allclose(batch.targets.sum(-1), 1, atol=1e-6)


def test_published_teacher_has_the_published_entropy() -> None:
  """Spec 4.2, M = 4, K = 2: maximum 0.89, entropy 0.28 nats on average."""
  world = small_hyperteacher.make(
      task_support='random',
      input_dim=16,
      output_dim=8,
      teacher_hidden_dim=32,
      num_support=64,
      num_query=64,
      temperature=0.1,
      num_standardisation=1000,
  )
  assert world.num_combinations(small_hyperteacher.init(world), 'train') == 75
  assert world.num_combinations(small_hyperteacher.init(world), 'ood') == 25
  keys = jax.random.split(jax.random.key(0), 100)
  sample = jax.jit(jax.vmap(small_hyperteacher.sample(world), (None, 0)))
  targets = np.asarray(
      sample(small_hyperteacher.init(world), keys).support.targets
  )
  entropy = -(targets * np.log(np.maximum(targets, 1e-30))).sum(-1).mean()
  assert targets.max(-1).mean() == pytest.approx(0.89, abs=0.02)
  assert entropy == pytest.approx(0.28, abs=0.04)


@hypothesis.settings(deadline=None, max_examples=30)
@hypothesis.given(factor=st.floats(0.01, 100), seed=st.integers(0, 1000))
def test_scaling_a_latent_leaves_targets_unchanged(
    factor: float, seed: int
) -> None:
  world = small_hyperteacher.make()
  params = small_hyperteacher.init(world)
  latent = small_hyperteacher.sample(world)(params, jax.random.key(seed)).latent
  expected = small_hyperteacher.targets(world, params, latent)
  scaled = small_hyperteacher.targets(world, params, factor * latent)
  np.testing.assert_allclose(scaled, expected, atol=1e-4)


def test_scaling_the_latent_of_one_layer_changes_targets() -> None:
  """The layers are mixed by Gamma, so only their ratio matters."""
  world = small_hyperteacher.make()
  params = small_hyperteacher.init(world)
  latent = np.array([[1, 0, 0, 0], [0, 1, 1, 0]], np.float32)
  scaled = latent * np.array([[3], [1]], np.float32)
  change = small_hyperteacher.targets(
      world, params, scaled
  ) - small_hyperteacher.targets(world, params, latent)
  assert np.abs(change).max() > 0.1


def test_the_mask_of_a_layer_changes_all_matrices() -> None:
  """Gamma is dense (discrepancy D10)."""
  params = small_hyperteacher.init(small_hyperteacher.make())
  teacher = hyperteacher.Teacher(
      small_hyperteacher.X, small_hyperteacher.Y, small_hyperteacher.H, 3
  )
  latent = np.array([[1, 0, 0, 0], [0, 1, 1, 0]], np.float32)
  before = np.asarray(teacher.generate(params.generator, jnp.asarray(latent)))
  for layer in range(2):
    other = latent.copy()
    other[layer] = [0, 0, 0, 1]
    after = np.asarray(teacher.generate(params.generator, jnp.asarray(other)))
    assert after.shape == (2, small_hyperteacher.H, small_hyperteacher.H)
    # Nearly every entry of W_1 and of W_2.
    assert (np.abs(after - before) > 1e-3).mean((1, 2)).min() > 0.9


def test_matrices_add_up_as_in_the_docstring() -> None:
  """M = 3, masks 100 and 011: the sum of rows 0, 4 and 5 of Gamma."""
  world = small_hyperteacher.make(num_modules=3)
  params = small_hyperteacher.init(world)
  teacher = hyperteacher.Teacher(
      small_hyperteacher.X, small_hyperteacher.Y, small_hyperteacher.H, 3
  )
  latent = jnp.array([[1.0, 0, 0], [0, 1, 1]])
  total = np.asarray(params.generator)[[0, 4, 5]].sum(0)
  generated = teacher.generate(params.generator, jnp.asarray(latent))
  np.testing.assert_allclose(
      generated[0],
      total[: small_hyperteacher.H**2].reshape(
          small_hyperteacher.H, small_hyperteacher.H
      ),
      atol=1e-6,
  )
  np.testing.assert_allclose(
      generated[1],
      total[small_hyperteacher.H**2 :].reshape(
          small_hyperteacher.H, small_hyperteacher.H
      ),
      atol=1e-6,
  )


@hypothesis.settings(deadline=None, max_examples=20)
@hypothesis.given(
    orders=st.tuples(st.permutations(range(4)), st.permutations(range(4))),
    seed=st.integers(0, 1000),
)
def test_permuting_modules_with_the_latent_changes_nothing(
    orders: tuple[list[int], list[int]], seed: int
) -> None:
  world = small_hyperteacher.make()
  params = small_hyperteacher.init(world)
  latent = np.asarray(
      small_hyperteacher.sample(world)(params, jax.random.key(seed)).latent
  )
  expected = small_hyperteacher.targets(world, params, latent)
  rows = np.concatenate([np.array(orders[0]), 4 + np.array(orders[1])])
  permuted = params._replace(generator=params.generator[rows])
  latent = np.take_along_axis(latent, np.array(orders), axis=1)
  np.testing.assert_allclose(
      small_hyperteacher.targets(world, permuted, latent), expected, atol=1e-4
  )
