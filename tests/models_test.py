"""Models: published sizes, NumPy twins, initial values, gradients.

The twins are loops in double precision that know only the parameters.
"""

import functools
import math

import hypothesis
from hypothesis import strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import common
from configs import fig4c
from configs import fig4e
from modular_hyperteacher import bilevel_experiment
from modular_hyperteacher import experiment
from modular_hyperteacher import sweeps
from modular_hyperteacher.models import anil
from modular_hyperteacher.models import base
from modular_hyperteacher.models import hypernetwork
from modular_hyperteacher.models import linear_hypernetwork
from modular_hyperteacher.models import maml
from modular_hyperteacher.models import nonlinear_hypernetwork

_X, _H, _Y, _MODULES = 4, 5, 3, 6
_GENERATOR = {'generator_num_hidden': 2, 'generator_hidden_dim': 7}
_HYPERNETWORKS = ('linear_hypernetwork', 'nonlinear_hypernetwork')
_NAMES = ('anil', 'maml') + _HYPERNETWORKS
# The deviation of a standard normal that is cut at two deviations.
_TRUNCATED_STD = 0.87962566


@functools.lru_cache
def _make(name, num_hidden=3):
  sizes = dict(
      input_dim=_X, output_dim=_Y, num_hidden=num_hidden, hidden_dim=_H
  )
  if name in _HYPERNETWORKS:
    sizes['num_modules'] = _MODULES
  if name == 'nonlinear_hypernetwork':
    sizes |= _GENERATOR
  return bilevel_experiment.MODELS[name](**sizes)


@functools.lru_cache
def _compiled_init(name, num_hidden=3):
  return jax.jit(_make(name, num_hidden).init)


@functools.lru_cache
def _init(name, num_hidden=3):
  """Returns parameters, all of them moved off their special values."""
  params = _compiled_init(name, num_hidden)(jax.random.key(0))
  leaves, treedef = jax.tree.flatten(params)
  keys = jax.random.split(jax.random.key(1), len(leaves))
  moved = [
      leaf + 0.3 * jax.random.normal(key, leaf.shape)
      for leaf, key in zip(leaves, keys)
  ]
  return treedef.unflatten(moved)


def _inputs(num_examples=6):
  return jax.random.uniform(jax.random.key(2), (num_examples, _X), minval=-1.0)


def _network(name, num_hidden=3):
  """Returns encode and decode as one function."""
  model = _make(name, num_hidden)
  return lambda meta, fast, x: model.decode(meta, fast, model.encode(meta, x))


def _double(tree):
  return jax.tree.map(lambda x: np.asarray(x, np.float64), tree)


# Parameter counts, spec 8.4 (noted in the released configurations).

_MLPS = {'anil': anil, 'maml': maml}
_MLP_COUNTS = [
    # World, model, X, Y, hidden layers, width, meta, fast.
    ('hyperteacher', 'anil', 16, 8, 3, 512, 538120, 4104),
    ('hyperteacher', 'maml', 16, 8, 3, 384, 305288, 305288),
    ('preferences', 'anil', 490, 5, 4, 512, 1041925, 2565),
    ('preferences', 'maml', 490, 5, 3, 368, 454117, 454117),
    ('goals', 'anil', 847, 6, 2, 512, 699910, 3078),
    ('goals', 'maml', 847, 6, 2, 384, 475782, 475782),
]
_HYPERNETWORK_COUNTS = [
    # World, model, X, Y, hidden layers, width, M-hat, meta, fast.
    ('hyperteacher', 'linear', 16, 8, 3, 128, 4 * 4, 315584, 72),
    ('hyperteacher', 'linear', 16, 8, 3, 128, 4 * 6, 473376, 104),
    ('hyperteacher', 'linear', 16, 8, 3, 128, 4 * 8, 631168, 136),
    ('hyperteacher', 'linear', 16, 8, 3, 128, 4 * 16, 1262336, 264),
    ('hyperteacher', 'nonlinear', 16, 8, 3, 128, 4 * 4, 643104, 64),
    ('hyperteacher', 'nonlinear', 16, 8, 3, 128, 4 * 6, 643952, 96),
    ('hyperteacher', 'nonlinear', 16, 8, 3, 128, 4 * 8, 644800, 128),
    ('hyperteacher', 'nonlinear', 16, 8, 3, 128, 4 * 16, 648192, 256),
    ('preferences', 'linear', 490, 5, 3, 64, 32, 1149216, 133),
    ('preferences', 'nonlinear', 490, 5, 2, 64, 32, 1162816, 96),
    ('goals', 'linear', 847, 6, 2, 32, 8, 227144, 30),
    ('goals', 'nonlinear', 847, 6, 2, 32, 8, 919688, 24),
]


