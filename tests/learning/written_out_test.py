"""An outer step written out in float64, for what no reference vectors cover.

The nonlinear hypernetwork, ANIL and the goals' loss, from the specification's
formulas (Appendices C.4, D.2 to D.4) with none of the package's functions.
"""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.models import anil
from modular_hyperteacher.models import base as models
from modular_hyperteacher.models import linear_hypernetwork
from modular_hyperteacher.models import nonlinear_hypernetwork
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import objectives
from tests.helpers import golden
from tests.helpers import slow

_X, _Y, _H, _LAYERS, _MODULES = 5, 4, 6, 3, 3
_ROWS, _TASKS, _STEPS, _RATE = 12, 3, 5, 0.05
_OBJECTIVES = {
    'soft labels': objectives.SOFT_LABELS,
    'actions': objectives.ACTIONS,
}

Forward = Callable[[Any, Any, Any], Any]  # (meta, fast, inputs) -> outputs


@pytest.fixture(autouse=True)
def fixture_precise() -> Iterator[None]:
  with jax.enable_x64(True), jax.numpy_rank_promotion('allow'):
    yield


def _layer_norm(x: Any, params: Any) -> Any:
  centred = x - x.mean()
  scaled = centred / jnp.sqrt((centred**2).mean() + 1e-5)
  return scaled * params['scale'] + params['offset']


def _trunk(params: Any, embedding: Any) -> Any:
  hidden = _layer_norm(embedding, params['layer_norm'])
  for suffix in ('', '_1', '_2', '_3'):
    number = int(suffix[1:] or 0) + 1
    linear = params[f'linear{suffix}']
    hidden = hidden @ linear['w'] + linear['b']
    hidden = _layer_norm(hidden, params[f'layer_norm_{number}'])
    hidden = jnp.where(hidden > 0, hidden, jnp.exp(hidden) - 1)
  return hidden


def _base_network(generate: Any, embeddings: Any, inputs: Any) -> Any:
  sizes = {'input': (_X, _H), 'hidden': (_H, _H), 'output': (_H, _Y)}
  hidden = inputs
  for name, index in [
      ('input', 0),
      ('hidden', 0),
      ('hidden', 1),
      ('output', 0),
  ]:
    embedding = embeddings[name][index]
    norm = jax.lax.stop_gradient(jnp.sqrt((embedding**2).sum()))
    flat = generate(name, embedding * np.sqrt(_MODULES) / norm)
    fan_in, fan_out = sizes[name]
    bias, weights = flat[:fan_out], flat[fan_out:].reshape(fan_in, fan_out)
    hidden = hidden @ weights / np.sqrt(fan_in) + bias
    if name != 'output':
      hidden = hidden * (hidden > 0)
  return hidden


def _nonlinear(meta: Any, fast: Any, inputs: Any) -> Any:
  params = meta['generators']

  def generate(name: str, embedding: Any) -> Any:
    index = ('input', 'hidden', 'output').index(name)
    trunk = jax.tree.map(lambda x: x[index], params['trunks'])
    return _trunk(trunk, embedding) @ params['heads'][name]['w']

  return _base_network(generate, fast['embeddings'], inputs)


def _linear(meta: Any, fast: Any, inputs: Any) -> Any:
  banks = meta['generators']

  def generate(name: str, embedding: Any) -> Any:
    return embedding @ banks[name]['w']

  return _base_network(generate, fast['embeddings'], inputs) + fast['bias']


def _anil(meta: Any, fast: Any, inputs: Any) -> Any:
  hidden = inputs
  for suffix in ('', '_1', '_2'):
    linear = meta['body'][f'body/linear{suffix}']
    hidden = hidden @ linear['w'] + linear['b']
    hidden = hidden * (hidden > 0)
  (readout,) = fast.values()
  return hidden @ readout['w'].T + readout['b']


def _make(name: str) -> tuple[models.MetaModel, Forward]:
  sizes: dict[str, int] = {
      'input_dim': _X,
      'output_dim': _Y,
      'num_hidden': _LAYERS,
      'hidden_dim': _H,
  }
  if name == 'anil':
    return anil.make(**sizes), _anil
  sizes['num_modules'] = _MODULES
  if name == 'linear_hypernetwork':
    return linear_hypernetwork.make(**sizes), _linear
  model = nonlinear_hypernetwork.make(
      **sizes, generator_num_hidden=4, generator_hidden_dim=7
  )
  return model, _nonlinear


