"""Modular regression in context: masks, latents and targets."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.tasks import modular_regression
from modular_hyperteacher.tasks.supports import families

_SIZES = {
    'input_dim': 16,
    'output_dim': 1,
    'teacher_hidden_dim': 16,
    'num_support': 31,
    'num_query': 1,
}


def _pairs(masks: np.ndarray) -> set[tuple[int, ...]]:
  return {tuple(np.flatnonzero(mask).tolist()) for mask in masks}


@pytest.mark.parametrize(
    'task_support, train, ood',
    [
        ('ring', {(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)}, 9),
        ('triangles', {(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)}, 9),
    ],
)
def test_masks_of_six_pairs(
    task_support: str, train: set[tuple[int, int]], ood: int
) -> None:
  masks = modular_regression.masks_of(task_support)
  assert _pairs(masks['train']) == train
  assert _pairs(masks['train']) == _pairs(
      families.masks(families.FAMILIES[task_support])
  )
  assert len(masks['ood']) == ood
  assert not _pairs(masks['ood']) & train
  assert len(_pairs(masks['train']) | _pairs(masks['ood'])) == 15


def test_chords_leave_the_opposite_modules_out() -> None:
  masks = modular_regression.masks_of('ring_chords')
  assert len(masks['train']) == 12
  assert _pairs(masks['ood']) == {(0, 3), (1, 4), (2, 5)}


def test_ring_and_triangles_share_some_ood_tasks() -> None:
  ring, triangles = (
      _pairs(modular_regression.masks_of(name)['ood_common'])
      for name in ('ring', 'triangles')
  )
  assert ring == triangles and ring
  for name in ('ring', 'triangles'):
    assert not ring & _pairs(modular_regression.masks_of(name)['train'])


@pytest.mark.parametrize('split', ['train', 'valid', 'ood', 'ood_common'])
def test_latents_lie_on_the_face_of_their_pair(split: str) -> None:
  world = modular_regression.make(task_support='ring', **_SIZES)
  params = world.init(jax.random.key(0))
  keys = jax.random.split(jax.random.key(1), 200)
  latents = jax.vmap(lambda key: world.sample_latent(params, key, split))(keys)
  latents = np.asarray(latents)[:, 0]
  masks = modular_regression.masks_of('ring')[split]
  assert _pairs(latents > 0) <= _pairs(masks)
  np.testing.assert_allclose(latents.sum(-1), 1.5, rtol=1e-5)
  active = latents[latents > 0]
  assert active.min() >= 0.5 and active.max() <= 1


def test_targets_written_out() -> None:
  world = modular_regression.make(task_support='ring_chords', **_SIZES)
  params = world.init(jax.random.key(0))
  latent = np.array([[0, 0.6, 0.9, 0, 0, 0]], np.float32)
  support, query = world.sample_examples(
      params, jax.random.key(2), jnp.asarray(latent), 'train'
  )
  modules = np.asarray(params.modules, np.float64)
  mixed = 0.6 * modules[1] + 0.9 * modules[2]
  mixed /= np.linalg.svd(mixed, compute_uv=False)[0]
  for batch in (support, query):
    inputs = np.asarray(batch.inputs, np.float64)
    assert np.abs(inputs).max() <= 3**0.5
    x = inputs @ mixed
    gelu = 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(
        batch.targets, gelu @ np.asarray(params.readout), rtol=1e-4, atol=1e-5
    )
  # Only the direction of a latent matters.
  again, _ = world.sample_examples(
      params, jax.random.key(2), jnp.asarray(7 * latent), 'train'
  )
  np.testing.assert_allclose(again.targets, support.targets, rtol=1e-4)


def test_variance_of_targets() -> None:
  """0.076 in a simulation of 40 teachers with NumPy alone."""
  world = modular_regression.make(
      task_support='ring_chords', **_SIZES | {'num_support': 500}
  )

  @jax.jit
  def variance(seed: jax.Array) -> jax.Array:
    params = world.init(jax.random.fold_in(jax.random.key(0), seed))
    keys = jax.random.split(jax.random.fold_in(jax.random.key(1), seed), 32)
    tasks = jax.vmap(lambda key: world.sample(params, key, 'train'))(keys)
    return tasks.support.targets.var(1).mean()

  variances = [float(variance(jnp.asarray(seed))) for seed in range(60)]
  assert 0.065 < np.mean(variances) < 0.087


def test_unrelated_tasks_keep_the_readout_alone() -> None:
  world = modular_regression.make(task_support='ring', **_SIZES)
  params = world.init(jax.random.key(0))
  other = modular_regression.draw_unrelated(params, jax.random.key(1))
  np.testing.assert_array_equal(other.readout, params.readout)
  assert np.abs(other.modules - params.modules).min() > 0


@pytest.mark.parametrize(
    'field, value', [('task_support', 'star'), ('num_support', 0)]
)
def test_wrong_fields_are_named(field: str, value: object) -> None:
  fields = {'task_support': 'ring', **_SIZES, field: value}
  with pytest.raises(errors.UserError, match=f'task.{field}'):
    modular_regression.make(**fields)


def test_spectral_norm() -> None:
  rng = np.random.default_rng(0)
  for shape in ((16, 16), (3, 7), (7, 3)):
    weights = rng.standard_normal(shape).astype(np.float32)
    expected = np.linalg.svd(weights, compute_uv=False)[0]
    found = modular_regression.spectral_norm(jnp.asarray(weights))
    np.testing.assert_allclose(found, expected, rtol=1e-4)