@pytest.mark.parametrize(
    'world, name, input_dim, output_dim, num_hidden, hidden_dim, meta, fast',
    _MLP_COUNTS,
)
def test_published_counts_of_anil_and_maml(
    world, name, input_dim, output_dim, num_hidden, hidden_dim, meta, fast
):
  model = _MLPS[name].make(
      input_dim=input_dim,
      output_dim=output_dim,
      num_hidden=num_hidden,
      hidden_dim=hidden_dim,
  )
  assert base.count_params(model) == (meta, fast), world


@pytest.mark.parametrize(
    'world, name, input_dim, output_dim, num_hidden, hidden_dim, num_modules,'
    ' meta, fast',
    _HYPERNETWORK_COUNTS,
)
def test_published_counts_of_hypernetworks(
    world,
    name,
    input_dim,
    output_dim,
    num_hidden,
    hidden_dim,
    num_modules,
    meta,
    fast,
):
  sizes = dict(
      input_dim=input_dim,
      output_dim=output_dim,
      num_hidden=num_hidden,
      hidden_dim=hidden_dim,
      num_modules=num_modules,
  )
  if name == 'linear':
    model = linear_hypernetwork.make(**sizes)
  else:
    model = nonlinear_hypernetwork.make(
        generator_num_hidden=4, generator_hidden_dim=32, **sizes
    )
  assert base.count_params(model) == (meta, fast), world


@pytest.mark.parametrize(
    'num_modules, name, meta, fast',
    [
        (4, 'linear_hypernetwork', 315584, 72),
        (6, 'linear_hypernetwork', 473376, 104),
        (8, 'linear_hypernetwork', 631168, 136),
        (16, 'linear_hypernetwork', 1262336, 264),
        (4, 'nonlinear_hypernetwork', 643104, 64),
        (6, 'nonlinear_hypernetwork', 643952, 96),
        (8, 'nonlinear_hypernetwork', 644800, 128),
        (16, 'nonlinear_hypernetwork', 648192, 256),
        (4, 'anil', 538120, 4104),
        (16, 'anil', 538120, 4104),
        (4, 'maml', 305288, 305288),
        (16, 'maml', 305288, 305288),
    ],
)
def test_published_counts_of_the_hyperteacher_config(
    num_modules, name, meta, fast
):
  """The config's blocks, built as a run builds them."""
  task = common.hyperteacher_task()
  task.num_modules = num_modules
  config = {
      'task': task.to_dict(),
      'model': common.hyperteacher_models()[name].to_dict(),
      'training': common.training(100).to_dict(),
      'execution': common.experiment('test', 'paper').execution.to_dict(),
  }
  model = experiment.build(config, num_devices=1).model
  assert base.count_params(model) == (meta, fast)


