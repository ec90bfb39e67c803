"""Continuous and discrete latents (acceptance check 2)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.tasks.supports import latents


def _draw(
    mask: tuple[int, ...], sampler: str, num_draws: int = 20_000
) -> np.ndarray:
  keys = jax.random.split(jax.random.key(0), num_draws)
  draw = lambda key: latents.sample_continuous(key, jnp.array(mask), sampler)
  return np.asarray(jax.vmap(draw)(keys))


@pytest.mark.parametrize('mask', [(1, 0, 0), (0, 1, 1), (1, 1, 1)])
def test_released_sampler_stays_in_range(mask: tuple[int, ...]) -> None:
  drawn, active = _draw(mask, 'released'), np.array(mask, bool)
  assert (drawn[:, ~active] == 0).all()
  assert (drawn[:, active] >= 0.5).all() and (drawn[:, active] < 1).all()
  num_active = active.sum()
  total = drawn.sum(1)
  assert (total >= num_active / 2).all()
  assert (total < (num_active + 1) / 2).all()


def test_released_sampler_with_one_module() -> None:
  # z = 0.5 + 0.5 E / (1 + E), whose mean is 0.702.
  exponential = np.random.default_rng(0).exponential(size=200_000)
  expected = (0.5 + 0.5 * exponential / (1 + exponential)).mean()
  assert expected == pytest.approx(0.702, abs=2e-3)
  mean = _draw((0, 1, 0), 'released')[:, 1].mean()
  assert mean == pytest.approx(expected, abs=3e-3)


@pytest.mark.parametrize('mask', [(1, 0, 0), (0, 1, 1), (1, 1, 1)])
def test_paper_sampler_has_constant_sum(mask: tuple[int, ...]) -> None:
  drawn = _draw(mask, 'paper', 100)
  np.testing.assert_allclose(drawn.sum(1), (sum(mask) + 1) / 2, rtol=1e-6)
  assert ((drawn > 0) == np.array(mask, bool)).all()


def test_discrete_latents() -> None:
  np.testing.assert_allclose(
      latents.normalise(jnp.array([1, 0, 1, 0])),
      [0.5**0.5, 0, 0.5**0.5, 0],
      rtol=1e-6,
  )
