"""Sparse-MAML: its gates, their gradients, and what fixed gates equal."""

from collections.abc import Callable, Iterator
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.models import anil
from modular_hyperteacher.models import base
from modular_hyperteacher.models import maml
from modular_hyperteacher.studies.sparse_maml import sparse_maml
from modular_hyperteacher.studies.sparse_maml.configs import (
    sparse_maml as config,
)
from modular_hyperteacher.tasks import objectives
from tests.helpers import tiny
from tests.helpers import trees

_SIZES = {'input_dim': 3, 'output_dim': 4, 'num_hidden': 2, 'hidden_dim': 4}
_RATE, _STEPS = 0.3, 4
_FIRST_ORDER = inner_loop.InnerConfig(
    num_steps=_STEPS,
    learning_rate=_RATE,
    solver='sgd',
    second_order=False,
    first_order=True,
)
_SECOND_ORDER = inner_loop.InnerConfig(
    num_steps=_STEPS, learning_rate=0.05, weight_decay=0.1, eps_root=1e-7
)
_INNER = {'first order': _FIRST_ORDER, 'second order': _SECOND_ORDER}
_OUTER = outer_loop.OuterConfig(
    learning_rate=1e-2,
    weight_decay=0.1,
    clip_norm=1.0,
    max_consecutive_skips=0,
    meta_batch_size=2,
    gate_learning_rate=3e-2,
)


@pytest.fixture(autouse=True)
def fixture_precise() -> Iterator[None]:
  with jax.enable_x64(True):
    yield


def _make(gates: str, **fields: Any) -> base.MetaModel:
  return sparse_maml.make(gates=gates, **_SIZES | fields)


def _double(tree: Any) -> Any:
  return jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), tree)


@functools.cache
def _task() -> Any:
  world = tiny.task()
  sample = jax.jit(functools.partial(world.sample, split='train'))
  return _double(sample(world.init(jax.random.key(0)), jax.random.key(1)))


def _weights() -> Any:
  """Returns weights and biases, none of them zero."""
  weights = maml.make(**_SIZES).init(jax.random.key(2))
  return _double(
      jax.tree.map(
          lambda x: x + 0.3 * jax.random.normal(jax.random.key(3), x.shape),
          weights,
      )
  )


def _gates() -> Any:
  """Returns gates, some of them closed in every layer."""
  return jax.tree.map(
      lambda x: jax.random.normal(jax.random.key(4), x.shape), _weights()
  )


def _outer_loss(
    model: base.MetaModel, inner: inner_loop.InnerConfig
) -> Callable[[Any], jax.Array]:
  learner = outer_loop.make_learner(tiny.task(), model, inner, _OUTER)
  task = _task()

  @jax.jit
  def loss(meta_params: Any) -> jax.Array:
    key = jax.random.key(5)
    return learner.evaluate_task(meta_params, None, task, key)[0]['loss']

  return loss


_assert_close = functools.partial(trees.assert_close, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    'gates, value, slope',
    [
        ('binary', lambda m: 1.0 * (m > 0), 0.5),
        pytest.param(
            *('rectified', lambda m: m * (m > 0), 1.0), marks=pytest.mark.slow
        ),
        pytest.param(*('rates', lambda m: m, 1.0), marks=pytest.mark.slow),
    ],
)
def test_first_order_gradients_written_out(
    gates: str, value: Callable[[Any], Any], slope: float
) -> None:
  """d/dtheta = grad l_out; d/dm = -alpha g' grad l_out * sum_k grad l_in."""
  task, network = _task(), maml.make(**_SIZES)

  def loss(weights: Any, batch: Any) -> jax.Array:
    outputs = network.decode(weights, weights, batch.inputs)
    return objectives.SOFT_LABELS.loss(outputs, batch)

  start, m = _weights(), _gates()
  weights = start
  total = jax.tree.map(jnp.zeros_like, start)
  for _ in range(_STEPS):
    gradient = jax.grad(loss)(weights, task.support)
    total = jax.tree.map(jnp.add, total, gradient)
    weights = jax.tree.map(
        lambda w, g, x: w - _RATE * value(x) * g, weights, gradient, m
    )
  expected, outer = jax.value_and_grad(loss)(weights, task.query)
  actual, gradients = jax.value_and_grad(
      _outer_loss(_make(gates), _FIRST_ORDER)
  )({'weights': start, 'gates': m})
  _assert_close(actual, expected)
  _assert_close(gradients['weights'], outer)
  _assert_close(
      gradients['gates'],
      jax.tree.map(lambda o, t: -_RATE * slope * o * t, outer, total),
  )
  assert float(optax.tree.norm(gradients['gates'])) > 1e-3