@pytest.mark.parametrize(
    'world, name, meta, fast',
    [
        ('preferences', 'linear_hypernetwork', 1149216, 133),
        ('preferences', 'nonlinear_hypernetwork', 1162816, 96),
        ('preferences', 'anil', 1041925, 2565),
        ('preferences', 'maml', 454117, 454117),
        ('goals', 'linear_hypernetwork', 227144, 30),
        ('goals', 'nonlinear_hypernetwork', 919688, 24),
        ('goals', 'anil', 699910, 3078),
        ('goals', 'maml', 475782, 475782),
    ],
)
def test_published_counts_of_the_grid_worlds_configs(world, name, meta, fast):
  """The configs' blocks, built as a run builds them."""
  figure = {'preferences': fig4c, 'goals': fig4e}[world]
  runs = sweeps.expand(figure.get_config('paper'))
  (run, *_) = sweeps.select(runs, [f'model={name}', 'task_support=random'])
  model = experiment.build(run.config, num_devices=1).model
  assert base.count_params(model) == (meta, fast)


def test_count_params_counts_what_init_returns():
  for name in _NAMES:
    model = _make(name)
    meta_params = _init(name)
    fast_params = model.init_fast(meta_params)
    expected = tuple(
        sum(np.size(leaf) for leaf in jax.tree.leaves(tree))
        for tree in (meta_params, fast_params)
    )
    assert base.count_params(model) == expected


# Base network.


def _twin_base_network(layers, inputs):
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


def _layers_of(generated):
  """Flat vectors per block -> layers of the twin."""
  sizes = {'input': (_X, _H), 'hidden': (_H, _H), 'output': (_H, _Y)}
  return [
      (*sizes[name], flat)
      for name in ('input', 'hidden', 'output')
      for flat in generated.get(name, ())
  ]


@pytest.mark.parametrize('num_hidden', [1, 2, 3, 4])
def test_base_network_against_the_twin(num_hidden):
  blocks = hypernetwork.base_blocks(_X, _Y, num_hidden, _H)
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
  outputs = hypernetwork.base_network(generated, blocks, _inputs())
  expected = _twin_base_network(_layers_of(_double(generated)), _inputs())
  assert (expected < 0).any(), 'no negative output: cannot tell a ReLU'
  np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-5)


def test_split_layer_by_hand():
  block = hypernetwork.Block(1, 2, 3)
  assert block.size == 9
  weights, bias = hypernetwork.split_layer(jnp.arange(9), block)
  np.testing.assert_array_equal(bias, [0, 1, 2])
  np.testing.assert_array_equal(weights, [[3, 4, 5], [6, 7, 8]])


# Hypernetworks as a whole.


def _twin_normalise(embedding):
  return embedding / np.sqrt((embedding**2).mean(-1, keepdims=True))


def _twin_linear_generators(params, embeddings):
  """Each row of a generator's matrix is a module."""
  return {
      name: np.array([
          sum(z * row for z, row in zip(embedding, params[name]['w']))
          for embedding in rows
      ])
      for name, rows in embeddings.items()
  }


def _twin_layer_norm(x, params):
  mean = x.sum() / len(x)
  variance = ((x - mean) ** 2).sum() / len(x)
  normed = (x - mean) / math.sqrt(variance + 1e-5)
  return normed * params['scale'] + params['offset']


def _twin_nonlinear_generators(params, embeddings):
  """LayerNorm -> n x [Linear -> LayerNorm -> ELU] -> Linear without bias."""
  generated = {}
  order = [b for b in ('input', 'hidden', 'output') if b in embeddings]
  for index, name in enumerate(order):
    trunk = jax.tree.map(lambda x, i=index: x[i], params['trunks'])
    flat = []
    for x in embeddings[name]:
      x = _twin_layer_norm(x, trunk['layer_norm'])
      for layer in range(_GENERATOR['generator_num_hidden']):
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


def _twin_hypernetwork(name, meta_params, fast_params, inputs):
  meta_params, fast_params = _double(meta_params), _double(fast_params)
  embeddings = {
      block: _twin_normalise(rows)
      for block, rows in fast_params['embeddings'].items()
  }
  generated = _TWIN_GENERATORS[name](meta_params['generators'], embeddings)
  outputs = _twin_base_network(_layers_of(generated), inputs)
  return outputs + fast_params.get('bias', 0)


