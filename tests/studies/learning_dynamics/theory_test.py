"""The closed form, against numbers that are computed in other ways."""

from collections.abc import Callable
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.studies.learning_dynamics import linear
from modular_hyperteacher.studies.learning_dynamics import measures
from modular_hyperteacher.studies.learning_dynamics import supports
from modular_hyperteacher.studies.learning_dynamics import theory
from modular_hyperteacher.tasks import teacher_student
from modular_hyperteacher.tasks.supports import combinations
from modular_hyperteacher.tasks.supports import families
from tests.studies.learning_dynamics import flow

_MODULES, _INPUTS, _SCALE = 6, 16, 1.7


def _rows(seed: int, number: int, scale: float = 1.0) -> np.ndarray:
  normal = np.random.default_rng(seed).normal(size=(number, _INPUTS))
  return np.sqrt(scale) * theory.orthonormal_rows(normal)


def _drive(
    latent_type: str = 'discrete', name: str = 'singles_ring'
) -> np.ndarray:
  teacher = np.random.default_rng(1).normal(size=(_MODULES, _INPUTS)) / 4
  return theory.drive(teacher, supports.moment(latent_type, name))


def _projection(modules: np.ndarray) -> np.ndarray:
  return modules.T @ np.linalg.solve(modules @ modules.T, modules)


def _loss(modules: np.ndarray, drive: np.ndarray) -> float:
  return float(np.trace((np.eye(_INPUTS) - _projection(modules)) @ drive) / 2)


# Second moments of latents.


@pytest.mark.parametrize('name', ['singles_ring', 'six_triples', 'all'])
def test_discrete_moments_are_means_over_listed_masks(name: str) -> None:
  masks = supports.masks(name)
  units = [mask / np.sqrt(mask.sum()) for mask in masks]
  expected = np.mean([np.outer(z, z) for z in units], axis=0)
  np.testing.assert_allclose(theory.second_moment(masks, 'discrete'), expected)


@pytest.mark.parametrize('latent_type', ['discrete', 'continuous'])
@pytest.mark.parametrize('sampler', ['released', 'paper'])
def test_moments_are_those_of_drawn_latents(
    latent_type: str, sampler: str
) -> None:
  masks = families.masks(families.parse('0 01 234 012345'))
  keys = jax.random.split(jax.random.key(0), 200_000)
  drawn = jax.vmap(
      lambda key: teacher_student.draw_latent(
          key, masks, discrete=latent_type == 'discrete', sampler=sampler
      )[0]
  )(keys)
  actual = np.asarray(jnp.einsum('ni,nj->ij', drawn, drawn)) / len(keys)
  expected = theory.second_moment(masks, latent_type, sampler)
  # Five standard errors of a mean of squares of at most one.
  np.testing.assert_allclose(actual, expected, atol=5 * 0.5 / len(keys) ** 0.5)


@pytest.mark.parametrize('m, k', [(4, 1), (4, 2), (6, 3), (7, 5), (6, 6)])
def test_eigenvalues_of_uniform_sets(m: int, k: int) -> None:
  masks = combinations.masks_with(m, k)
  values = np.linalg.eigvalsh(theory.second_moment(masks, 'discrete'))
  largest, smallest = theory.uniform_eigenvalues(m, k)
  expected = np.sort([smallest] * (m - 1) + [largest])
  np.testing.assert_allclose(values, expected, atol=1e-12)


@pytest.mark.parametrize('m, k', [(4, 3), (8, 3), (6, 1), (5, 5)])
def test_smallest_eigenvalue_of_up_to_k_modules(m: int, k: int) -> None:
  masks = combinations.masks_up_to(m, k)
  values = np.linalg.eigvalsh(theory.second_moment(masks, 'discrete'))
  assert theory.smallest_eigenvalue(m, k) == pytest.approx(values[0])


def test_the_smallest_eigenvalue_falls_as_one_over_the_modules() -> None:
  few, many = (theory.smallest_eigenvalue(m, 3) for m in (200, 400))
  assert few / many == pytest.approx(2, rel=0.01)


