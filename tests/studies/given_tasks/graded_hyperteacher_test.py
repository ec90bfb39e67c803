"""The hyperteacher with graded modules, against loops in NumPy."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.studies.given_tasks import graded_hyperteacher
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import encodings

_FIELDS: dict[str, Any] = dict(
    num_modules=6,
    max_active=3,
    task_support='random',
    fraction_ood=0.25,
    encoding='identity',
    input_dim=4,
    output_dim=3,
    teacher_hidden_dim=5,
    num_support=2,
    num_query=7,
)


@functools.cache
def _world() -> tuple[base.TaskDistribution, encodings.GivenParams]:
  world = graded_hyperteacher.make(**_FIELDS)
  return world, world.init(jax.random.key(1))


def test_targets_by_loops() -> None:
  world, params = _world()
  key = jax.random.key(2)
  latent = world.sample_latent(params, key, 'train')
  _, query = world.sample_examples(params, key, latent, 'train')
  assert query.inputs.shape == (7, 6 + 4) and query.targets.shape == (7, 3)
  teacher = jax.tree.map(np.asarray, params.task)
  for row, target in zip(np.asarray(query.inputs), np.asarray(query.targets)):
    z, x = row[:6], row[6:]
    np.testing.assert_array_equal(z, latent[0])
    hidden = np.zeros(5)
    for m in range(6):
      for h in range(5):
        product = sum(x[i] * teacher.modules[m, i, h] for i in range(4))
        hidden[h] += z[m] / np.sqrt(3) * (product + teacher.biases[m, h])
    expected = np.maximum(hidden, 0) @ teacher.readout
    np.testing.assert_allclose(target, expected, rtol=1e-4, atol=1e-5)


def test_latents_are_graded_masks_of_their_split() -> None:
  world, params = _world()
  levels = [0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
  seen = {}
  for split in ('train', 'test', 'ood'):
    draw = lambda p, key, split=split: world.sample_latent(p, key, split)
    keys = jax.random.split(jax.random.key(3), 2000)
    latents = np.asarray(jax.vmap(draw, (None, 0))(params, keys))
    assert latents.shape == (2000, 1, 6)
    np.testing.assert_allclose(np.unique(latents), levels, rtol=1e-6)
    seen[split] = {tuple(mask) for mask in latents[:, 0] > 0}
    assert len(seen[split]) == world.num_combinations(params, split)
  assert seen['train'] == seen['test']
  assert not seen['train'] & seen['ood']
  assert len(seen['train']) == 31 and len(seen['ood']) == 10  # Of 41.
  counts = {'train': 31, 'valid': 31, 'test': 31, 'ood': 10}
  assert world.fixed_counts == counts


def test_scale_of_the_teacher() -> None:
  """Standard deviation 0.329 for 16 inputs; biases up to one half."""
  sizes: dict[str, Any] = {'input_dim': 16, 'teacher_hidden_dim': 200}
  world = graded_hyperteacher.make(**(_FIELDS | sizes))
  teacher = world.init(jax.random.key(0)).task
  assert float(teacher.modules.std()) == pytest.approx(0.329, abs=0.005)
  assert float(jnp.abs(teacher.modules).max()) < 2 * 0.329 / 0.8796
  assert 0 <= float(teacher.biases.min()) < 0.01
  assert 0.49 < float(teacher.biases.max()) <= 0.5
  expected = np.sqrt(np.sqrt(3) / 200)
  assert float(teacher.readout.std()) == pytest.approx(expected, rel=0.1)


def test_r2_by_loops() -> None:
  rng = np.random.default_rng(0)
  targets = rng.normal(size=(8, 3)).astype(np.float32)
  targets[:, 2] = 1.5  # Does not vary, so has no R2.
  outputs = targets + rng.normal(size=(8, 3)).astype(np.float32)
  mask = np.array([1, 1, 1, 1, 1, 0, 1, 0], np.float32)
  batch = base.Batch(jnp.zeros((8, 1)), jnp.asarray(targets), jnp.asarray(mask))
  objective = graded_hyperteacher.OBJECTIVE
  metrics = objective.metrics(jnp.asarray(outputs), batch)
  kept = mask > 0
  r2, variances = [], []
  for unit in range(3):
    y, error = targets[kept, unit], (targets - outputs)[kept, unit]
    variances.append(np.mean((y - y.mean()) ** 2))
    if unit < 2:
      r2.append(1 - np.sum(error**2) / np.sum((y - y.mean()) ** 2))
  np.testing.assert_allclose(metrics['unit_r2'], np.mean(r2), rtol=1e-5)
  np.testing.assert_allclose(metrics['variance'], np.mean(variances), rtol=1e-5)
  loss = objective.loss(jnp.asarray(outputs), batch)
  np.testing.assert_allclose(
      loss, np.mean((targets - outputs)[kept] ** 2), rtol=1e-5
  )


@pytest.mark.parametrize(
    'field, value',
    [
        ('task_support', 'mixed'),
        ('encoding', 'morse'),
        ('fraction_ood', 1.0),
        ('num_query', 0),
        ('input_dim', 10**10),
        ('output_dim', 10**10),
        ('num_support', 10**10),
    ],
)
def test_impossible_fields_are_refused(field: str, value: Any) -> None:
  fields: dict[str, Any] = _FIELDS | {field: value}
  with pytest.raises(errors.UserError, match=f'task.*{field}'):
    graded_hyperteacher.make(**fields)
