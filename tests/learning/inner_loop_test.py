"""The inner loop against hand-computed steps."""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks import objectives
from tests.helpers import tiny
from tests.helpers import trees

# A model without a network: the output is the fast parameter itself.
_POINT = models.MetaModel(
    init=lambda key: jnp.zeros(3),
    init_fast=lambda meta_params: meta_params,
    encode=models.identity_encoding,
    decode=lambda meta_params, fast_params, encoding: fast_params,
)


def _quadratic(outputs: jax.Array, batch: tasks.Batch) -> jax.Array:
  return 0.5 * jnp.sum((outputs - batch.targets[0]) ** 2)


_QUADRATIC = tasks.Objective(
    loss=_quadratic,
    metrics=lambda outputs, batch: {},
    residuals=lambda outputs, batch: outputs - batch.targets[0],
)


def _batch(target: Any) -> tasks.Batch:
  return tasks.Batch(jnp.zeros((1, 1)), jnp.asarray(target)[None], jnp.ones(1))


def _config(**overrides: Any) -> inner_loop.InnerConfig:
  fields: dict[str, Any] = dict(
      num_steps=3, learning_rate=0.1, weight_decay=0.01, eps_root=1e-3
  )
  return inner_loop.InnerConfig(**(fields | overrides))


def test_adamw_with_eps_root_by_hand() -> None:
  target = np.array([1.0, -2.0, 0.5])
  phi = np.array([0.3, 0.1, 0.5])
  mean, variance = np.zeros(3), np.zeros(3)
  expected = phi.copy()
  for step in range(1, 4):
    gradient = expected - target
    mean = 0.9 * mean + 0.1 * gradient
    variance = 0.999 * variance + 0.001 * gradient**2
    corrected = mean / (1 - 0.9**step)
    scale = np.sqrt(variance / (1 - 0.999**step) + 1e-3) + 1e-8
    expected = expected - 0.1 * (corrected / scale + 0.01 * expected)
  adapt = inner_loop.InnerLoop(_POINT, _QUADRATIC, _config()).adapt
  # 1 - 0.999**step loses three of float32's seven digits.
  with jax.enable_x64(True):
    start = jnp.asarray(phi)
    actual = adapt(start, start, lambda key: _batch(target), jax.random.key(0))
  np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_momentum_by_hand() -> None:
  phi, target = np.array([0.3, 0.1, 0.5]), np.array([1.0, -2.0, 0.5])
  velocity = phi - target
  expected = phi - 0.1 * velocity
  velocity = 0.9 * velocity + (expected - target)
  expected = expected - 0.1 * velocity
  config = inner_loop.InnerConfig(
      num_steps=2, learning_rate=0.1, solver='sgd', momentum=0.9
  )
  actual = inner_loop.InnerLoop(_POINT, _QUADRATIC, config).adapt(
      (), jnp.asarray(phi), lambda key: _batch(target), jax.random.key(0)
  )
  np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize('eps_root, finite', [(0.0, False), (1e-7, True)])
def test_eps_root_keeps_second_order_finite(
    eps_root: float, finite: bool
) -> None:
  # At the optimum the inner gradient is zero, where sqrt has no derivative.
  adapt = inner_loop.InnerLoop(
      _POINT, _QUADRATIC, _config(eps_root=eps_root)
  ).adapt
  target = jnp.array([1.0, 2.0, 3.0])

  def outer(phi: jax.Array) -> jax.Array:
    draw = lambda key: _batch(target)
    return adapt(phi, phi, draw, jax.random.key(0)).sum()

  assert bool(jnp.isfinite(jax.grad(outer)(target)).all()) == finite


def test_fresh_data_at_every_step() -> None:
  seen = []

  def draw(key: jax.Array) -> tasks.Batch:
    value = jax.random.normal(key, (3,))
    jax.debug.callback(lambda v: seen.append(np.asarray(v)), value)
    return _batch(value)

  adapt = inner_loop.InnerLoop(_POINT, _QUADRATIC, _config(num_steps=4)).adapt
  adapt(jnp.zeros(3), jnp.zeros(3), draw, jax.random.key(0))
  jax.effects_barrier()
  assert len({tuple(v) for v in seen}) == 4


def test_fresh_data_have_no_batch_size() -> None:
  with pytest.raises(errors.UserError, match='batch_size is 7; with fresh_sup'):
    _config(fresh_support=True, batch_size=7)


def test_draw_from_support() -> None:
  support = tasks.Batch(
      jnp.arange(5.0)[:, None], jnp.arange(5.0)[:, None] * 10, jnp.ones(5)
  )
  whole = inner_loop.from_support(support, None)(jax.random.key(0))
  assert whole is support
  draw = inner_loop.from_support(support, 64)
  batch = draw(jax.random.key(1))
  assert batch.inputs.shape == (64, 1)
  np.testing.assert_array_equal(batch.inputs * 10, batch.targets)
  assert set(np.asarray(batch.inputs[:, 0])) == set(range(5))
  other = draw(jax.random.key(2))
  assert not np.array_equal(batch.inputs, other.inputs)


@pytest.mark.parametrize('name', ['maml', 'linear_hypernetwork'])
def test_joining_leaves_changes_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
  world = tiny.task()
  params = world.init(jax.random.key(0))
  task = world.sample(params, jax.random.key(1), 'train')
  adapted = []
  for max_joined in (0, 10**6):
    monkeypatch.setattr(inner_loop, '_MAX_JOINED', max_joined)
    algorithm = tiny.learner(world, name)
    meta_params = tiny.MODELS[name]().init(jax.random.key(2))
    _, fast = algorithm.evaluate_task(
        meta_params, None, task, jax.random.key(3)
    )
    adapted.append(fast)
  trees.assert_close(*adapted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('ahead', [1, 2, 4])
def test_drawing_ahead_changes_nothing(
    ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
  monkeypatch.setattr(inner_loop, '_DRAWN_AHEAD', ahead)
  config = _config(num_steps=8, fresh_support=True, second_order=False)
  adapt = inner_loop.InnerLoop(_POINT, _QUADRATIC, config).adapt
  draw = lambda key: _batch(jax.random.normal(key, (3,)))
  adapted = adapt(jnp.zeros(3), jnp.zeros(3), draw, jax.random.key(0))
  # Eight steps, one after the other, on the same keys.
  optimizer = inner_loop.make_optimizer(config)
  phi = jnp.zeros(3)
  state = optimizer.init(phi)
  for key in jax.random.split(jax.random.key(0), 8):
    gradient = phi - draw(key).targets[0]
    updates, state = optimizer.update(gradient, state, phi)
    phi = phi + cast(jax.Array, updates)
  np.testing.assert_allclose(adapted, phi, rtol=1e-5)


@pytest.mark.parametrize('part', ['gate', 'penalty'])
def test_least_squares_take_neither_gates_nor_penalties(part: str) -> None:
  """They would have no effect."""
  config = inner_loop.InnerConfig(
      num_steps=1, solver='levenberg_marquardt', second_order=False
  )
  model = tiny.MODELS['maml']()
  inner_loop.check(config, objectives.REGRESSION, model)
  with pytest.raises(errors.UserError, match='gates or a penalty, so choose'):
    inner_loop.check(
        config,
        objectives.REGRESSION,
        model._replace(**{part: lambda *_: 1.0}),
    )
