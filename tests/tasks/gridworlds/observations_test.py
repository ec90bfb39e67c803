"""Observations drawn by hand; compact against dense."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.models import anil
from modular_hyperteacher.models import first_layer
from modular_hyperteacher.models import hypernetwork
from modular_hyperteacher.models import linear_hypernetwork
from modular_hyperteacher.models import maml
from modular_hyperteacher.models import nonlinear_hypernetwork
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks.gridworlds import observations
from tests.helpers import slow
from tests.helpers import trees

_WALLS = np.array([[0, 0, 1], [1, 0, 0]], bool)
_LAYOUT = observations.Layout(
    open_cells=(0, 1, 4, 5), num_cells=6, num_types=3, agent=4, walls=3
)
_SIZES = {'output_dim': 4, 'num_hidden': 2, 'hidden_dim': 5}
_MODELS = {
    'anil': anil.make,
    'maml': maml.make,
    'linear_hypernetwork': functools.partial(
        linear_hypernetwork.make, num_modules=3
    ),
    'nonlinear_hypernetwork': functools.partial(
        nonlinear_hypernetwork.make,
        num_modules=3,
        generator_num_hidden=2,
        generator_hidden_dim=6,
    ),
}


def _scenes(
    num_instances: int = 3, num_steps: int = 4, num_objects: int = 2
) -> observations.Scenes:
  """Random ones, in which objects come and go."""
  keys = iter(jax.random.split(jax.random.key(0), 4))
  cells = jnp.array(_LAYOUT.open_cells)
  shape = (num_instances, num_objects)
  return observations.Scenes(
      agent=jax.random.choice(next(keys), cells, (num_instances, num_steps)),
      object_cells=jax.vmap(
          lambda key: jax.random.permutation(key, cells)[:num_objects]
      )(jax.random.split(next(keys), num_instances)),
      object_types=jax.random.randint(next(keys), shape, 0, 3),
      visible=jax.random.bernoulli(
          next(keys), 0.6, (num_instances, num_steps, num_objects)
      ).astype(jnp.float32),
      walls=jnp.asarray(_WALLS.ravel(), jnp.float32),
      layout=_LAYOUT,
  )


def test_neighbours_by_hand() -> None:
  """Two rows, . . # above # . . ; up, right, down, left."""
  expected = [
      [0, 1, 0, 0],
      [1, 1, 4, 0],
      [2, 2, 5, 1],
      [0, 4, 3, 3],
      [1, 5, 4, 4],
      [5, 5, 5, 4],
  ]
  np.testing.assert_array_equal(observations.neighbours(_WALLS), expected)


def test_an_observation_drawn_by_hand() -> None:
  """Object of type 2 in cell 0, one of type 1 in cell 5, agent in cell 4, 1."""
  scenes = observations.Scenes(
      agent=jnp.array([[4, 1]]),
      object_cells=jnp.array([[0, 5]]),
      object_types=jnp.array([[2, 1]]),
      visible=jnp.array([[[1.0, 1.0], [0.0, 1.0]]]),
      walls=jnp.asarray(_WALLS.ravel(), jnp.float32),
      layout=_LAYOUT,
  )
  # One line per cell: types 0, 1, 2, walls, agent.
  first = [
      [0, 0, 1, 0, 0],
      [0, 0, 0, 0, 0],
      [0, 0, 0, 1, 0],
      [0, 0, 0, 1, 0],
      [0, 0, 0, 0, 1],
      [0, 1, 0, 0, 0],
  ]
  second = [
      [0, 0, 0, 0, 0],
      [0, 0, 0, 0, 1],
      [0, 0, 0, 1, 0],
      [0, 0, 0, 1, 0],
      [0, 0, 0, 0, 0],
      [0, 1, 0, 0, 0],
  ]
  assert scenes.shape == (2, 30)
  expected = np.reshape([first, second], (2, 30))
  np.testing.assert_array_equal(scenes.dense(), expected)


def test_columns_are_the_features_that_change() -> None:
  dense = np.asarray(_scenes(200, 10).dense())
  walls = np.arange(6) * 5 + 3
  seen = np.setdiff1d(np.flatnonzero(dense.any(0)), walls)
  np.testing.assert_array_equal(_LAYOUT.columns, seen)