@pytest.mark.parametrize('num_hidden', [1, 2, 3])
@pytest.mark.parametrize('name', _HYPERNETWORKS)
def test_hypernetwork_against_the_twin(name, num_hidden):
  model, params = _make(name, num_hidden), _init(name, num_hidden)
  fast_params = jax.tree.map(
      lambda x: x + 0.5 * jnp.arange(x.size).reshape(x.shape) / x.size,
      model.init_fast(params),
  )
  outputs = _network(name, num_hidden)(params, fast_params, _inputs())
  expected = _twin_hypernetwork(name, params, fast_params, _inputs())
  assert np.ptp(expected) > 0.1
  np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('name', _HYPERNETWORKS)
def test_the_order_of_blocks_in_dictionaries_does_not_matter(name):
  """`jit` sorts them: hidden, input, output."""
  model, params = _make(name), _init(name)
  outputs = _network(name)(params, model.init_fast(params), _inputs())
  reordered = params | {
      'embeddings': dict(sorted(params['embeddings'].items()))
  }
  assert list(reordered['embeddings']) == ['hidden', 'input', 'output']
  again = _network(name)(reordered, model.init_fast(reordered), _inputs())
  np.testing.assert_array_equal(again, outputs)


@pytest.mark.parametrize('name', _HYPERNETWORKS)
def test_adaptation_starts_at_the_initial_embeddings(name):
  model, params = _make(name), _init(name)
  fast_params = model.init_fast(params)
  jax.tree.map(
      np.testing.assert_array_equal,
      fast_params['embeddings'],
      params['embeddings'],
  )
  shapes = jax.tree.map(jnp.shape, params['embeddings'])
  assert shapes == {
      'input': (1, _MODULES),
      'hidden': (2, _MODULES),
      'output': (1, _MODULES),
  }


def test_fast_bias_starts_at_zero_and_is_not_learned():
  """Spec 8.3: one bias on the outputs, of the linear hypernetwork only."""
  model, params = _make('linear_hypernetwork'), _init('linear_hypernetwork')
  fast_params = model.init_fast(params)
  np.testing.assert_array_equal(fast_params['bias'], np.zeros(_Y))
  assert set(params) == {'embeddings', 'generators'}
  shifted = fast_params | {'bias': jnp.array([1.0, -2.0, 3.0])}
  network = _network('linear_hypernetwork')
  change = network(params, shifted, _inputs()) - network(
      params, fast_params, _inputs()
  )
  expected = np.broadcast_to([1.0, -2.0, 3.0], change.shape)
  np.testing.assert_allclose(change, expected, atol=1e-5)
  nonlinear = _make('nonlinear_hypernetwork')
  assert set(nonlinear.init_fast(_init('nonlinear_hypernetwork'))) == {
      'embeddings'
  }


@hypothesis.settings(deadline=None, max_examples=30)
@hypothesis.given(
    name=st.sampled_from(_HYPERNETWORKS),
    block=st.sampled_from(['input', 'hidden', 'output']),
    factor=st.floats(0.01, 100),
)
def test_scaling_an_embedding_changes_nothing(name, block, factor):
  model, params = _make(name), _init(name)
  fast_params = model.init_fast(params)
  embeddings = dict(fast_params['embeddings'])
  embeddings[block] = embeddings[block].at[-1].multiply(factor)
  scaled = fast_params | {'embeddings': embeddings}
  np.testing.assert_allclose(
      _network(name)(params, scaled, _inputs()),
      _network(name)(params, fast_params, _inputs()),
      rtol=1e-4,
      atol=1e-4,
  )