@pytest.mark.parametrize(
    'gates, value, slope',
    [('binary', lambda m: 1.0 * (m > 0), 0.5), ('rectified', jax.nn.relu, 1)],
)
def test_gradients_pass_straight_through(
    gates: str, value: Callable[[Any], Any], slope: float
) -> None:
  """They are those of differentiable rates of the same value.

  The gradient of rates is compared with finite differences for all models.
  """
  params = {'weights': _weights(), 'gates': _gates()}
  inner = _INNER['second order']
  actual = jax.value_and_grad(_outer_loss(_make(gates), inner))(params)
  params['gates'] = jax.tree.map(value, params['gates'])
  expected = jax.value_and_grad(_outer_loss(_make('rates'), inner))(params)
  _assert_close(actual[0], expected[0])
  _assert_close(actual[1]['weights'], expected[1]['weights'])
  scaled = jax.tree.map(lambda x: slope * x, expected[1]['gates'])
  _assert_close(actual[1]['gates'], scaled)


@pytest.mark.parametrize('order', _INNER)
def test_open_gates_are_maml(order: str) -> None:
  weights, inner = _weights(), _INNER[order]
  model = maml.make(**_SIZES)
  expected = jax.value_and_grad(_outer_loss(model, inner))(weights)
  for gates, learned in (('all', {}), ('binary', _gates())):
    params = {'weights': weights, 'gates': jax.tree.map(jnp.abs, learned)}
    loss, gradients = jax.value_and_grad(_outer_loss(_make(gates), inner))(
        params
    )
    _assert_close((loss, gradients['weights']), expected)


@pytest.mark.parametrize('order', _INNER)
def test_gates_of_the_readout_are_anil(order: str) -> None:
  weights, inner = _weights(), _INNER[order]
  body = {k: v for k, v in weights.items() if k != 'readout'}
  readout = {'readout': weights['readout']}
  loss, gradients = jax.value_and_grad(_outer_loss(anil.make(**_SIZES), inner))(
      {'body': body, 'readout': readout}
  )
  actual, found = jax.value_and_grad(_outer_loss(_make('readout'), inner))(
      {'weights': weights, 'gates': {}}
  )
  _assert_close(actual, loss)
  _assert_close(found['weights'], gradients['body'] | gradients['readout'])


@pytest.mark.parametrize(
    'gates, moving',
    [
        ('readout', {'readout'}),
        ('body', {'body/linear', 'body/linear_1'}),
        ('generated', {'body/linear_1'}),
    ],
)
def test_weights_move_where_gates_are_open(
    gates: str, moving: set[str]
) -> None:
  """AdamW would also decay the others."""
  learner = outer_loop.make_learner(
      tiny.task(),
      _make(gates),
      _SECOND_ORDER,
      _OUTER,
  )
  weights = _weights()
  metrics, adapted = learner.evaluate_task(
      {'weights': weights, 'gates': {}}, None, _task(), jax.random.key(0)
  )
  for layer, arrays in adapted.items():
    for name, x in arrays.items():
      moved = np.asarray(x != weights[layer][name])
      assert moved.any() == (layer in moving), layer
    closed = metrics[f'closed_{layer.rpartition("/")[2]}']
    assert closed == (layer not in moving)
  open_ = base.num_params([weights[layer] for layer in moving])
  share = 1 - open_ / base.num_params(weights)
  assert float(metrics['closed']) == pytest.approx(share)


def test_gates_learn_apart_from_weights() -> None:
  model = _make('binary')
  params = {'weights': _weights(), 'gates': _gates()}
  optimizer = outer_loop.make_optimizer(_OUTER, is_gate=model.is_gate)

  def update(weight_slope: float, gate_slope: float) -> Any:
    fill = lambda tree, value: jax.tree.map(
        lambda x: jnp.full_like(x, value), tree
    )
    gradients = {
        'weights': fill(params['weights'], weight_slope),
        'gates': fill(params['gates'], gate_slope),
    }
    return optimizer.update(gradients, optimizer.init(params), params)[0]

  still = update(0.0, 0.0)
  _assert_close(still['gates'], jax.tree.map(jnp.zeros_like, _gates()))
  _assert_close(
      still['weights'],
      jax.tree.map(lambda x: -1e-2 * 0.1 * x, params['weights']),
  )
  # Clipping of one does not shrink the other, not even below Adam's epsilon.
  tiny_slope = 1e-8
  for name, one, other in (
      ('weights', (tiny_slope, 0.0), (tiny_slope, 1e6)),
      ('gates', (0.0, tiny_slope), (1e6, tiny_slope)),
  ):
    _assert_close(update(*one)[name], update(*other)[name])
  moved = update(0.0, 1.0)['gates']
  _assert_close(moved, jax.tree.map(lambda x: jnp.full_like(x, -3e-2), moved))


