"""The network that is given the task, against NumPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.models import base
from modular_hyperteacher.studies.given_tasks import multitask_mlp


def test_number_of_parameters() -> None:
  """As published: 4 x 1024 hidden units, 16 inputs, 16 modules, 16 outputs."""
  model = multitask_mlp.make(
      input_dim=32, output_dim=16, num_hidden=4, hidden_dim=1024
  )
  hidden = 3 * (1024 * 1024 + 1024)
  expected = 32 * 1024 + 1024 + hidden + 1024 * 16 + 16
  assert base.count_params(model) == (expected, 0)


def test_forward_pass() -> None:
  model = multitask_mlp.make(
      input_dim=3, output_dim=2, num_hidden=2, hidden_dim=5
  )
  params = model.init(jax.random.key(0))
  params = jax.tree.map(lambda x: x + 0.1, params)  # Biases count, too.
  inputs = jax.random.normal(jax.random.key(1), (4, 3))
  outputs = model.decode(params, {}, model.encode(params, inputs))
  hidden, layers = np.asarray(inputs), []
  for i in range(3):
    layer = params[f'layer_{i}']
    layers.append(hidden @ np.asarray(layer['w']) + np.asarray(layer['b']))
    hidden = np.maximum(layers[-1], 0)
  np.testing.assert_allclose(outputs, layers[-1], rtol=1e-5)
  for ours, expected in zip(
      multitask_mlp.activations(params, inputs), layers, strict=True
  ):
    np.testing.assert_allclose(ours, expected, rtol=1e-5)


def test_initial_weights_have_unit_gain() -> None:
  model = multitask_mlp.make(
      input_dim=400, output_dim=1, num_hidden=2, hidden_dim=300
  )
  params = model.init(jax.random.key(0))
  for name, fan_in in (('layer_0', 400), ('layer_1', 300)):
    assert float(params[name]['w'].std()) == pytest.approx(
        fan_in**-0.5, rel=0.02
    )
    assert not params[name]['b'].any()


def test_vectors_may_be_left_out_of_weight_decay() -> None:
  params: Any = {'w': jnp.ones((2, 2)), 'b': jnp.ones(2)}
  for decay_vectors in (True, False):
    config = outer_loop.OuterConfig(
        learning_rate=0.1,
        weight_decay=0.5,
        clip_norm=None,
        max_consecutive_skips=0,
        meta_batch_size=1,
        decay_vectors=decay_vectors,
    )
    optimizer = outer_loop.make_optimizer(config)
    zeros = jax.tree.map(jnp.zeros_like, params)
    state = optimizer.init(params)
    updates: Any = optimizer.update(zeros, state, params)[0]
    np.testing.assert_allclose(updates['w'], -0.05, rtol=1e-5)
    expected = -0.05 if decay_vectors else 0.0
    np.testing.assert_allclose(updates['b'], expected, rtol=1e-5)


def test_without_inner_steps_no_setting_matters() -> None:
  assert inner_loop.InnerConfig(num_steps=0).learning_rate == 0.0
  with pytest.raises(errors.UserError, match='learning_rate'):
    inner_loop.InnerConfig(num_steps=1)