def test_mean_times_are_diagonals_of_the_inverse() -> None:
  moment = supports.moment('discrete', 'graded_singles_ring')
  inverse = np.linalg.inv(moment)
  for i, unit in enumerate(np.eye(_MODULES)):
    assert theory.mean_time(2 * unit, moment) == pytest.approx(inverse[i, i])
  singular = supports.moment('discrete', 'ring')
  assert theory.mean_time(np.eye(_MODULES)[0], singular) == np.inf


# The gradient, and what it keeps.


@pytest.mark.parametrize('num_modules', [3, 6, 9])
def test_velocity_is_minus_the_gradient(num_modules: int) -> None:
  """By finite differences; G is not a multiple of the identity."""
  drive = _drive()
  modules = np.random.default_rng(2).normal(size=(num_modules, _INPUTS))
  velocity = flow.velocity(modules, drive)
  step = 1e-5
  for index in itertools.product((0, 2), (0, 7, 15)):
    change = np.zeros_like(modules)
    change[index] = step
    higher, lower = (_loss(modules + s * change, drive) for s in (1, -1))
    slope = (higher - lower) / (2 * step)
    assert velocity[index] == pytest.approx(-slope, rel=1e-5, abs=1e-9)


def test_the_gram_matrix_never_changes() -> None:
  start = np.random.default_rng(3).normal(size=(_MODULES, _INPUTS))
  modules = flow.integrate(start, _drive(), [0.0, 50.0, 400.0])
  for later in modules:
    np.testing.assert_allclose(later @ later.T, start @ start.T, atol=1e-5)
  assert _loss(modules[-1], _drive()) < 0.2 * _loss(start, _drive())


# The closed form.


@pytest.mark.parametrize('num_modules', [1, 3, 6, 9])
@pytest.mark.parametrize(
    'run', [('discrete', 'singles_ring'), ('continuous', 'chained_triples')]
)
def test_closed_form_is_the_integrated_flow(
    num_modules: int, run: tuple[str, str]
) -> None:
  drive, start = _drive(*run), _rows(4, num_modules, _SCALE)
  times = list(np.linspace(0.0, 60.0, 13))
  integrated = flow.integrate(start, drive, times)
  bases = theory.row_spaces(start, drive, times, _SCALE)
  for modules, basis in zip(integrated, bases, strict=True):
    np.testing.assert_allclose(_projection(modules), basis.T @ basis, atol=1e-5)
    assert theory.loss(drive, basis) == pytest.approx(
        _loss(modules, drive), rel=1e-4, abs=1e-7
    )


@pytest.mark.parametrize('num_modules', [6, 9])
def test_overlaps_alone_decide_the_loss(num_modules: int) -> None:
  drive, start = _drive(), _rows(5, num_modules, _SCALE)
  values, directions = np.linalg.eigh(drive)
  values, directions = values[-_MODULES:], directions[:, -_MODULES:]
  overlap = directions.T @ _projection(start) @ directions
  times = [0.0, 3.0, 30.0, 300.0]
  bases = theory.row_spaces(start, drive, times, _SCALE)
  for time, basis in zip(times, bases, strict=True):
    shares = flow.unlearned_at(values, overlap, time, _SCALE)
    np.testing.assert_allclose(
        shares, theory.unlearned(directions, basis), atol=1e-9
    )
    assert values @ shares / 2 == pytest.approx(theory.loss(drive, basis))


def test_a_small_student_ends_in_the_leading_eigenspace() -> None:
  drive = _drive()
  (basis,) = theory.row_spaces(_rows(6, 2), drive, [5000.0], 1.0)
  values, directions = np.linalg.eigh(drive)
  leading = directions[:, -2:]
  np.testing.assert_allclose(basis.T @ basis, leading @ leading.T, atol=1e-6)
  rest = values[:-2].sum() / 2
  assert theory.loss(drive, basis) == pytest.approx(rest)