def test_flipping_an_embedding_changes_the_outputs():
  model, params = _make('linear_hypernetwork'), _init('linear_hypernetwork')
  fast_params = model.init_fast(params)
  network = _network('linear_hypernetwork')
  before = network(params, fast_params, _inputs())
  for block in ('input', 'hidden', 'output'):
    flipped = fast_params['embeddings'] | {
        block: -fast_params['embeddings'][block]
    }
    after = network(params, fast_params | {'embeddings': flipped}, _inputs())
    assert np.abs(after - before).max() > 0.1, block


@hypothesis.settings(deadline=None, max_examples=20)
@hypothesis.given(st.data())
def test_weights_are_linear_in_the_normalised_embedding(data):
  """Outputs are affine in the last layer, so mixtures of it can be read off.

  With e = a e_1 + b e_2 of root mean square r, and all of them normalised,
  f(e) = (a f(e_1) + b f(e_2)) / r.
  """
  model, params = _make('linear_hypernetwork'), _init('linear_hypernetwork')
  fast_params = model.init_fast(params)
  network = _network('linear_hypernetwork')

  def outputs(embedding):
    embeddings = fast_params['embeddings'] | {
        'output': jnp.asarray(embedding, jnp.float32)[None]
    }
    return np.asarray(
        network(params, fast_params | {'embeddings': embeddings}, _inputs())
    )

  seed = data.draw(st.integers(0, 1000))
  weights = data.draw(st.tuples(st.floats(0.1, 2), st.floats(-2, -0.1)))
  pair = np.random.default_rng(seed).normal(size=(2, _MODULES))
  pair = _twin_normalise(pair)
  mixture = weights[0] * pair[0] + weights[1] * pair[1]
  size = np.sqrt((mixture**2).mean())
  hypothesis.assume(size > 0.1)
  expected = (
      weights[0] * outputs(pair[0]) + weights[1] * outputs(pair[1])
  ) / size
  np.testing.assert_allclose(outputs(mixture), expected, rtol=1e-3, atol=1e-3)


def test_nonlinear_weights_are_not_linear_in_the_embedding():
  model, params = (
      _make('nonlinear_hypernetwork'),
      _init('nonlinear_hypernetwork'),
  )
  fast_params = model.init_fast(params)
  network = _network('nonlinear_hypernetwork')

  def outputs(embedding):
    embeddings = fast_params['embeddings'] | {'output': embedding[None]}
    return network(params, {'embeddings': embeddings}, _inputs())

  pair = jax.random.normal(jax.random.key(0), (2, _MODULES))
  pair = hypernetwork.normalise(pair)
  mixture = pair.sum(0)
  size = jnp.sqrt((mixture**2).mean())
  expected = (outputs(pair[0]) + outputs(pair[1])) / size
  assert np.abs(outputs(mixture) - expected).max() > 0.1


@pytest.mark.parametrize('block', ['input', 'hidden', 'output'])
def test_gradient_of_an_embedding_ignores_the_normalisation(block):
  """Spec 8.3: not orthogonal to the embedding, in second order either.

  The truth: finite differences of the twin with the factor held constant.
  """
  name = 'linear_hypernetwork'
  model, params = _make(name), _init(name)
  embeddings = model.init_fast(params)['embeddings']
  banks = _double(params['generators'])
  probe = np.random.default_rng(0).normal(size=(6, _Y))

  def value(rows):
    fast_params = {
        'embeddings': embeddings | {block: rows},
        'bias': jnp.zeros(_Y),
    }
    outputs = model.decode(params, fast_params, _inputs())
    return jnp.sum(outputs * probe + 0.1 * outputs**2)

  scales = {
      key: math.sqrt(_MODULES) / np.linalg.norm(rows, axis=1, keepdims=True)
      for key, rows in _double(embeddings).items()
  }

  def twin(rows):
    rows = _double(embeddings) | {block: rows}
    normalised = {key: rows[key] * scales[key] for key in rows}
    outputs = _twin_base_network(
        _layers_of(_twin_linear_generators(banks, normalised)), _inputs()
    )
    return np.sum(outputs * probe + 0.1 * outputs**2)

  rows = _double(embeddings[block])
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


