"""Rules on a quadratic problem, where all is known in closed form."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.studies.outer_gradients import quadratic
from modular_hyperteacher.studies.outer_gradients import rules
from modular_hyperteacher.studies.outer_gradients import surrogates
from tests.studies.outer_gradients import quadratic_problem

_OUTER: dict[str, Any] = {
    'learning_rate': 1.0,
    'clip_norm': None,
    'meta_batch_size': 1,
    'weight_decay': 0.0,
    'max_consecutive_skips': 0,
}
_BETAS = (0.001, 0.01, 0.03, 0.1, 0.3)
_STANDARD, _SYMMETRIC = 'contrastive_standard', 'contrastive_symmetric'
# The specification's table: N, T, rule -> relative errors over beta.
_TABLE = {
    (10, 10, _STANDARD): (15.8, 2.1, 1.15, 0.88, 0.89),
    (10, 10, _SYMMETRIC): (0.62, 0.62, 0.62, 0.58, 0.29),
    (50, 25, _STANDARD): (1.8, 0.42, 0.42, 0.60, 0.80),
    (50, 25, _SYMMETRIC): (0.20, 0.19, 0.16, 0.38, 22.7),
    (1000, 500, _STANDARD): (0.015, 0.13, 0.30, 0.58, 0.80),
    (1000, 500, _SYMMETRIC): (0.0, 0.026, 0.33),
}
# N, T -> cosines of the standard rule with the unrolled gradient.
_COSINES = {
    (10, 10): (-0.98, -0.97, -0.87, 0.99, 1.00),
    (50, 25): (-0.71, 0.99),
}


@pytest.fixture(autouse=True)
def fixture_precise() -> Iterator[None]:
  with jax.enable_x64(True):
    yield


def _contrastive(name: str, beta: float, steps: int) -> rules.Contrastive:
  return rules.Contrastive(
      gradient=name,
      beta=beta,
      num_nudged_steps=steps,
      max_query_loss=1e300,
      **_OUTER,
  )


@pytest.mark.parametrize('name', surrogates.CONTRASTS)
@pytest.mark.parametrize('num_free, num_last', [(10, 10), (50, 25)])
def test_contrasts_are_their_closed_form(
    name: str, num_free: int, num_last: int
) -> None:
  problem = quadratic_problem.make_problem(num_free)
  for beta in (0.01, 0.3):
    found = quadratic_problem.gradient(
        _contrastive(name, beta, num_last), problem
    )
    expected = quadratic.closed_form(
        surrogates.CONTRASTS[name], num_free, num_last, beta
    )
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize('num_free, num_last, name', _TABLE)
def test_the_table_of_the_specification(
    num_free: int, num_last: int, name: str
) -> None:
  """It does not say where theta and c are, so ours are close, not equal."""
  errors = [
      quadratic.compare(
          quadratic.closed_form(
              surrogates.CONTRASTS[name], num_free, num_last, beta
          ),
          quadratic.exact(),
      )[0]
      for beta in _BETAS
  ]
  given = _TABLE[num_free, num_last, name]
  np.testing.assert_allclose(errors[: len(given)], given, rtol=0.25, atol=5e-4)
  assert all(error > 1e6 for error in errors[len(given) :])  # 'diverges'


@pytest.mark.parametrize('num_free, num_last', _COSINES)
def test_at_small_beta_the_standard_rule_points_away(
    num_free: int, num_last: int
) -> None:
  for beta, given in zip(_BETAS, _COSINES[num_free, num_last]):
    found = quadratic.closed_form(
        surrogates.CONTRASTS[_STANDARD], num_free, num_last, beta
    )
    _, cosine = quadratic.compare(found, quadratic.unrolled(num_free))
    assert cosine == pytest.approx(given, abs=0.03)


def test_biases_of_converged_phases() -> None:
  """a / (a + b) of the gradient is left, a^2 / (a^2 - b^2), or all of it."""
  a, beta = quadratic.CURVATURES, 0.02
  problem = quadratic_problem.make_problem(2000)
  for name, share in (
      (_STANDARD, a / (a + beta)),
      ('contrastive_rescaled', a / (a + beta)),
      (_SYMMETRIC, a**2 / (a**2 - beta**2)),
      ('linearised_control', np.ones(20)),
  ):
    found = quadratic_problem.gradient(_contrastive(name, beta, 2000), problem)
    np.testing.assert_allclose(found, share * quadratic.exact(), rtol=1e-6)


@pytest.mark.parametrize(
    'rule',
    [
        outer_loop.OuterConfig(**_OUTER),
        rules.Truncated(gradient='truncated', num_differentiated=10, **_OUTER),
        rules.Implicit(gradient='implicit_neumann', num_iterations=9, **_OUTER),
        _contrastive('linearised_control', 0.7, 10),
    ],
    ids=lambda rule: rule.gradient,
)
def test_these_are_the_unrolled_gradient(rule: outer_loop.OuterConfig) -> None:
  """For T = N, up to the gradient of the start, which is zero here."""
  problem = quadratic_problem.make_problem(10)
  found = quadratic_problem.gradient(rule, problem)
  np.testing.assert_allclose(found, quadratic.unrolled(10), rtol=1e-8)


def test_implicit_gradients_of_a_converged_phase() -> None:
  problem = quadratic_problem.make_problem(2000)
  exact = quadratic.exact()
  for name, number, share in (
      ('implicit_cg', 20, np.ones(20)),
      ('implicit_neumann', 4, 1 - (1 - quadratic.CURVATURES) ** 5),
      ('t1_t2', None, quadratic.CURVATURES),
  ):
    rule = rules.Implicit(gradient=name, num_iterations=number, **_OUTER)
    found = quadratic_problem.gradient(rule, problem)
    np.testing.assert_allclose(found, share * exact, rtol=1e-6)


def test_conjugate_gradients_stop_where_curvature_is_not_positive() -> None:
  solve = surrogates.conjugate_gradients(5)
  curvatures = jnp.array([1.0, -2.0])
  found = solve(lambda v: curvatures * v, jnp.array([0.0, 1.0]))
  np.testing.assert_array_equal(np.asarray(found), 0.0)
