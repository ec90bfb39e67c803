"""Levenberg-Marquardt against closed forms and scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from modular_hyperteacher.learning import levenberg_marquardt


def test_linear_problem() -> None:
  matrix = jax.random.normal(jax.random.key(0), (20, 4))
  target = jax.random.normal(jax.random.key(1), (20,))
  found = levenberg_marquardt.minimise(
      lambda x: matrix @ x - target, jnp.zeros(4), 10
  )
  expected = np.linalg.lstsq(matrix, target, rcond=None)[0]
  np.testing.assert_allclose(found, expected, atol=1e-5)


def test_underdetermined_problem_is_solved() -> None:
  matrix = jax.random.normal(jax.random.key(0), (3, 8))
  target = jax.random.normal(jax.random.key(1), (3,))
  found = levenberg_marquardt.minimise(
      lambda x: matrix @ x - target, jnp.ones(8), 20
  )
  np.testing.assert_allclose(matrix @ found, target, atol=1e-5)


def test_nonlinear_problem() -> None:
  rosenbrock = lambda x: jnp.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])
  start = jnp.array([-1.2, 1.0])
  found = levenberg_marquardt.minimise(rosenbrock, start, 60)
  expected = optimize.least_squares(
      lambda x: np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]]), start
  ).x
  np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize('num_iterations', [1, 2, 5, 20])
def test_never_ends_above_where_it_started(num_iterations: int) -> None:
  wild = lambda x: jnp.sin(5 * x) + 0.1 * x**3
  starts = jnp.linspace(-3, 3, 25)[:, None]
  found = jax.vmap(
      lambda x: levenberg_marquardt.minimise(wild, x, num_iterations)
  )(starts)
  assert (wild(found) ** 2 <= wild(starts) ** 2).all()


def test_flat_problem_stays_where_it_is() -> None:
  found = levenberg_marquardt.minimise(
      lambda x: jax.nn.relu(x - 10), jnp.ones(2), 5
  )
  np.testing.assert_array_equal(found, jnp.ones(2))
