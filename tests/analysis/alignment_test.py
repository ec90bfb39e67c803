"""Alignment and identification of constructed students (check 12)."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.analysis import alignment
from modular_hyperteacher.analysis import base
from modular_hyperteacher.analysis import counterexamples
from modular_hyperteacher.analysis import identification
from modular_hyperteacher.analysis import ridge
from modular_hyperteacher.configs import fig2c
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks import teacher_student
from modular_hyperteacher.tasks.supports import latents
from tests.helpers import built
from tests.helpers import tiny

_M, _X, _H = 4, 7, 5


def _equivalent_student(extra_units: int = 0) -> tuple[Any, ...]:
  """A teacher, and a student of the form that Theorem 1 allows.

  Latents go through an invertible map, units are permuted and rescaled.
  """
  rng = np.random.default_rng(0)
  teacher = rng.normal(size=(_M, _X, _H))
  mixing = rng.normal(size=(_M, _M)) + 2 * np.eye(_M)  # zhat = mixing z
  permutation = rng.permutation(_H)
  scales = rng.uniform(0.5, 2, _H)
  student = np.einsum('mj,mxk->jxk', np.linalg.inv(mixing), teacher * scales)
  student = student[:, :, permutation]
  extra = 0.01 * rng.normal(size=(_M, _X, extra_units))
  keys = jax.random.split(jax.random.key(0), 256)
  z = np.asarray(
      jax.vmap(lambda k: latents.sample_continuous(k, jnp.ones(_M)))(keys)
  )
  student = np.concatenate([student, extra], axis=-1)
  return teacher, student, z, z @ mixing.T, permutation, scales


def _regression(z: Any, student_latents: Any) -> Any:
  return np.linalg.lstsq(student_latents, z, rcond=None)[0].T


@pytest.mark.parametrize('extra_units', [0, 3])
def test_equivalent_student_is_aligned(extra_units: int) -> None:
  teacher, student, z, z_hat, _, _ = _equivalent_student(extra_units)
  found = alignment.align(teacher, student, _regression(z, z_hat))
  np.testing.assert_allclose(list(found.values()), 1.0, atol=1e-4)


def test_equivalent_student_under_ridge() -> None:
  teacher, student, z, z_hat, _, _ = _equivalent_student()
  regression = alignment.fit_latents(z_hat, z, exact=True)
  found = alignment.align(teacher, student, regression)
  assert found['joint_mean'] > 0.999  # Up to the bias of the ridge.
  np.testing.assert_allclose(ridge.r2(z_hat @ regression.T, z), 1.0, atol=1e-2)


@pytest.mark.parametrize('extra_units', [0, 3])
def test_identification_recovers_the_map(extra_units: int) -> None:
  teacher, student, z, z_hat, permutation, scales = _equivalent_student(
      extra_units
  )
  latent_map = identification.fit_latent_map(z, z_hat)
  found = identification.identify(teacher, student, latent_map)
  assert found.residual < 1e-8
  assert found.fraction_flipped == 0
  # Unit k of the teacher is where the permutation put it.
  np.testing.assert_array_equal(permutation[found.permutation], np.arange(_H))
  np.testing.assert_allclose(found.scales, scales, rtol=1e-4)


def test_the_map_between_latents_is_found_in_more_dimensions() -> None:
  # What the student's modules do not respond to says nothing about them.
  teacher, student, z, z_hat, _, _ = _equivalent_student()
  spare = np.random.default_rng(3).normal(size=(len(z), 2))
  z_hat = np.concatenate([z_hat, spare], axis=1)
  student = np.concatenate([student, np.zeros((2, _X, _H))])
  latent_map = identification.fit_latent_map(z, z_hat)
  assert latent_map.shape == (_M + 2, _M)
  assert identification.identify(teacher, student, latent_map).residual < 1e-8


def test_units_count_by_their_weight() -> None:
  teacher, student, z, z_hat, permutation, _ = _equivalent_student()
  latent_map = identification.fit_latent_map(z, z_hat)
  lost = permutation[0]  # A unit of the teacher that the student has not.
  student[:, :, 0] = np.random.default_rng(4).normal(size=(_M, _X))
  weights = np.ones(_H)
  found = identification.identify(teacher, student, latent_map, weights)
  unweighted = identification.identify(teacher, student, latent_map)
  assert found.residual == unweighted.residual
  assert 0.1 < found.residual < 0.3  # About one unit of five.
  weights[lost] = 0.0
  found = identification.identify(teacher, student, latent_map, weights)
  assert found.residual < 1e-8
  weights[lost] = 4.0  # Of 8 in all.
  found = identification.identify(teacher, student, latent_map, weights)
  assert found.residual > 0.35


def test_flipped_unit_is_reported() -> None:
  teacher, student, z, z_hat, _, _ = _equivalent_student()
  student[:, :, 0] *= -1
  latent_map = identification.fit_latent_map(z, z_hat)
  found = identification.identify(teacher, student, latent_map)
  assert found.residual < 1e-8
  assert found.fraction_flipped == pytest.approx(1 / _H)
  aligned = alignment.align(teacher, student, _regression(z, z_hat))
  assert aligned['joint_min'] < 0.9  # Alignment counts it as not found.


def test_swapped_student_is_not_aligned() -> None:
  example = counterexamples.swapped_half(jax.random.key(0))
  identity = jnp.eye(6)
  found = alignment.align(
      example.teacher.modules, example.student.modules, identity
  )
  assert found['joint_mean'] < 0.8
  # Every module alone does match some unit.
  np.testing.assert_allclose(found['per_module_mean'], 1.0, atol=1e-5)
  residual = identification.identify(
      np.asarray(example.teacher.modules),
      np.asarray(example.student.modules),
      np.eye(6),
  ).residual
  assert residual > 0.1


def test_equivalent_student_has_aligned_weights() -> None:
  teacher, student, z, z_hat, _, _ = _equivalent_student(extra_units=3)
  found = alignment.align_weights(teacher, student, z, z_hat)
  np.testing.assert_allclose(found, 1.0, atol=1e-4)


def test_alignment_of_weights_is_that_of_its_definition() -> None:
  rng = np.random.default_rng(5)
  teacher = rng.normal(size=(_M, _X, _H))
  student = rng.normal(size=(6, _X, 8))
  z, z_hat = rng.normal(size=(9, _M)), rng.normal(size=(9, 6))
  cosines = np.empty((9, _H, 8))
  for t, k, other in np.ndindex(cosines.shape):
    unit = sum(z[t, m] * teacher[m, :, k] for m in range(_M))
    found = sum(z_hat[t, m] * student[m, :, other] for m in range(6))
    cosines[t, k, other] = np.dot(unit, found) / np.sqrt(
        np.dot(unit, unit) * np.dot(found, found)
    )
  arrays = map(jnp.asarray, (teacher, student, z, z_hat))
  joint, per_task = alignment.align_weights(*arrays)
  assert joint == pytest.approx(cosines.mean(0).max(-1).mean(), rel=1e-5)
  assert per_task == pytest.approx(cosines.max(-1).mean(), rel=1e-5)


def test_permuting_modules_with_latents_changes_nothing() -> None:
  rng = np.random.default_rng(1)
  teacher = rng.normal(size=(_M, _X, _H)).astype(np.float32)
  student = rng.normal(size=(6, _X, 8)).astype(np.float32)
  z = rng.normal(size=(64, _M)).astype(np.float32)
  z_hat = rng.normal(size=(64, 6)).astype(np.float32)
  order, student_order = rng.permutation(_M), rng.permutation(6)

  def measure(teacher: Any, student: Any, z: Any, z_hat: Any) -> Any:
    regression = alignment.fit_latents(z_hat, z, exact=True)
    return list(alignment.align(teacher, student, regression).values())

  np.testing.assert_allclose(
      measure(teacher, student, z, z_hat),
      measure(
          teacher[order],
          student[student_order],
          z[:, order],
          z_hat[:, student_order],
      ),
      rtol=1e-4,
  )


def test_exact_ridge_is_the_closed_form() -> None:
  rng = np.random.default_rng(2)
  z, z_hat = rng.normal(size=(50, 3)), rng.normal(size=(50, 8))
  expected = np.linalg.inv(z_hat.T @ z_hat + 0.01 * np.eye(8)) @ z_hat.T @ z
  found = alignment.fit_latents(jnp.asarray(z_hat), jnp.asarray(z), exact=True)
  np.testing.assert_allclose(found, expected.T, atol=1e-4)


def test_r2_of_a_constant_target_is_missing() -> None:
  target = jnp.stack([jnp.arange(4.0), jnp.ones(4)], axis=1)
  found = ridge.r2(target, target)
  assert found[0] == 1 and jnp.isnan(found[1])


def test_a_lost_student_has_no_numbers() -> None:
  """Modules that diverged, or latents; the other split is measured."""
  teacher, student, z, z_hat, _, _ = _equivalent_student()
  task = teacher_student.TeacherParams(jnp.asarray(teacher), jnp.ones((_H, 2)))
  task_distribution, model = _theory(hidden_dim=16)
  measure = alignment.make_analysis(task_distribution, model).measure
  lost = np.where(np.arange(len(z))[:, None] == 3, np.nan, z_hat)
  names: set[str] = set()
  for modules, inferred, expected in (
      (student, z_hat, ()),
      (student, lost, ('ood',)),
      (student * np.inf, z_hat, ('test', 'ood')),
      # Too large to be regressed on.
      (student, z_hat * np.float32(1e20), ('ood',)),
  ):
    metrics = measure(
        base.Adapted(
            task,
            {'modules': modules},
            dict.fromkeys(('test', 'ood'), z[:, None]),
            {'test': z_hat, 'ood': inferred},
            jax.random.key(0),
        )
    )
    for split, values in metrics.items():
      names = names or set(values)  # Of a sound student, which comes first.
      assert set(values) == names >= {'alignment', 'identification_flipped'}
      is_lost = np.isnan(list(values.values()))
      assert is_lost.all() if split in expected else not is_lost.any()


def test_every_number_is_what_its_name_says() -> None:
  """A student of random modules, so that all numbers differ."""
  rng = np.random.default_rng(6)

  def normal(*shape: int) -> Any:
    return rng.normal(size=shape).astype(np.float32)

  teacher, student = normal(_M, _X, _H), normal(16, _X, 8)
  readout = normal(_H, 2)
  # Ten iterations do not solve for sixteen latents.
  z = {'test': normal(24, _M), 'ood': normal(24, _M)}
  z_hat = {split: normal(24, 16) for split in z}
  measured = alignment.make_analysis(*_theory(hidden_dim=16)).measure(
      base.Adapted(
          teacher_student.TeacherParams(
              jnp.asarray(teacher), jnp.asarray(readout)
          ),
          {'modules': student},
          {split: latents[:, None] for split, latents in z.items()},
          z_hat,
          jax.random.key(0),
      )
  )
  for split in z:
    pair = jnp.asarray(z_hat[split]), jnp.asarray(z[split])
    regression = alignment.fit_latents(*pair)
    exact = alignment.fit_latents(*pair, exact=True)
    found = alignment.align(teacher, student, regression)
    weights, per_task = alignment.align_weights(teacher, student, *pair[::-1])
    by_regression = identification.identify(
        teacher, student, np.linalg.pinv(np.asarray(exact))
    )
    direct = identification.identify(
        teacher,
        student,
        identification.fit_latent_map(z[split], z_hat[split]),
        weights=(readout**2).sum(1),
    )
    expected = {
        'alignment': found['joint_mean'],
        'alignment_max': found['joint_max'],
        'alignment_min': found['joint_min'],
        'alignment_per_module': found['per_module_mean'],
        'alignment_exact': alignment.align(teacher, student, exact)[
            'joint_mean'
        ],
        'alignment_weights': weights,
        'alignment_weights_per_task': per_task,
        'latent_r2': ridge.r2(pair[0] @ regression.T, pair[1]).mean(),
        'identification_residual': by_regression.residual,
        'identification_residual_direct': direct.residual,
        'identification_flipped': by_regression.fraction_flipped,
    }
    expected = {name: float(value) for name, value in expected.items()}
    # Test tasks are like those of training.
    expected['alignment_fit_train'] = measured['test']['alignment']
    assert measured[split] == pytest.approx(expected, rel=1e-3)
  assert np.diff(sorted(measured['ood'].values())).min() > 2e-3


def _theory(
    hidden_dim: int,
) -> tuple[tasks.TaskDistribution, models.MetaModel]:
  config = sweeps.expand(fig2c.get_config('smoke'))[0].config
  config['model']['hidden_dim'] = hidden_dim
  experiment = built.bilevel_experiment(config)
  return experiment.task, experiment.model


def test_students_that_cannot_be_compared_are_refused() -> None:
  """Before training, as the analysis comes after the last step."""
  with pytest.raises(errors.UserError, match='model.hidden_dim is 15; it must'):
    _theory(hidden_dim=15)
  task, _ = _theory(hidden_dim=16)
  model = tiny.MODELS['anil']()
  with pytest.raises(errors.UserError, match="must be 'modular_student'"):
    alignment.make_analysis(task, model)


def test_too_narrow_student() -> None:
  with pytest.raises(ValueError, match='4 hidden units'):
    identification.identify(np.ones((2, 3, 5)), np.ones((2, 3, 4)), np.eye(2))