@pytest.mark.parametrize('sparsity', [0.25, 0.5, 0.9])
def test_initial_gates(sparsity: float) -> None:
  sizes = {'input_dim': 20, 'output_dim': 30, 'num_hidden': 2}
  model = sparse_maml.make(
      hidden_dim=100, gates='binary', initial_sparsity=sparsity, **sizes
  )
  m = model.init(jax.random.key(0))['gates']
  fan_in = {'body/linear': 20, 'body/linear_1': 100, 'readout': 100}
  for layer, arrays in m.items():
    bounds = {'w': np.sqrt(6 / fan_in[layer]), 'b': 0.5}
    for name, x in arrays.items():
      shift = bounds[name] * (1 - 2 * sparsity)
      assert float(x.mean()) == pytest.approx(shift, abs=1e-6)
      deviation = bounds[name] / np.sqrt(3)
      assert float(x.std()) == pytest.approx(deviation, rel=1 / x.size**0.5)
      assert abs(float((x <= 0).mean()) - sparsity) < 2 / x.size**0.5
  assert (m['body/linear']['b'] != m['body/linear_1']['b']).all()


def test_all_gates_start_from_the_same_weights() -> None:
  starts = [
      _make(gates).init(jax.random.key(0))
      for gates in ('binary', 'rectified', 'rates', 'all', 'readout')
  ]
  for start in starts[1:]:
    _assert_close(start['weights'], starts[0]['weights'])
  assert starts[3]['gates'] == {}
  _assert_close(
      starts[1]['gates'], jax.tree.map(jnp.ones_like, starts[1]['weights'])
  )


@pytest.mark.parametrize(
    'fields, message',
    [
        ({'gates': 'some'}, "model.gates is 'some'; choose one of binary, "),
        (
            {'gates': 'generated', 'num_hidden': 1},
            'model.num_hidden is 1; with gates',
        ),
        (
            {'gates': 'binary', 'initial_sparsity': 1.5},
            'model.initial_sparsity is 1.5; it must be from 0 to 1',
        ),
        (
            {'gates': 'rates', 'initial_sparsity': 0.9},
            "model.initial_sparsity is 0.9; only gates 'binary' have it",
        ),
    ],
)
def test_wrong_fields_are_refused(fields: Any, message: str) -> None:
  with pytest.raises(errors.UserError, match=message):
    _make(**fields)


@pytest.mark.parametrize(
    'fields, message',
    [
        ({'first_order': True}, 'first_order is True; with second_order'),
        ({'solver': 'sgd', 'weight_decay': 0.1}, 'decay is 0.1; with solver'),
        (
            {
                'solver': 'levenberg_marquardt',
                'second_order': False,
                'first_order': True,
            },
            'first_order is True; with solver levenberg',
        ),
    ],
)
def test_wrong_inner_loops_are_refused(fields: Any, message: str) -> None:
  with pytest.raises(errors.UserError, match=message):
    inner_loop.InnerConfig(num_steps=1, learning_rate=0.1, **fields)


@pytest.mark.parametrize('preset', ['smoke', 'laptop', 'paper'])
def test_variants_differ_in_their_gates_alone(preset: str) -> None:
  """And the hypernetworks and MAML with AdamW are Figure 3B's."""
  runs = sweeps.expand(config.get_config(preset))
  for solver, number in (('sgd', 12), ('adamw', 5)):
    blocks = [
        run.config['model']
        for run in runs
        if run.config['model']['inner'].get('solver') == solver
        and run.config['model'].get('initial_sparsity') in (None, 0.5)
    ]
    common = [
        {k: v for k, v in b.items() if k not in ('gates', 'initial_sparsity')}
        for b in blocks
        if b['inner']['num_steps'] == 10
    ]
    assert len(common) == number
    assert all(block == common[0] for block in common)
  described = sweeps.described_runs('fig3b', preset)
  figure_3b = {sweeps.hash_of(run.run_id) for run in described}
  shared = [r for r in runs if sweeps.hash_of(r.run_id) in figure_3b]
  assert len(shared) == 6
