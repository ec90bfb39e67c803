"""The outer loop: gradients, clipping, skipping, devices, chunks."""

from typing import Any, cast

import jax
from jax import flatten_util
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.models import hypernetwork
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks import objectives
from tests.helpers import slow
from tests.helpers import tiny
from tests.helpers import trees

# All models; those that take longest to compile, with the slow tests.
_SLOW = (
    'nonlinear_hypernetwork',
    'amortised_linear_hypernetwork',
    'amortised_nonlinear_hypernetwork',
    'sparse_maml',
)
_MODELS = slow.mark(tiny.MODELS, _SLOW)


@pytest.mark.parametrize(
    'name',
    slow.mark(
        (
            'maml',
            'linear_hypernetwork',
            'amortised_linear_hypernetwork',
            'sparse_maml',
        ),
        _SLOW + ('linear_hypernetwork',),
    ),
)
def test_second_order_gradient_against_finite_differences(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
  # The stopped gradient of the embeddings' norm is a choice that no finite
  # difference can know of; hypernetwork_test checks it.
  monkeypatch.setattr(hypernetwork.lax, 'stop_gradient', lambda x: x)
  with jax.enable_x64(True):
    world = tiny.task()
    algorithm = tiny.learner(world, name, inner={'num_steps': 3})
    params = trees.double(world.init(jax.random.key(0)))
    keys = jax.random.split(jax.random.key(1), 4)
    drawn = trees.double(
        jax.vmap(lambda key: world.sample(params, key, 'train'))(keys)
    )
    meta_params = trees.double(tiny.MODELS[name]().init(jax.random.key(2)))
    flat, unravel = flatten_util.ravel_pytree(meta_params)
    # Biases start at zero, so units behind a silent layer sit on their kink.
    flat += 0.3 * jax.random.normal(jax.random.key(3), flat.shape)

    @jax.jit
    def loss(flat: jax.Array) -> jax.Array:
      metrics, _ = jax.vmap(
          lambda task, key: algorithm.evaluate_task(
              unravel(flat), None, task, key
          )
      )(drawn, keys)
      return metrics['loss'].mean()

    gradient = jax.jit(jax.grad(loss))(flat)
    assert gradient.dtype == jnp.float64
    for i in range(3):
      direction = jax.random.normal(jax.random.key(10 + i), flat.shape)
      direction /= jnp.linalg.norm(direction)
      h = 1e-6
      difference = (loss(flat + h * direction) - loss(flat - h * direction)) / (
          2 * h
      )
      np.testing.assert_allclose(
          gradient @ direction, difference, rtol=1e-5, atol=1e-9
      )


def _one_step(
    name: str, num_devices: int, chunk_size: int | None = None
) -> Any:
  world = tiny.task()
  algorithm = tiny.learner(world, name, task_chunk_size=chunk_size)
  params = world.init(jax.random.key(0))
  state = algorithm.init(jax.random.key(1))
  step = tiny.on_devices(algorithm.step, num_devices)
  return step(state, params, jax.random.key(2))


# The second one has an optimiser more.
@pytest.mark.parametrize(
    'name', slow.mark(('linear_hypernetwork', 'sparse_maml'), _SLOW)
)
def test_one_and_eight_devices_take_the_same_step(name: str) -> None:
  state, metrics = _one_step(name, 1)
  state_8, metrics_8 = _one_step(name, 8)
  # Not the parameters: AdamW's first step is the sign of the gradient, so
  # rounding decides where the gradient is close to zero.
  # Gates have an AdamW of their own.
  means_8, means = (
      [mean for _, mean in optax.tree.get_all_with_path(s, 'mu')]
      for s in (state_8, state)
  )
  assert len(means) == 1 + (name == 'sparse_maml')
  trees.assert_close(means_8, means, 1e-3, 1e-6)
  trees.assert_close(metrics_8, metrics, 1e-4, 1e-6)
  assert int(state_8.step) == 1


@pytest.mark.parametrize('chunk_size', [4, 5])  # The batch has 8 tasks.
def test_chunks_change_rounding_only(chunk_size: int) -> None:
  state, metrics = _one_step('linear_hypernetwork', 1)
  chunked, chunked_metrics = _one_step('linear_hypernetwork', 1, chunk_size)
  trees.assert_close(
      optax.tree.get(chunked, 'mu'), optax.tree.get(state, 'mu'), 1e-3, 1e-6
  )
  trees.assert_close(chunked_metrics, metrics, 1e-4, 1e-6)


def test_layout_of_narrow_layers_changes_rounding_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  state, metrics = _one_step('linear_hypernetwork', 1)
  monkeypatch.setattr(hypernetwork, '_MAX_NARROW', 0)
  wide, wide_metrics = _one_step('linear_hypernetwork', 1)
  trees.assert_close(
      optax.tree.get(wide, 'mu'), optax.tree.get(state, 'mu'), 1e-3, 1e-6
  )
  trees.assert_close(wide_metrics, metrics, 1e-4, 1e-6)


def test_gradient_is_clipped_before_adamw() -> None:
  config = outer_loop.OuterConfig(
      learning_rate=0.1,
      weight_decay=0.0,
      clip_norm=2.0,
      max_consecutive_skips=1,
      meta_batch_size=1,
  )
  optimizer = outer_loop.make_optimizer(config)
  params = {'a': jnp.zeros(2)}
  long, short = {'a': jnp.array([30.0, 40.0])}, {'a': jnp.array([0.3, 0.4])}
  for gradient, used in ((long, [1.2, 1.6]), (short, [0.3, 0.4])):
    _, state = optimizer.update(gradient, optimizer.init(params), params)
    mean = optax.tree.get(state, 'mu')['a'] / 0.1
    np.testing.assert_allclose(mean, used, rtol=1e-6)


def test_stacked_vectors_are_vectors() -> None:
  """The nonlinear hypernetwork's trunks are stacked over blocks."""
  params = tiny.MODELS['nonlinear_hypernetwork']().init(jax.random.key(0))
  found = outer_loop.is_matrix(params)['generators']['trunks']
  for module, marks in found.items():
    assert marks == {name: name == 'w' for name in marks}, module


def test_decay_acts_on_the_value_before_the_step() -> None:
  config = outer_loop.OuterConfig(
      learning_rate=0.1,
      weight_decay=0.5,
      clip_norm=1.0,
      max_consecutive_skips=1,
      meta_batch_size=1,
  )
  optimizer = outer_loop.make_optimizer(config)
  params = jnp.array([2.0])
  updates, _ = optimizer.update(
      jnp.array([0.25]), optimizer.init(params), params
  )
  # The first step of Adam is the sign of the gradient: -0.1 (1 + 0.5 * 2).
  np.testing.assert_allclose(cast(Any, updates), [-0.2], rtol=1e-5)


def test_non_finite_gradients_are_skipped_once_and_counted() -> None:
  world = tiny.task()
  broken = tasks.Objective(
      lambda outputs, batch: objectives.soft_label_divergence(outputs, batch)
      * jnp.nan,
      lambda outputs, batch: {},
  )
  algorithm = tiny.learner(world, 'anil', objective=broken)
  params = world.init(jax.random.key(0))
  start = algorithm.init(jax.random.key(1))
  step = tiny.on_devices(algorithm.step, 1)
  state, _ = step(start, params, jax.random.key(2))
  trees.assert_close(state.meta_params, start.meta_params, 0, 0)
  assert int(outer_loop.num_skipped(state)) == 1
  assert int(state.step) == 1
  # As in the authors' released code, a second one in a row is applied.
  state, _ = step(state, params, jax.random.key(2))
  leaves = jax.tree.leaves(state.meta_params)
  assert not all(np.isfinite(leaf).all() for leaf in leaves)
  assert int(outer_loop.num_skipped(state)) == 2


def test_no_key_is_used_twice() -> None:
  """Neither in drawing a task nor in adapting to batches of it.

  The checker takes a differentiated scan, and so a whole step, for reuse.
  """
  world = tiny.task()
  params = world.init(jax.random.key(0))
  algorithm = tiny.learner(world, inner={'batch_size': 3})
  meta_params = algorithm.init(jax.random.key(1)).meta_params

  @jax.jit
  def draw_and_adapt(key: jax.Array) -> Any:
    sample_key, adapt_key = jax.random.split(key)
    task = world.sample(params, sample_key, 'train')
    return algorithm.adapt(meta_params, params, task, adapt_key)

  with jax.debug_key_reuse(True):
    jax.block_until_ready(draw_and_adapt(jax.random.key(5)))
