"""Hypernetworks against NumPy twins, and gradients of embeddings.

The twins are loops in double precision that know only the parameters.
"""

from collections.abc import Mapping, Sequence
import math
from typing import Any

import hypothesis
from hypothesis import strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.models import hypernetwork
from tests.helpers import small_models

# Base network.


def _twin_base_network(
    layers: Sequence[tuple[int, int, np.ndarray]], inputs: Any
) -> np.ndarray:
  """`layers`: (fan_in, fan_out, flat vector); loops over all entries."""
  outputs = []
  for x in np.asarray(inputs, np.float64):
    for index, (fan_in, fan_out, flat) in enumerate(layers):
      assert len(flat) == fan_out + fan_in * fan_out
      assert len(x) == fan_in
      pre = []
      for j in range(fan_out):
        total = flat[j]  # The bias comes first.
        for i in range(fan_in):  # Then the weights, row by row.
          total += x[i] * flat[fan_out + i * fan_out + j] / math.sqrt(fan_in)
        pre.append(total)
      last = index == len(layers) - 1
      x = pre if last else [max(value, 0.0) for value in pre]
    outputs.append(x)
  return np.array(outputs)


def _layers_of(
    generated: Mapping[str, Any],
) -> list[tuple[int, int, np.ndarray]]:
  """Flat vectors per block -> layers of the twin."""
  sizes = {
      'input': (small_models.X, small_models.H),
      'hidden': (small_models.H, small_models.H),
      'output': (small_models.H, small_models.Y),
  }
  return [
      (*sizes[name], flat)
      for name in ('input', 'hidden', 'output')
      for flat in generated.get(name, ())
  ]


@pytest.mark.parametrize('num_hidden', [1, 2, 3, 4])
def test_base_network_against_the_twin(num_hidden: int) -> None:
  blocks = hypernetwork.base_blocks(
      small_models.X, small_models.Y, num_hidden, small_models.H
  )
  names = ['input', 'hidden', 'output']
  if num_hidden == 1:
    names.remove('hidden')
  assert list(blocks) == names
  assert sum(block.num_layers for block in blocks.values()) == num_hidden + 1
  keys = jax.random.split(jax.random.key(0), len(blocks))
  generated = {
      name: jax.random.normal(key, (block.num_layers, block.size))
      for key, (name, block) in zip(keys, blocks.items())
  }
  outputs = hypernetwork.base_network(generated, blocks, small_models.inputs())
  expected = _twin_base_network(
      _layers_of(small_models.double(generated)), small_models.inputs()
  )
  assert (expected < 0).any(), 'no negative output: cannot tell a ReLU'
  np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-5)


def test_split_layer_by_hand() -> None:
  block = hypernetwork.Block(1, 2, 3)
  assert block.size == 9
  weights, bias = hypernetwork.split_layer(jnp.arange(9), block)
  np.testing.assert_array_equal(bias, [0, 1, 2])
  np.testing.assert_array_equal(weights, [[3, 4, 5], [6, 7, 8]])


# Hypernetworks as a whole.


