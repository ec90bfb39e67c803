"""Where an adaptation starts, and on which examples it takes its steps."""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.learning import estimates
from modular_hyperteacher.learning import inner_loop
from tests.helpers import tiny


def _inner(**fields: Any) -> inner_loop.InnerConfig:
  return inner_loop.InnerConfig(
      num_steps=2, learning_rate=0.1, eps_root=1e-3, **fields
  )


def test_inner_steps_take_as_many_examples_as_asked() -> None:
  world, model, key = tiny.task(), tiny.MODELS['anil'](), jax.random.key(2)
  params = model.init(jax.random.key(1))
  sample = jax.jit(world.sample, static_argnums=2)
  task = sample(world.init(jax.random.key(0)), jax.random.key(0), 'train')
  support = task.support._replace(
      inputs=model.encode(params, task.support.inputs)
  )

  def adapt(batch_size: int | None) -> Any:
    problem = estimates.Problem(world, model, _inner(batch_size=batch_size))
    return jax.jit(problem.adapt)(params, None, task, key)

  loop = inner_loop.InnerLoop(model, world.objective, _inner(batch_size=3))
  draw = inner_loop.from_support(support, 3)
  expected = loop.adapt(params, model.init_fast(params), draw, key)
  for found, whole, value in zip(
      *map(jax.tree.leaves, (adapt(3), adapt(None), expected)), strict=True
  ):
    np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-7)
    assert not np.allclose(whole, value, rtol=1e-2)


def test_random_starts_are_standard_normal() -> None:
  problem = estimates.Problem(
      tiny.task(),
      tiny.MODELS['maml']()._replace(init_fast=lambda _: jnp.zeros(4)),
      _inner(random_start=True),
  )
  keys = jax.random.split(jax.random.key(0), 500)
  starts, left = jax.vmap(lambda k: problem.start((), cast(Any, None), k))(keys)
  starts = np.asarray(starts)
  assert starts.shape == (500, 4)
  # Deviations of the estimates: 0.02 for the mean and 0.016 for the deviation.
  assert abs(starts.mean()) < 0.1 and abs(starts.std() - 1) < 0.08
  assert abs((np.abs(starts) > 1).mean() - 0.317) < 0.05
  assert np.abs(np.corrcoef(starts.T) - np.eye(4)).max() < 0.2
  # Steps draw from another key.
  assert (jax.random.key_data(left) != jax.random.key_data(keys)).any(1).all()