# Initial values.


def test_generated_weights_have_a_deviation_of_088():
  """Spec 13.4, D6: not corrected for the truncation."""
  model = linear_hypernetwork.make(
      input_dim=16, output_dim=8, num_hidden=3, hidden_dim=128, num_modules=16
  )
  params = jax.jit(model.init)(jax.random.key(0))
  for block, rows in _double(params['embeddings']).items():
    bank = np.asarray(params['generators'][block]['w'], np.float64)
    for generated in _twin_normalise(rows) @ bank:
      error = 5 * _TRUNCATED_STD / math.sqrt(2 * len(generated))
      assert abs(generated.std() - _TRUNCATED_STD) < 1.5 * error, block
      assert abs(generated.mean()) < 2 * error


def test_nonlinear_weights_are_of_order_one():
  model = nonlinear_hypernetwork.make(
      input_dim=16,
      output_dim=8,
      num_hidden=3,
      hidden_dim=64,
      num_modules=16,
      generator_num_hidden=4,
      generator_hidden_dim=32,
  )
  params = jax.jit(model.init)(jax.random.key(0))
  x = jax.random.normal(jax.random.key(1), (500, 16))
  outputs = np.asarray(model.decode(params, model.init_fast(params), x))
  assert 0.05 < outputs.std() < 5


@pytest.mark.parametrize('num_hidden', [1, 2, 3, 5])
def test_initial_embeddings(num_hidden):
  """Spec 8.3: uniform; variance 1, and 1/(L-1) for the hidden ones."""
  size = 20_000
  blocks = hypernetwork.base_blocks(_X, _Y, num_hidden, _H)
  embeddings = _double(
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


def _assert_truncated_normal(weights, scale):
  weights = np.asarray(weights)
  assert np.abs(weights).max() <= 2 * scale * (1 + 1e-6)
  assert np.abs(weights).max() > 1.7 * scale
  tolerance = 5 / math.sqrt(weights.size)
  assert abs(weights.std() / scale - _TRUNCATED_STD) < tolerance
  assert abs(weights.mean() / scale) < tolerance


@pytest.mark.parametrize('name', ['anil', 'maml'])
def test_initial_values_of_networks(name):
  """Spec 8.1: truncated normal, scale 1/sqrt(fan_in), cut at two; biases 0."""
  model = _MLPS[name].make(
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


def test_initial_values_of_the_linear_generators():
  params = _compiled_init('linear_hypernetwork')(jax.random.key(0))
  params = params['generators']
  assert params.keys() == {'input', 'hidden', 'output'}
  sizes = {'input': _X, 'hidden': _H, 'output': _H}
  outputs = {'input': _H, 'hidden': _H, 'output': _Y}
  for block, generator in params.items():
    assert generator.keys() == {'w'}, 'a generator has no bias'
    size = (sizes[block] + 1) * outputs[block]
    assert generator['w'].shape == (_MODULES, size)
    _assert_truncated_normal(generator['w'], 1 / math.sqrt(_MODULES))


def test_initial_values_of_the_nonlinear_generators():
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


@pytest.mark.parametrize('name', _NAMES)
def test_init_follows_the_key(name):
  init = _compiled_init(name)
  one, again, other = (init(jax.random.key(seed)) for seed in (0, 0, 1))
  jax.tree.map(np.testing.assert_array_equal, one, again)
  differ = jax.tree.map(lambda a, b: (a != b).all(), one, other)
  # All weights and embeddings; not the biases, scales and offsets.
  for path, different in jax.tree.leaves_with_path(differ):
    constant = path[-1].key in ('b', 'scale', 'offset')
    assert different != constant, jax.tree_util.keystr(path)


# ANIL and MAML.


def _twin_mlp(layers, inputs):
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


def _mlp_layers(body, readout, num_hidden):
  names = ['body/linear'] + [f'body/linear_{i}' for i in range(1, num_hidden)]
  assert [name for name in body if name.startswith('body/')] == names
  layers = [(body[name]['w'], body[name]['b']) for name in names]
  return layers + [(readout['readout']['w'].T, readout['readout']['b'])]


@pytest.mark.parametrize('num_hidden', [1, 2, 3])
def test_anil_against_the_twin(num_hidden):
  model, params = _make('anil', num_hidden), _init('anil', num_hidden)
  fast_params = model.init_fast(params)
  fast_params = jax.tree.map(lambda x: x - 0.7, fast_params)
  layers = _mlp_layers(
      _double(params['body']), _double(fast_params), num_hidden
  )
  outputs = _network('anil', num_hidden)(params, fast_params, _inputs())
  expected = _twin_mlp(layers, _inputs())
  np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-4)
  # The encoding is the last hidden layer.
  features = np.asarray(model.encode(params, _inputs()))
  assert features.shape == (6, _H)
  assert (features >= 0).all()
  weights, biases = layers[-1]
  np.testing.assert_allclose(
      features @ weights + biases, expected, rtol=1e-4, atol=1e-4
  )


@pytest.mark.parametrize('num_hidden', [1, 2, 3])
def test_maml_against_the_twin(num_hidden):
  params = _init('maml', num_hidden)
  outputs = _network('maml', num_hidden)(params, params, _inputs())
  layers = _mlp_layers(_double(params), _double(params), num_hidden)
  expected = _twin_mlp(layers, _inputs())
  assert (expected < 0).any()
  np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-4)


