"""ANIL and MAML against NumPy twins: loops in double precision."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.helpers import small_models


def _twin_mlp(layers: Sequence[tuple[Any, Any]], inputs: Any) -> np.ndarray:
  """`layers`: (weights [fan_in, fan_out], biases); ReLU but for the last."""
  outputs = []
  for x in np.asarray(inputs, np.float64):
    for index, (weights, biases) in enumerate(layers):
      x = [
          sum(x[i] * weights[i, j] for i in range(len(x))) + biases[j]
          for j in range(len(biases))
      ]
      if index < len(layers) - 1:
        x = [max(value, 0.0) for value in x]
    outputs.append(x)
  return np.array(outputs)


def _mlp_layers(
    body: Any, readout: Any, num_hidden: int
) -> list[tuple[Any, Any]]:
  names = ['body/linear'] + [f'body/linear_{i}' for i in range(1, num_hidden)]
  assert [name for name in body if name.startswith('body/')] == names
  layers = [(body[name]['w'], body[name]['b']) for name in names]
  return layers + [(readout['readout']['w'].T, readout['readout']['b'])]


@pytest.mark.parametrize('num_hidden', [1, 2, 3])
def test_anil_against_the_twin(num_hidden: int) -> None:
  model, params = small_models.make('anil', num_hidden), small_models.init(
      'anil', num_hidden
  )
  fast_params = model.init_fast(params)
  fast_params = jax.tree.map(lambda x: x - 0.7, fast_params)
  layers = _mlp_layers(
      small_models.double(params['body']),
      small_models.double(fast_params),
      num_hidden,
  )
  outputs = small_models.network('anil', num_hidden)(
      params, fast_params, small_models.inputs()
  )
  expected = _twin_mlp(layers, small_models.inputs())
  np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-4)
  # The encoding is the last hidden layer.
  features = np.asarray(model.encode(params, small_models.inputs()))
  assert features.shape == (6, small_models.H)
  assert (features >= 0).all()
  weights, biases = layers[-1]
  np.testing.assert_allclose(
      features @ weights + biases, expected, rtol=1e-4, atol=1e-4
  )


@pytest.mark.parametrize('num_hidden', [1, 2, 3])
def test_maml_against_the_twin(num_hidden: int) -> None:
  params = small_models.init('maml', num_hidden)
  outputs = small_models.network('maml', num_hidden)(
      params, params, small_models.inputs()
  )
  layers = _mlp_layers(
      small_models.double(params), small_models.double(params), num_hidden
  )
  expected = _twin_mlp(layers, small_models.inputs())
  assert (expected < 0).any()
  np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-4)


def test_maml_decodes_with_fast_parameters_only() -> None:
  model, params = small_models.make('maml'), small_models.init('maml')
  fast_params = model.init_fast(params)
  jax.tree.map(np.testing.assert_array_equal, fast_params, params)
  garbage = jax.tree.map(lambda x: jnp.full_like(x, jnp.nan), params)
  encoding = model.encode(garbage, small_models.inputs())
  np.testing.assert_array_equal(encoding, small_models.inputs())
  np.testing.assert_array_equal(
      model.decode(garbage, fast_params, encoding),
      model.decode(params, fast_params, encoding),
  )


def test_anil_adapts_the_readout_only() -> None:
  model, params = small_models.make('anil'), small_models.init('anil')
  fast_params = model.init_fast(params)
  jax.tree.map(np.testing.assert_array_equal, fast_params, params['readout'])
  # The initial readout does not act on what is decoded afterwards, ...
  garbage = jax.tree.map(lambda x: jnp.full_like(x, jnp.nan), params)
  other = params | {'readout': garbage['readout']}
  encoding = model.encode(other, small_models.inputs())
  outputs = model.decode(garbage, fast_params, encoding)
  expected = small_models.network('anil')(
      params, fast_params, small_models.inputs()
  )
  np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-5)
