"""Linear decoding against closed forms, brute force and reference numbers."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.analysis import base
from modular_hyperteacher.analysis import decoding
from modular_hyperteacher.analysis import ridge
from tests.helpers import golden
from tests.helpers import tiny

_NO_TASK: Any = None  # Nothing asks it: what is decoded are latents.
_NO_MODEL: Any = None


def draw(seed: int, *shape: int) -> np.ndarray:
  return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# Ridge regression.


@pytest.mark.parametrize('num_features', [3, 40], ids=['primal', 'dual'])
def test_exact_ridge_is_the_closed_form(num_features: int) -> None:
  features, new = draw(0, 12, num_features), draw(1, 5, num_features)
  targets = draw(2, 12, 2)
  x = features.astype(float)
  weights = np.linalg.inv(x.T @ x + 0.7 * np.eye(num_features)) @ x.T @ targets
  decoded = ridge.predict_exactly(features, targets, new, 0.7)
  np.testing.assert_allclose(decoded, new @ weights, rtol=1e-6)


def test_exact_ridge_in_blocks_is_that_in_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  arguments = draw(0, 12, 40), draw(1, 12, 2), draw(2, 5, 40), 0.7
  whole = ridge.predict_exactly(*arguments)
  monkeypatch.setattr(ridge, '_BLOCK', 7)
  np.testing.assert_allclose(ridge.predict_exactly(*arguments), whole)


def test_conjugate_gradients_are_exact_within_ten_dimensions() -> None:
  features, targets = draw(0, 30, 6), draw(1, 30, 3)
  weights = ridge.fit_by_conjugate_gradients(
      jnp.asarray(features), jnp.asarray(targets), 1.0
  )
  expected = np.linalg.solve(
      features.T @ features + np.eye(6), features.T @ targets
  )
  np.testing.assert_allclose(weights, expected, rtol=1e-4, atol=1e-5)


def test_conjugate_gradients_stop_after_ten_iterations() -> None:
  """Textbook iterations, of which forty dimensions would need more."""
  scales = np.linspace(1, 30, 40, dtype=np.float32)
  features, target = draw(0, 60, 40) * scales, draw(1, 60)
  system = features.T.astype(float) @ features + np.eye(40)
  x, r = np.zeros(40), features.T.astype(float) @ target
  p = r
  for _ in range(10):
    step = r @ r / (p @ system @ p)
    x, new_r = x + step * p, r - step * system @ p
    p, r = new_r + (new_r @ new_r) / (r @ r) * p, new_r
  weights = ridge.fit_by_conjugate_gradients(
      jnp.asarray(features), jnp.asarray(target[:, None]), 1.0
  )
  np.testing.assert_allclose(weights[:, 0], x, rtol=1e-2, atol=1e-4)
  exact = np.linalg.solve(system, features.T @ target)
  assert np.abs(weights[:, 0] - exact).max() > 1e-3


def test_r2_is_one_zero_and_undefined() -> None:
  target = np.array([[0.0, 1.0, 2.0], [1.0, 1.0, 4.0]])
  prediction = np.array([[0.0, 1.0, 3.0], [1.0, 1.0, 3.0]])
  np.testing.assert_allclose(ridge.r2(prediction, target), [1, np.nan, 0])
  # The float32 mean of these equal numbers is another number.
  equal = np.full((256, 1), 6**-0.5, np.float32)
  assert np.isnan(ridge.r2(equal + 1, equal)).all()


# Decoding.


def test_the_intercept_is_off_in_the_fit_where_a_feature_is_zero() -> None:
  features, latents = draw(0, 20, 3), draw(1, 20, 1, 2)
  features[4, 1] = features[9, 2] = 0.0
  ones = np.ones(20)
  ones[[4, 9]] = 0.0
  x = np.column_stack([features, ones]).astype(float)
  expected = np.linalg.solve(x.T @ x + np.eye(4), x.T @ latents[:, 0])
  weights = decoding.fit(features, latents)
  np.testing.assert_allclose(weights[:, 0], expected, rtol=1e-3, atol=1e-4)
  new = draw(2, 5, 3)
  new[0, 0] = 0.0
  np.testing.assert_allclose(
      decoding.predict(weights, new)[:, 0],
      np.column_stack([new, np.ones(5)]) @ expected,
      rtol=1e-3,
      atol=1e-4,
  )


def test_the_exact_ridge_penalises_the_intercept() -> None:
  features, latents = draw(0, 20, 3), 5 + draw(1, 20, 1, 1)
  x = np.column_stack([features, np.ones(20)]).astype(float)
  expected = np.linalg.solve(x.T @ x + np.eye(4), x.T @ latents[:, 0, 0])
  new = np.zeros((1, 3), np.float32)
  decoded = decoding.predict_exactly(features, latents, new)
  np.testing.assert_allclose(decoded[0, 0, 0], expected[-1], rtol=1e-6)


def _adapted(
    map_: np.ndarray, test_latents: np.ndarray, ood_latents: np.ndarray
) -> base.Adapted:
  """Fast parameters that are a linear map of the latents."""

  def fast(latents: np.ndarray) -> dict[str, np.ndarray]:
    flat = latents.reshape(len(latents), -1) @ map_
    return {'a': flat[:, :4].reshape(-1, 2, 2), 'b': flat[:, 4:]}

  latents = {'test': test_latents, 'ood': ood_latents}
  return base.Adapted(
      task_params=(),
      meta_params=(),
      latents=latents,
      fast_params={split: fast(z) for split, z in latents.items()},
      key=jax.random.key(0),
  )


def test_latents_are_decoded_from_a_linear_map_of_them() -> None:
  masks = np.random.default_rng(0).random((2, 200, 2, 3)) < 0.5
  latents = masks.astype(np.float32)
  measured = decoding.make_analysis(_NO_TASK, _NO_MODEL).measure(
      _adapted(20 * draw(1, 6, 9), *latents)
  )['ood']
  names = [f'_l{layer}_m{module}' for layer in range(2) for module in range(3)]
  assert set(measured) == {
      kind + name for kind in ('r2', 'r2_exact') for name in ['', *names]
  }
  for kind in ('r2', 'r2_exact'):
    assert measured[kind] > 0.999
    of_target = [measured[kind + name] for name in names]
    assert measured[kind] == pytest.approx(np.mean(of_target))


def test_parameters_that_say_nothing_decode_nothing() -> None:
  masks = np.random.default_rng(0).random((2, 400, 2, 3)) < 0.5
  test, ood = masks.astype(np.float32)
  adapted = _adapted(draw(1, 6, 9), test, ood)
  noise = {s: {'a': draw(i, 400, 9)} for i, s in enumerate(('test', 'ood'))}
  measured = decoding.make_analysis(_NO_TASK, _NO_MODEL).measure(
      adapted._replace(fast_params=noise)
  )['ood']
  assert abs(measured['r2_exact']) < 0.1


def test_targets_that_do_not_vary_are_missing_and_leave_the_mean() -> None:
  """As with non-compositional support: module 2 of the last layer."""
  masks = np.random.default_rng(0).random((2, 200, 2, 3)) < 0.5
  test, ood = masks.astype(np.float32)
  test[:, 1, 2], ood[:, 1, 2] = 0.0, 1.0
  measured = decoding.make_analysis(_NO_TASK, _NO_MODEL).measure(
      _adapted(20 * draw(1, 6, 9), test, ood)
  )['ood']
  missing = [name for name, value in measured.items() if np.isnan(value)]
  assert missing == ['r2_l1_m2', 'r2_exact_l1_m2']
  assert np.isfinite(measured['r2'])


@pytest.mark.parametrize('name', list(tiny.MODELS))
def test_all_fast_parameters_of_all_models_are_features(name: str) -> None:
  model = tiny.MODELS[name]()
  fast = model.init_fast(model.init(jax.random.key(0)))
  tasks = jax.tree.map(lambda x: np.stack([x, 2 * x]), fast)
  features = decoding.flatten(tasks)
  assert features.shape == (2, sum(x.size for x in jax.tree.leaves(fast)))
  np.testing.assert_array_equal(features[1], 2 * features[0])


# Reference numbers.


@pytest.mark.parametrize('suffix', ['', '_with_zeros'])
@pytest.mark.parametrize('prefix', ['well_', ''])
def test_decoding_agrees_with_the_released_code(
    prefix: str, suffix: str
) -> None:
  data = golden.load('decoding')
  weights = decoding.fit(data[f'{prefix}x_test{suffix}'], data['latent_test'])
  decoded = decoding.predict(weights, data[f'{prefix}x_ood'])
  scores = decoding.score(np.asarray(decoded), data['latent_ood'], 'r2')
  r2 = [scores[f'r2_l{layer}_m{m}'] for layer in range(2) for m in range(4)]
  expected = data[f'{prefix}r2{suffix}'].reshape(-1)
  # Without 'well_', rounding decides: the released code's own numbers differ
  # by up to 0.07 between single and double precision.
  np.testing.assert_allclose(r2, expected, atol=1e-4 if prefix else 0.1)
  if prefix:
    golden.assert_close(weights, data[f'well_weight{suffix}'], 1e-4, 'weight')
    golden.assert_close(
        decoded, data[f'well_prediction_ood{suffix}'], 1e-4, 'prediction'
    )
