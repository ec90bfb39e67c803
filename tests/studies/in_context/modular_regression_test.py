"""The world of in-context regression: supports, latents, targets, control."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.studies.in_context import modular_regression
from modular_hyperteacher.tasks import teacher_student
from modular_hyperteacher.tasks.supports import families

_FIELDS = dict(
    task_support='ring_chords',
    input_dim=16,
    output_dim=1,
    teacher_hidden_dim=16,
    num_support=31,
    num_query=1,
)
_TRAINED = {
    'ring': '01 12 23 34 45 05',
    'triangles': '01 12 02 34 45 35',
    'ring_chords': '01 12 23 34 45 05 02 13 24 35 04 15',
}
_UNSEEN = {
    'ring': '02 03 04 13 14 15 24 25 35',
    'triangles': '03 04 05 13 14 15 23 24 25',
    'ring_chords': '03 14 25',
}
_COMMON = {
    'ring': '03 04 13 14 15 24 25',
    'triangles': '03 04 13 14 15 24 25',
    'ring_chords': '03 14 25',
}


def _pairs(masks: np.ndarray) -> set[tuple[int, ...]]:
  return {tuple(map(int, np.flatnonzero(mask))) for mask in masks}


def _parse(text: str) -> set[tuple[int, ...]]:
  return {tuple(map(int, pair)) for pair in text.split()}


def make(**overrides: object) -> modular_regression.base.TaskDistribution:
  return modular_regression.make(**{**_FIELDS, **overrides})  # type: ignore


def draw_latents(task_support: str, split: str, number: int) -> np.ndarray:
  world = make(task_support=task_support)
  keys = jax.random.split(jax.random.key(1), number)
  sample = jax.vmap(lambda key: world.sample_latent(None, key, split))
  return np.asarray(sample(keys))[:, 0]


@pytest.mark.parametrize('name', modular_regression.SUPPORTS)
def test_supports_are_those_of_table_1(name: str) -> None:
  masks = modular_regression.masks_of(name)
  assert _pairs(masks['train']) == _parse(_TRAINED[name])
  assert _pairs(masks['ood']) == _parse(_UNSEEN[name])
  assert _pairs(masks['ood_common']) == _parse(_COMMON[name])
  everything = _pairs(masks['train']) | _pairs(masks['ood'])
  assert everything == set(itertools.combinations(range(6), 2))
  assert len(masks['train']) + len(masks['ood']) == 15
  connected = families.is_connected(masks['train'])
  assert connected == (name != 'triangles')


@pytest.mark.parametrize('split', ['train', 'test', 'ood', 'ood_common'])
@pytest.mark.parametrize('name', modular_regression.SUPPORTS)
def test_latents_lie_on_the_masks_of_their_split(name: str, split: str) -> None:
  latents = draw_latents(name, split, 500)
  np.testing.assert_allclose(latents.sum(1), 1.5, rtol=1e-5)
  active = latents[latents > 0]
  assert active.min() >= 0.5 and active.max() <= 1
  shares = latents.max(1) / latents.sum(1)
  assert shares.max() <= 2 / 3 + 1e-6
  masks = modular_regression.masks_of(name)[split]
  assert _pairs(latents > 0) == _pairs(masks)


def test_targets_depend_on_the_direction_of_the_latent_only() -> None:
  params = make().init(jax.random.key(0))
  latent = jnp.array([0.0, 0.6, 0.9, 0.0, 0.0, 0.0])
  inputs = jax.random.normal(jax.random.key(1), (7, 16))
  weights = modular_regression.mix(params.modules, latent)
  singular = np.linalg.svd(np.asarray(weights, float), compute_uv=False)
  assert singular[0] == pytest.approx(1, abs=1e-5)
  by_hand = np.asarray(params.modules, float)
  by_hand = 0.6 * by_hand[1] + 0.9 * by_hand[2]
  by_hand /= np.linalg.norm(by_hand, 2)
  x = np.asarray(inputs, float) @ by_hand
  gelu = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
  expected = gelu @ np.asarray(params.readout, float)
  for scale in (1.0, 3.0):
    found = modular_regression.respond(params, scale * latent, inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('shape', [(16, 16), (3, 5), (5, 3)])
@pytest.mark.parametrize('gap', [0.5, 1e-3, 0.0])
def test_spectral_norm(shape: tuple[int, int], gap: float) -> None:
  """Also where the two largest singular values are close, or equal."""
  matrix = np.asarray(jax.random.normal(jax.random.key(2), shape), float)
  u, s, vt = np.linalg.svd(matrix, full_matrices=False)
  s[1] = s[0] * (1 - gap)
  found = modular_regression.spectral_norm(jnp.asarray(u * s @ vt, jnp.float32))
  assert found == pytest.approx(s[0], rel=2e-5)


def test_targets_have_the_expected_variance() -> None:
  """Per task 0.074, averaged over 100 teachers that NumPy drew."""
  world = make(num_support=500)

  def variance(seed: jax.Array) -> jax.Array:
    params = world.init(jax.random.key(seed))
    keys = jax.random.split(jax.random.key(seed), 16)
    drawn = jax.vmap(lambda key: world.sample(params, key, 'train'))(keys)
    return drawn.support.targets.var(1).mean()

  variances = np.asarray(jax.jit(jax.vmap(variance))(jnp.arange(100)))
  error = variances.std() / 10
  assert abs(variances.mean() - 0.074) < 4 * error
  assert 0.01 < variances.min() and variances.max() < 0.2


def test_inputs_have_unit_variance() -> None:
  task = make(num_support=20_000).sample(
      make().init(jax.random.key(0)), jax.random.key(1), 'train'
  )
  inputs = np.asarray(task.support.inputs)
  assert np.abs(inputs).max() <= math.sqrt(3) + 1e-6
  assert inputs.var() == pytest.approx(1, abs=0.01)
  assert task.query.inputs.shape == (1, 16)


def test_the_control_shares_the_readout_and_no_module() -> None:
  params = make().init(jax.random.key(0))
  fresh = modular_regression.draw_unrelated(params, jax.random.key(1))
  np.testing.assert_array_equal(fresh.readout, params.readout)
  assert fresh.modules.shape == params.modules.shape
  pairs = np.asarray(params.modules).reshape(6, -1), np.asarray(
      fresh.modules
  ).reshape(6, -1)
  assert np.abs(np.corrcoef(*pairs)[:6, 6:]).max() < 0.3


def test_the_loss_is_the_squared_error() -> None:
  batch = modular_regression.base.examples(
      jnp.zeros((2, 1)), jnp.array([[1.0], [2.0]])
  )
  loss = modular_regression.OBJECTIVE.loss(jnp.array([[0.0], [5.0]]), batch)
  assert loss == pytest.approx(5)


@pytest.mark.parametrize(
    'field, value, message',
    [
        ('task_support', 'circle', "task.task_support is 'circle'; choose one"),
        ('num_support', 0, 'task.num_support is 0; it must be positive'),
        ('input_dim', -1, 'task.input_dim is -1; it must be positive'),
    ],
)
def test_impossible_fields_are_refused(
    field: str, value: object, message: str
) -> None:
  with pytest.raises(errors.UserError, match=message):
    make(**{field: value})


def test_teacher_params_are_those_of_the_theory() -> None:
  params = make().init(jax.random.key(0))
  assert isinstance(params, teacher_student.TeacherParams)
  assert params.modules.shape == (6, 16, 16)
  assert params.readout.shape == (16, 1)
  assert np.abs(params.modules).max() <= 2 / math.sqrt(6)
  assert np.abs(params.readout).max() <= 2 / 4