def test_maml_decodes_with_fast_parameters_only():
  model, params = _make('maml'), _init('maml')
  fast_params = model.init_fast(params)
  jax.tree.map(np.testing.assert_array_equal, fast_params, params)
  garbage = jax.tree.map(lambda x: jnp.full_like(x, jnp.nan), params)
  encoding = model.encode(garbage, _inputs())
  np.testing.assert_array_equal(encoding, _inputs())
  np.testing.assert_array_equal(
      model.decode(garbage, fast_params, encoding),
      model.decode(params, fast_params, encoding),
  )


def test_anil_adapts_the_readout_only():
  model, params = _make('anil'), _init('anil')
  fast_params = model.init_fast(params)
  jax.tree.map(
      np.testing.assert_array_equal, fast_params, params['readout']
  )
  # The initial readout does not act on what is decoded afterwards, ...
  garbage = jax.tree.map(lambda x: jnp.full_like(x, jnp.nan), params)
  other = params | {'readout': garbage['readout']}
  encoding = model.encode(other, _inputs())
  outputs = model.decode(garbage, fast_params, encoding)
  expected = _network('anil')(params, fast_params, _inputs())
  np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize('name', _NAMES)
def test_one_hidden_layer(name):
  """There is no block of hidden layers then."""
  model = _make(name, 1)
  params = _compiled_init(name, 1)(jax.random.key(0))
  outputs = _network(name, 1)(params, model.init_fast(params), _inputs())
  assert outputs.shape == (6, _Y)
  assert np.isfinite(outputs).all()
  mlp_size = (_X + 1) * _H + (_H + 1) * _Y
  generator = 2 * 7 + 2 * 6 + 7 * 7 + 7 * 6 + 2 * (7 + 7)  # Two hidden layers.
  expected = {
      'anil': (mlp_size, (_H + 1) * _Y),
      'maml': (mlp_size, mlp_size),
      'linear_hypernetwork': (
          _MODULES * (mlp_size + 2),
          2 * _MODULES + _Y,
      ),
      'nonlinear_hypernetwork': (
          7 * mlp_size + 2 * generator + 2 * _MODULES,
          2 * _MODULES,
      ),
  }
  assert base.count_params(model) == expected[name]
  if name in _HYPERNETWORKS:
    assert params['embeddings'].keys() == {'input', 'output'}