def test_of_a_large_student_as_many_modules_move_as_the_teacher_has() -> None:
  """Those that overlap with the teacher; the others keep their weights."""
  drive, start = _drive(), _rows(7, 10)
  moved = flow.integrate(start, drive, [0.0, 20.0, 200.0])[1:] - start
  _, directions = np.linalg.eigh(drive)
  touching = start @ directions[:, -_MODULES:]  # [M-hat, M]
  still = np.linalg.svd(touching)[0][:, _MODULES:].T  # [4, M-hat]
  assert still.shape == (4, 10)
  for change in moved:
    np.testing.assert_allclose(still @ change, 0.0, atol=1e-6)
    assert np.linalg.matrix_rank(change, tol=1e-4) == _MODULES


def test_times_of_a_lone_direction() -> None:
  """Exact if the teacher has a single module."""
  direction = _rows(8, 1)[0]
  drive = 0.3 * np.outer(direction, direction)
  start = _rows(9, 4, _SCALE)
  overlap = float(direction @ _projection(start) @ direction)
  for share in (0.5, 0.1, 0.01):
    time = flow.time_to_share(0.3, share, overlap, _SCALE)
    (basis,) = theory.row_spaces(start, drive, [time], _SCALE)
    left = theory.unlearned(direction[:, None], basis)
    np.testing.assert_allclose(left, share, rtol=1e-6)
  assert flow.time_to_share(0.3, 0.999999, overlap, _SCALE) == 0
  assert flow.time_to_share(0.1, 0.01, overlap, _SCALE) == pytest.approx(
      3 * flow.time_to_share(0.3, 0.01, overlap, _SCALE)
  )


# The package's own training.


def _compare(
    latent_type: str, name: str, change: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Returns trained modules, and losses as trained and as integrated."""
  teacher = _rows(10, _MODULES)
  start = change(_rows(11, _MODULES))
  setting = linear.Setting(
      supports.masks(name),
      latent_type,
      learning_rate=0.02,
      num_steps=1600,
      record_every=200,
      meta_batch_size=256,
  )
  (trained,) = linear.train(
      jax.random.split(jax.random.key(12), 1),
      jnp.asarray(teacher)[None],
      jnp.asarray(start)[None],
      setting,
  )
  drive = theory.drive(teacher, supports.moment(latent_type, name))
  times = list(0.02 * 200 * np.arange(len(trained)))
  expected = flow.integrate(start, drive, times)
  losses = [[_loss(w, drive) for w in run] for run in (trained, expected)]
  return trained, *np.array(losses)


def test_trained_students_follow_the_closed_form() -> None:
  """Levenberg-Marquardt inside, plain gradient descent outside."""
  trained, losses, integrated = _compare(
      'discrete', 'singles_ring', lambda start: start
  )
  assert losses[-1] < 0.1 * losses[0]
  np.testing.assert_allclose(losses, integrated, rtol=0.02)
  drive = theory.drive(
      _rows(10, _MODULES), supports.moment('discrete', 'singles_ring')
  )
  bases = theory.row_spaces(
      trained[0], drive, list(4.0 * np.arange(len(trained))), 1.0
  )
  closed = [theory.loss(drive, basis) for basis in bases]
  np.testing.assert_allclose(losses, closed, rtol=0.02)
  gram = trained[-1] @ trained[-1].T
  np.testing.assert_allclose(gram, np.eye(_MODULES), atol=5e-3)


def test_unequal_modules_follow_the_integrated_flow() -> None:
  scales = np.linspace(0.5, 1.5, _MODULES)[:, None]
  _, losses, integrated = _compare(
      'continuous', 'triangles', lambda start: scales * start
  )
  assert losses[-1] < 0.2 * losses[0]
  np.testing.assert_allclose(losses, integrated, rtol=0.02)


def test_modules_with_equal_eigenvalues_share_a_rank() -> None:
  """Their predicted times differ by rounding, in an order that is arbitrary."""
  exact = np.array([1.0, 2.0, 1.0, 2.0, 1.0, 2.0])
  found = np.array([3.0, 1.0, 2.0, 6.0, 5.0, 4.0])
  expected = measures.rank_correlation(found, exact)
  for scale in (1e-9, 1.0, 1e9):
    rounded = scale * exact * (1 + 1e-14 * np.arange(6))
    assert len(set(rounded)) == 6
    assert measures.rank_correlation(found, rounded) == expected
  predicted = measures.module_times('continuous', 'chained_triples')
  assert measures.rank_correlation(found, predicted) == expected
