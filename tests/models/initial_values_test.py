"""Initial values of all models."""

import math
from typing import Any

import jax
import numpy as np
import pytest

from modular_hyperteacher.models import hypernetwork
from modular_hyperteacher.models import linear_hypernetwork
from modular_hyperteacher.models import nonlinear_hypernetwork
from tests.helpers import small_models

# The deviation of a standard normal that is cut at two deviations.
_TRUNCATED_STD = 0.87962566


def test_generated_weights_have_a_deviation_of_088() -> None:
  """Spec 13.4, D6: not corrected for the truncation."""
  model = linear_hypernetwork.make(
      input_dim=16, output_dim=8, num_hidden=3, hidden_dim=128, num_modules=16
  )
  params = jax.jit(model.init)(jax.random.key(0))
  for block, rows in small_models.double(params['embeddings']).items():
    bank = np.asarray(params['generators'][block]['w'], np.float64)
    for generated in small_models.normalise(rows) @ bank:
      error = 5 * _TRUNCATED_STD / math.sqrt(2 * len(generated))
      assert abs(generated.std() - _TRUNCATED_STD) < 1.5 * error, block
      assert abs(generated.mean()) < 2 * error


@pytest.mark.parametrize('num_hidden', [1, 2, 3, 5])
def test_initial_embeddings(num_hidden: int) -> None:
  """Spec 8.3: uniform; variance 1, and 1/(L-1) for the hidden ones."""
  size = 20_000
  blocks = hypernetwork.base_blocks(
      small_models.X, small_models.Y, num_hidden, small_models.H
  )
  embeddings = small_models.double(
      hypernetwork.init_embeddings(jax.random.key(0), blocks, size)
  )
  num_layers = {'input': 1, 'hidden': num_hidden - 1, 'output': 1}
  assert embeddings.keys() == {k for k, v in num_layers.items() if v}
  for name, rows in embeddings.items():
    assert rows.shape == (num_layers[name], size)
    variance = 1 / num_layers[name]
    bound = math.sqrt(3 * variance)
    assert np.abs(rows).max() <= bound
    assert np.abs(rows).max() > 0.999 * bound
    count = rows.size
    # Kurtosis of a uniform distribution: 9/5.
    assert abs(rows.mean()) < 5 * math.sqrt(variance / count)
    assert abs(rows.var() - variance) < 5 * variance * math.sqrt(0.8 / count)
  rows = np.concatenate(list(embeddings.values()))
  correlation = np.corrcoef(rows) - np.eye(len(rows))
  assert np.abs(correlation).max() < 5 / math.sqrt(size)


def _assert_truncated_normal(weights: Any, scale: float) -> None:
  weights = np.asarray(weights)
  assert np.abs(weights).max() <= 2 * scale * (1 + 1e-6)
  assert np.abs(weights).max() > 1.7 * scale
  tolerance = 5 / math.sqrt(weights.size)
  assert abs(weights.std() / scale - _TRUNCATED_STD) < tolerance
  assert abs(weights.mean() / scale) < tolerance


@pytest.mark.parametrize('name', ['anil', 'maml'])
def test_initial_values_of_networks(name: str) -> None:
  """Spec 8.1: truncated normal, scale 1/sqrt(fan_in), cut at two; biases 0."""
  model = small_models.MLPS[name].make(
      input_dim=20, output_dim=10, num_hidden=3, hidden_dim=40
  )
  params = jax.jit(model.init)(jax.random.key(0))
  body = params['body'] if name == 'anil' else params
  for suffix, fan_in in (('', 20), ('_1', 40), ('_2', 40)):
    layer = body[f'body/linear{suffix}']
    assert layer['w'].shape == (fan_in, 40)
    _assert_truncated_normal(layer['w'], 1 / math.sqrt(fan_in))
    np.testing.assert_array_equal(layer['b'], np.zeros(40))
  readout = params['readout']
  if name == 'anil':
    readout = readout['readout']
  assert readout['w'].shape == (10, 40)
  _assert_truncated_normal(readout['w'], 1 / math.sqrt(40))
  np.testing.assert_array_equal(readout['b'], np.zeros(10))
  # No layer copies another's key.
  assert (body['body/linear_1']['w'] != body['body/linear_2']['w']).all()


def test_initial_values_of_the_linear_generators() -> None:
  params = small_models.compiled_init('linear_hypernetwork')(jax.random.key(0))
  params = params['generators']
  assert params.keys() == {'input', 'hidden', 'output'}
  sizes = {
      'input': small_models.X,
      'hidden': small_models.H,
      'output': small_models.H,
  }
  outputs = {
      'input': small_models.H,
      'hidden': small_models.H,
      'output': small_models.Y,
  }
  for block, generator in params.items():
    assert generator.keys() == {'w'}, 'a generator has no bias'
    size = (sizes[block] + 1) * outputs[block]
    assert generator['w'].shape == (small_models.MODULES, size)
    _assert_truncated_normal(
        generator['w'], 1 / math.sqrt(small_models.MODULES)
    )


def test_initial_values_of_the_nonlinear_generators() -> None:
  model = nonlinear_hypernetwork.make(
      input_dim=10,
      output_dim=6,
      num_hidden=3,
      hidden_dim=20,
      num_modules=24,
      generator_num_hidden=4,
      generator_hidden_dim=32,
  )
  generators = jax.jit(model.init)(jax.random.key(0))['generators']
  trunks = generators['trunks']
  assert len(trunks) == 9  # One norm in front, then four layers and norms.
  for layer in range(5):
    norm = trunks[f'layer_norm_{layer}' if layer else 'layer_norm']
    width = 32 if layer else 24
    np.testing.assert_array_equal(norm['scale'], np.ones((3, width)))
    np.testing.assert_array_equal(norm['offset'], np.zeros((3, width)))
  for layer in range(4):
    linear = trunks[f'linear_{layer}' if layer else 'linear']
    fan_in = 32 if layer else 24
    assert linear['w'].shape == (3, fan_in, 32)
    for weights in linear['w']:
      _assert_truncated_normal(weights, 1 / math.sqrt(fan_in))
    # The three generators are drawn independently.
    assert (linear['w'][0] != linear['w'][1]).all()
    assert (linear['w'][1] != linear['w'][2]).all()
    np.testing.assert_array_equal(linear['b'], np.zeros((3, 32)))
  sizes = {'input': 11 * 20, 'hidden': 21 * 20, 'output': 21 * 6}
  assert generators['heads'].keys() == sizes.keys()
  for block, size in sizes.items():
    assert generators['heads'][block].keys() == {'w'}
    assert generators['heads'][block]['w'].shape == (32, size)
    _assert_truncated_normal(generators['heads'][block]['w'], 1 / math.sqrt(32))


@pytest.mark.parametrize('name', [*small_models.NAMES, 'modular_student'])
def test_init_follows_the_key(name: str) -> None:
  init = small_models.compiled_init(name)
  one, again, other = (init(jax.random.key(seed)) for seed in (0, 0, 1))
  jax.tree.map(np.testing.assert_array_equal, one, again)
  differ = jax.tree.map(lambda a, b: (a != b).all(), one, other)
  # All weights and embeddings; not the biases, scales and offsets.
  for path, different in jax.tree.leaves_with_path(differ):
    constant = path[-1].key in ('b', 'scale', 'offset')
    assert different != constant, jax.tree_util.keystr(path)