def _written_out_loss(outputs: Any, batch: base.Batch) -> Any:
  log_probs = outputs - jnp.log(jnp.exp(outputs).sum(-1, keepdims=True))
  targets = batch.targets
  if targets.ndim == 1:
    targets = (targets[:, None] == jnp.arange(_Y)).astype(float)
  entropy = -(targets * jnp.log(jnp.where(targets > 0, targets, 1.0))).sum(-1)
  losses = -(targets * log_probs).sum(-1) - entropy
  return (losses * batch.mask).sum() / batch.mask.sum()


def _written_out_query_loss(
    forward: Forward, init_fast: Any, meta: Any, task: base.Task
) -> Any:
  def support_loss(fast: Any) -> Any:
    outputs = forward(meta, fast, task.support.inputs)
    return _written_out_loss(outputs, task.support)

  def iterate(carry: Any, step: Any) -> Any:
    fast, first, second = carry
    gradient = jax.grad(support_loss)(fast)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(
        lambda v, g: 0.999 * v + 0.001 * g**2, second, gradient
    )

    def move(p: Any, m: Any, v: Any) -> Any:
      mean, square = m / (1 - 0.9**step), v / (1 - 0.999**step)
      size = jnp.sqrt(square + 1.1920929e-07) + 1e-8
      return p - _RATE * (mean / size + 1e-4 * p)

    return (jax.tree.map(move, fast, first, second), first, second), None

  zeros = jax.tree.map(jnp.zeros_like, init_fast(meta))
  carry = init_fast(meta), zeros, zeros
  (fast, _, _), _ = jax.lax.scan(iterate, carry, jnp.arange(1, _STEPS + 1.0))
  return _written_out_loss(forward(meta, fast, task.query.inputs), task.query)


def _draw_batch(rng: np.random.Generator, loss: str) -> base.Batch:
  if loss == 'actions':
    targets: Any = rng.integers(0, _Y, _ROWS)
  else:
    targets = rng.dirichlet(np.ones(_Y), _ROWS)
  mask: Any = (np.arange(_ROWS) < rng.integers(4, _ROWS)).astype(float)
  return base.Batch(rng.normal(size=(_ROWS, _X)), targets, mask)


_SLOW = (('anil', 'soft labels'), ('nonlinear_hypernetwork', 'soft labels'))


@pytest.mark.parametrize(
    ('name', 'loss'),
    slow.mark([('linear_hypernetwork', 'actions'), *_SLOW], _SLOW),
)
def test_outer_gradient(name: str, loss: str) -> None:
  model, forward = _make(name)
  rng = np.random.default_rng(0)
  tasks = [
      base.Task(_draw_batch(rng, loss), _draw_batch(rng, loss), jnp.zeros(1))
      for _ in range(_TASKS)
  ]
  # Away from initial values at which much is zero.
  meta = jax.tree.map(
      lambda x: np.asarray(x) + 0.1 * rng.normal(size=x.shape),
      model.init(jax.random.key(0)),
  )
  stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *tasks)

  def written_out(meta_params: Any) -> jax.Array:
    return jax.vmap(
        lambda task: _written_out_query_loss(
            forward, model.init_fast, meta_params, task
        )
    )(stacked).mean()

  nothing: Any = None
  distribution = base.TaskDistribution(
      input_dim=_X,
      output_dim=_Y,
      num_modules=0,
      evaluation_splits=(),
      objective=_OBJECTIVES[loss],
      init=nothing,
      sample_latent=nothing,
      sample_examples=nothing,
      num_combinations=nothing,
  )
  learner = outer_loop.make_learner(
      distribution,
      model,
      inner_loop.InnerConfig(
          num_steps=_STEPS,
          learning_rate=_RATE,
          weight_decay=1e-4,
          eps_root=1.1920929e-07,
      ),
      outer_loop.OuterConfig(
          learning_rate=1e-3,
          weight_decay=0.0,
          clip_norm=1.0,
          max_consecutive_skips=1,
          meta_batch_size=_TASKS,
      ),
  )

  def outer_loss(meta_params: Any) -> jax.Array:
    metrics, _ = jax.vmap(
        lambda task: learner.evaluate_task(
            meta_params, None, task, jax.random.key(0)
        )
    )(stacked)
    return metrics['loss'].mean()

  actual = jax.jit(jax.value_and_grad(outer_loss))(meta)
  expected = jax.jit(jax.value_and_grad(written_out))(meta)
  # The package fixes some constants in float32.
  golden.assert_close(actual[0], np.asarray(expected[0]), 1e-6)
  norm = float(optax.tree.norm(expected[1]))
  difference = jax.tree.map(jnp.subtract, actual[1], expected[1])
  assert float(optax.tree.norm(difference)) <= 1e-5 * norm
  assert norm > 1e-3