def test_project_is_the_dense_product() -> None:
  scenes = _scenes()
  weights = jax.random.normal(jax.random.key(1), (30, 7))
  expected = np.asarray(scenes.dense(), np.float64) @ np.asarray(weights)
  np.testing.assert_allclose(
      observations.project(scenes, weights), expected, atol=1e-5
  )
  walls = observations.wall_weights(scenes, weights)
  reduced = observations.project_reduced(
      scenes, weights[_LAYOUT.columns], walls
  )
  np.testing.assert_allclose(reduced, expected, atol=1e-5)


def test_gradients_of_project_are_those_of_the_dense_product() -> None:
  scenes = _scenes()
  weights = jax.random.normal(jax.random.key(1), (30, 7))
  cotangent = jax.random.normal(jax.random.key(2), (12, 7))

  def loss(weights: jax.Array, inputs: Any) -> jax.Array:
    return jnp.sum(jnp.sin(observations.project(inputs, weights)) * cotangent)

  def norm_of_gradient(weights: jax.Array, inputs: Any) -> jax.Array:
    return jnp.sum(jax.grad(loss)(weights, inputs) ** 2)

  for function in (loss, norm_of_gradient):
    gradient = jax.jit(jax.grad(function))
    np.testing.assert_allclose(
        gradient(weights, scenes),
        gradient(weights, scenes.dense()),
        rtol=1e-6,
        atol=2e-5,
    )


def test_take_picks_rows() -> None:
  scenes = _scenes()
  rows = jnp.array([7, 0, 7, 11, 4])
  batch = base.Batch(scenes, jnp.arange(12), jnp.arange(12) / 12)
  taken = base.take(batch, rows)
  np.testing.assert_array_equal(taken.inputs.dense(), scenes.dense()[rows])
  np.testing.assert_array_equal(taken.targets, rows)


@pytest.mark.parametrize(
    'name, num_instances',
    slow.mark(
        [*((name, 1) for name in _MODELS), ('linear_hypernetwork', 20)],
        [('linear_hypernetwork', 20), ('nonlinear_hypernetwork', 1)],
    ),
)
def test_models_do_not_see_the_form_of_their_inputs(
    name: str, num_instances: int
) -> None:
  """Few rows are mixed after the first layer, many are looked up in it."""
  model = _MODELS[name](input_dim=30, **_SIZES)
  rows = jnp.array([1, 0, 1])

  def evaluate(meta_params: Any, inputs: Any) -> Any:
    """Outputs, those of some rows, and the gradient through a gradient step."""

    def network(
        meta_params: Any, fast_params: Any, rows: jax.Array | None = None
    ) -> jax.Array:
      encoding = model.encode(meta_params, inputs)
      encoding = encoding if rows is None else base.take(encoding, rows)
      return model.decode(meta_params, fast_params, encoding)

    def adapted_loss(meta_params: Any) -> jax.Array:
      inner = lambda fast: jnp.mean(network(meta_params, fast) ** 2)
      stepped = jax.tree.map(
          lambda x, g: x - 0.1 * g, fast_params, jax.grad(inner)(fast_params)
      )
      return jnp.mean(network(meta_params, stepped) ** 2)

    fast_params = model.init_fast(meta_params)
    outputs = network(meta_params, fast_params)
    some = network(meta_params, fast_params, rows)
    return outputs, some, jax.grad(adapted_loss)(meta_params)

  @jax.jit
  def both(key: jax.Array) -> Any:
    meta_params, scenes = model.init(key), _scenes(num_instances, 2)
    return evaluate(meta_params, scenes), evaluate(meta_params, scenes.dense())

  compact, dense = both(jax.random.key(0))
  trees.assert_close(compact[:2], dense[:2], rtol=1e-4, atol=1e-5)
  trees.assert_close(compact[2], dense[2], rtol=1e-3, atol=1e-5)
  np.testing.assert_allclose(compact[1], dense[0][rows], rtol=1e-4, atol=1e-5)


def test_few_and_many_rows_take_different_ways() -> None:
  """Or the tests above test one of them twice."""
  bank = jnp.ones((3, 31 * 5))
  block = hypernetwork.Block(1, 30, 5)
  few = first_layer.encode(_scenes(1, 2), bank, block.fan_out)
  many = first_layer.encode(_scenes(20, 2), bank, block.fan_out)
  assert isinstance(few, first_layer.Mixture)
  assert isinstance(many, first_layer.Reduced)