def _twin_linear_generators(
    params: Any, embeddings: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
  """Each row of a generator's matrix is a module."""
  return {
      name: np.array([
          sum(z * row for z, row in zip(embedding, params[name]['w']))
          for embedding in rows
      ])
      for name, rows in embeddings.items()
  }


def _twin_layer_norm(x: np.ndarray, params: Any) -> np.ndarray:
  mean = x.sum() / len(x)
  variance = ((x - mean) ** 2).sum() / len(x)
  normed = (x - mean) / math.sqrt(variance + 1e-5)
  return normed * params['scale'] + params['offset']


def _twin_nonlinear_generators(
    params: Any, embeddings: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
  """LayerNorm -> n x [Linear -> LayerNorm -> ELU] -> Linear without bias."""
  generated = {}
  order = [b for b in ('input', 'hidden', 'output') if b in embeddings]
  for index, name in enumerate(order):
    trunk = jax.tree.map(lambda x, i=index: x[i], params['trunks'])
    flat = []
    for x in embeddings[name]:
      x = _twin_layer_norm(x, trunk['layer_norm'])
      for layer in range(small_models.GENERATOR['generator_num_hidden']):
        suffix = f'_{layer}' if layer else ''
        linear = trunk[f'linear{suffix}']
        x = x @ linear['w'] + linear['b']
        x = _twin_layer_norm(x, trunk[f'layer_norm_{layer + 1}'])
        x = np.array([v if v > 0 else math.exp(v) - 1 for v in x])
      flat.append(x @ params['heads'][name]['w'])
    generated[name] = np.array(flat)
  return generated


_TWIN_GENERATORS = {
    'linear_hypernetwork': _twin_linear_generators,
    'nonlinear_hypernetwork': _twin_nonlinear_generators,
}


def _twin_hypernetwork(
    name: str, meta_params: Any, fast_params: Any, inputs: Any
) -> np.ndarray:
  meta_params, fast_params = small_models.double(
      meta_params
  ), small_models.double(fast_params)
  embeddings = {
      block: small_models.normalise(rows)
      for block, rows in fast_params['embeddings'].items()
  }
  generated = _TWIN_GENERATORS[name](meta_params['generators'], embeddings)
  outputs = _twin_base_network(_layers_of(generated), inputs)
  return outputs + fast_params.get('bias', 0)


@pytest.mark.parametrize('num_hidden', [1, 2, 3])
@pytest.mark.parametrize('name', small_models.HYPERNETWORKS)
def test_hypernetwork_against_the_twin(name: str, num_hidden: int) -> None:
  model, params = small_models.make(name, num_hidden), small_models.init(
      name, num_hidden
  )
  fast_params = jax.tree.map(
      lambda x: x + 0.5 * jnp.arange(x.size).reshape(x.shape) / x.size,
      model.init_fast(params),
  )
  outputs = small_models.network(name, num_hidden)(
      params, fast_params, small_models.inputs()
  )
  expected = _twin_hypernetwork(
      name, params, fast_params, small_models.inputs()
  )
  assert np.ptp(expected) > 0.1
  np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('name', small_models.HYPERNETWORKS)
def test_the_order_of_blocks_in_dictionaries_does_not_matter(name: str) -> None:
  """`jit` sorts them: hidden, input, output."""
  model, params = small_models.make(name), small_models.init(name)
  outputs = small_models.network(name)(
      params, model.init_fast(params), small_models.inputs()
  )
  reordered = params | {
      'embeddings': dict(sorted(params['embeddings'].items()))
  }
  assert list(reordered['embeddings']) == ['hidden', 'input', 'output']
  again = small_models.network(name)(
      reordered, model.init_fast(reordered), small_models.inputs()
  )
  np.testing.assert_array_equal(again, outputs)


@pytest.mark.parametrize('name', small_models.HYPERNETWORKS)
def test_adaptation_starts_at_the_initial_embeddings(name: str) -> None:
  model, params = small_models.make(name), small_models.init(name)
  fast_params = model.init_fast(params)
  jax.tree.map(
      np.testing.assert_array_equal,
      fast_params['embeddings'],
      params['embeddings'],
  )
  shapes = jax.tree.map(jnp.shape, params['embeddings'])
  assert shapes == {
      'input': (1, small_models.MODULES),
      'hidden': (2, small_models.MODULES),
      'output': (1, small_models.MODULES),
  }


def test_fast_bias_starts_at_zero_and_is_not_learned() -> None:
  """Spec 8.3: one bias on the outputs, of the linear hypernetwork only."""
  model, params = small_models.make('linear_hypernetwork'), small_models.init(
      'linear_hypernetwork'
  )
  fast_params = model.init_fast(params)
  np.testing.assert_array_equal(fast_params['bias'], np.zeros(small_models.Y))
  assert set(params) == {'embeddings', 'generators'}
  shifted = fast_params | {'bias': jnp.array([1.0, -2.0, 3.0])}
  network = small_models.network('linear_hypernetwork')
  change = network(params, shifted, small_models.inputs()) - network(
      params, fast_params, small_models.inputs()
  )
  expected = np.broadcast_to([1.0, -2.0, 3.0], change.shape)
  np.testing.assert_allclose(change, expected, atol=1e-5)
  nonlinear = small_models.make('nonlinear_hypernetwork')
  assert set(
      nonlinear.init_fast(small_models.init('nonlinear_hypernetwork'))
  ) == {'embeddings'}


@hypothesis.settings(deadline=None, max_examples=30)
@hypothesis.given(
    name=st.sampled_from(small_models.HYPERNETWORKS),
    block=st.sampled_from(['input', 'hidden', 'output']),
    factor=st.floats(0.01, 100),
)
def test_scaling_an_embedding_changes_nothing(
    name: str, block: str, factor: float
) -> None:
  model, params = small_models.make(name), small_models.init(name)
  fast_params = model.init_fast(params)
  embeddings = dict(fast_params['embeddings'])
  embeddings[block] = embeddings[block].at[-1].multiply(factor)
  scaled = fast_params | {'embeddings': embeddings}
  np.testing.assert_allclose(
      small_models.network(name)(params, scaled, small_models.inputs()),
      small_models.network(name)(params, fast_params, small_models.inputs()),
      rtol=1e-4,
      atol=1e-4,
  )


def test_flipping_an_embedding_changes_the_outputs() -> None:
  model, params = small_models.make('linear_hypernetwork'), small_models.init(
      'linear_hypernetwork'
  )
  fast_params = model.init_fast(params)
  network = small_models.network('linear_hypernetwork')
  before = network(params, fast_params, small_models.inputs())
  for block in ('input', 'hidden', 'output'):
    flipped = fast_params['embeddings'] | {
        block: -fast_params['embeddings'][block]
    }
    after = network(
        params, fast_params | {'embeddings': flipped}, small_models.inputs()
    )
    assert np.abs(after - before).max() > 0.1, block


@hypothesis.settings(deadline=None, max_examples=20)
@hypothesis.given(st.data())
def test_weights_are_linear_in_the_normalised_embedding(
    data: st.DataObject,
) -> None:
  """Outputs are affine in the last layer, so mixtures of it can be read off.

  With e = a e_1 + b e_2 of root mean square r, and all of them normalised,
  f(e) = (a f(e_1) + b f(e_2)) / r.
  """
  model, params = small_models.make('linear_hypernetwork'), small_models.init(
      'linear_hypernetwork'
  )
  fast_params = model.init_fast(params)
  network = small_models.network('linear_hypernetwork')

  def outputs(embedding: Any) -> Any:
    embeddings = fast_params['embeddings'] | {
        'output': jnp.asarray(embedding, jnp.float32)[None]
    }
    return np.asarray(
        network(
            params,
            fast_params | {'embeddings': embeddings},
            small_models.inputs(),
        )
    )

  seed = data.draw(st.integers(0, 1000))
  weights = data.draw(st.tuples(st.floats(0.1, 2), st.floats(-2, -0.1)))
  pair = np.random.default_rng(seed).normal(size=(2, small_models.MODULES))
  pair = small_models.normalise(pair)
  mixture = weights[0] * pair[0] + weights[1] * pair[1]
  size = np.sqrt((mixture**2).mean())
  hypothesis.assume(size > 0.1)
  expected = (
      weights[0] * outputs(pair[0]) + weights[1] * outputs(pair[1])
  ) / size
  np.testing.assert_allclose(outputs(mixture), expected, rtol=1e-3, atol=1e-3)


def test_nonlinear_weights_are_not_linear_in_the_embedding() -> None:
  model, params = (
      small_models.make('nonlinear_hypernetwork'),
      small_models.init('nonlinear_hypernetwork'),
  )
  fast_params = model.init_fast(params)
  network = small_models.network('nonlinear_hypernetwork')

  def outputs(embedding: Any) -> Any:
    embeddings = fast_params['embeddings'] | {'output': embedding[None]}
    return network(params, {'embeddings': embeddings}, small_models.inputs())

  pair = jax.random.normal(jax.random.key(0), (2, small_models.MODULES))
  pair = hypernetwork.normalise(pair)
  mixture = pair.sum(0)
  size = jnp.sqrt((mixture**2).mean())
  expected = (outputs(pair[0]) + outputs(pair[1])) / size
  assert np.abs(outputs(mixture) - expected).max() > 0.1


@pytest.mark.parametrize('block', ['input', 'hidden', 'output'])
def test_gradient_of_an_embedding_ignores_the_normalisation(block: str) -> None:
  """Spec 8.3: not orthogonal to the embedding, in second order either.

  The truth: finite differences of the twin with the factor held constant.
  """
  name = 'linear_hypernetwork'
  model, params = small_models.make(name), small_models.init(name)
  embeddings = model.init_fast(params)['embeddings']
  banks = small_models.double(params['generators'])
  probe = np.random.default_rng(0).normal(size=(6, small_models.Y))

  def value(rows: jax.Array) -> jax.Array:
    fast_params = {
        'embeddings': embeddings | {block: rows},
        'bias': jnp.zeros(small_models.Y),
    }
    outputs = model.decode(params, fast_params, small_models.inputs())
    return jnp.sum(outputs * probe + 0.1 * outputs**2)

  scales = {
      key: (
          math.sqrt(small_models.MODULES)
          / np.linalg.norm(rows, axis=1, keepdims=True)
      )
      for key, rows in small_models.double(embeddings).items()
  }

  def twin(rows: Any) -> Any:
    rows = small_models.double(embeddings) | {block: rows}
    normalised = {key: rows[key] * scales[key] for key in rows}
    outputs = _twin_base_network(
        _layers_of(_twin_linear_generators(banks, normalised)),
        small_models.inputs(),
    )
    return np.sum(outputs * probe + 0.1 * outputs**2)

  rows = small_models.double(embeddings[block])
  assert float(value(embeddings[block])) == pytest.approx(twin(rows), rel=1e-4)
  expected = np.zeros_like(rows)
  for index in np.ndindex(*rows.shape):
    step = np.zeros_like(rows)
    step[index] = 1e-6
    expected[index] = (twin(rows + step) - twin(rows - step)) / 2e-6
  gradient = np.asarray(jax.jit(jax.grad(value))(embeddings[block]))
  np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-3)
  cosine = (gradient * rows).sum(1) / (
      np.linalg.norm(gradient, axis=1) * np.linalg.norm(rows, axis=1)
  )
  assert np.abs(cosine).min() > 0.02

  # Second order: the network is piecewise linear in one layer's embedding, so
  # the second derivative along d is 0.2 |d outputs|^2, d outputs linear.
  direction = np.random.default_rng(1).normal(size=rows.shape)
  second = (
      twin(rows + 1e-4 * direction)
      - 2 * twin(rows)
      + twin(rows - 1e-4 * direction)
  ) / 1e-8
  along = lambda t: value(embeddings[block] + t * direction)
  curvature = float(jax.jit(jax.grad(jax.grad(along)))(0.0))
  assert curvature == pytest.approx(second, rel=2e-2)
