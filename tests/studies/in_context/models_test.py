"""The two models: sizes, what they see, what the bottleneck can express."""

import functools
import math
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from modular_hyperteacher import errors
from modular_hyperteacher.configs import fig4c
from modular_hyperteacher.configs import fig4e
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.models import base as models_lib
from modular_hyperteacher.studies.in_context import build as in_context
from modular_hyperteacher.studies.in_context import models
from modular_hyperteacher.studies.in_context import modular_regression
from modular_hyperteacher.studies.in_context import sraven
from modular_hyperteacher.studies.in_context import transformer
from modular_hyperteacher.studies.in_context.configs import (
    in_context as in_context_config,
)
from modular_hyperteacher.studies.in_context.configs import (
    sraven as sraven_config,
)
from modular_hyperteacher.tasks import base as tasks
from tests.helpers import slow

_SMALL = dict(
    embedding_dim=8,
    num_layers=2,
    num_heads=2,
    qkv_dim=None,
    feedforward_dim=16,
    attention='softmax',
    attention_dropout=0.0,
)
_DIMS = dict(input_dim=3, output_dim=2, num_support=5)
_TASK = dict(
    num_modules=4, task_num_hidden=1, task_hidden_dim=6, task_bias=False
)


@pytest.mark.parametrize(
    'task, name',
    [
        (fig4e.get_config('smoke').task.to_dict(), 'goals'),
        (fig4c.get_config('smoke').task.to_dict(), 'preferences'),
        ({'name': 'my_tasks:make'}, 'my_tasks:make'),
    ],
)
def test_tasks_that_cannot_be_read_are_refused(
    task: dict[str, Any], name: str
) -> None:
  run = sweeps.expand(in_context_config.get_config('smoke'))[0]
  of_pairs = modular_regression.make(
      task_support='ring', teacher_hidden_dim=4, num_query=1, **_DIMS
  )
  with pytest.raises(errors.UserError, match=f"task.name is '{name}'; a trans"):
    in_context.make_model(run.config | {'task': task}, of_pairs)


@functools.cache
def make(name: str = 'transformer', **fields: Any) -> models.Model:
  """Returns a small model, compiled; fields of its body come first."""
  body = {k: fields.pop(k, v) for k, v in _SMALL.items()}
  config: dict[str, Any] = {
      **_DIMS,
      **fields,
      'body': transformer.TransformerConfig(**body),
  }
  if name == 'transformer':
    model = models.make_transformer(**config)
  else:
    model = models.make_hypernetwork_transformer(**{**_TASK, **config})
  return model._replace(
      init=jax.jit(model.init), apply=jax.jit(model.apply, static_argnums=4)
  )


def draw_task(num_query: int = 1) -> tuple[tasks.Batch, jax.Array]:
  keys = jax.random.split(jax.random.key(3), 3)
  support = tasks.examples(
      jax.random.normal(keys[0], (5, 3)), jax.random.normal(keys[1], (5, 2))
  )
  return support, jax.random.normal(keys[2], (num_query, 3))


BOTH = pytest.mark.parametrize(
    'name', ['transformer', 'hypernetwork_transformer']
)


def _count(model: models.Model) -> int:
  return models_lib.num_params(jax.eval_shape(model.init, jax.random.key(0)))


@pytest.mark.parametrize('num_tokens, expected', [(16, 151_009), (32, 151_265)])
def test_parameters_in_fuzzy_logic(num_tokens: int, expected: int) -> None:
  """Of Schug et al. (2025), with four variables."""
  body: dict[str, Any] = dict(
      embedding_dim=128, num_heads=8, qkv_dim=16, feedforward_dim=256
  )
  sizes: dict[str, Any] = dict(
      input_dim=4, output_dim=1, num_support=num_tokens - 1
  )
  assert _count(make(**body, **sizes)) == expected


def test_parameters_in_modular_regression() -> None:
  sizes: dict[str, Any] = dict(
      input_dim=16, output_dim=1, num_support=63, num_heads=4
  )
  vanilla = make(embedding_dim=128, feedforward_dim=512, **sizes)
  assert _count(vanilla) == 399_745
  bottleneck = make(
      'hypernetwork_transformer',
      embedding_dim=64,
      feedforward_dim=256,
      num_modules=6,
      task_hidden_dim=32,
      **sizes,
  )
  assert _count(bottleneck) == 105_254


def test_parameters_in_sraven() -> None:
  """Of Schug et al. (2025), at the published size: four layers, 36 tokens."""
  for run in sweeps.expand(sraven_config.get_config('paper')):
    task = {k: v for k, v in run.config['task'].items() if k != 'name'}
    model = in_context.make_model(run.config, sraven.make(**task))
    assert _count(model) == 402_824


def _make_sraven() -> tuple[models.Model, Any, Any]:
  """Returns a small model of sRAVEN, the world and its parameters."""
  run, *_ = sweeps.expand(sraven_config.get_config('smoke'))
  world = sraven.make(num_features=3, num_values=5, ood_fraction=0.25)
  model = in_context.make_model(run.config, world)
  return model, world, world.init(jax.random.key(0))


@pytest.mark.slow
def test_a_sequence_is_read_once_and_in_order() -> None:
  """Predictions of all features; panels count, and so does their order."""
  model, world, world_params = _make_sraven()
  task = world.sample(world_params, jax.random.key(1), 'train')
  params = model.init(jax.random.key(2))

  def predict(inputs: jax.Array) -> models.Prediction:
    support = task.support._replace(inputs=inputs)
    return model.apply(params, None, support, task.query.inputs, False)

  found = predict(task.support.inputs)
  assert found.outputs.shape == (3, 5)
  assert found.codes.shape == (3, 2, 8)
  # Queries are equal but for their positions, and so predictions differ.
  assert np.abs(np.diff(found.outputs, axis=0)).max() > 1e-3
  for changed in (
      jnp.roll(task.support.inputs, 3, 0),
      task.support.inputs[::-1],
  ):
    assert np.abs(predict(changed).outputs - found.outputs).max() > 1e-3
  gradient = jax.grad(lambda x: predict(x).outputs.sum())(task.support.inputs)
  assert (np.abs(gradient).max(-1) > 1e-9).all()


def test_a_bottleneck_cannot_read_sequences() -> None:
  run, *_ = sweeps.expand(in_context_config.get_config('smoke'))
  blocks = {
      'task': {'name': 'sraven'},
      'model': run.config['model'] | {'name': 'hypernetwork_transformer'},
  }
  world = sraven.make(num_features=2, num_values=5, ood_fraction=0.25)
  with pytest.raises(errors.UserError, match="only 'transformer' can read"):
    in_context.make_model(blocks, world)


@BOTH
@pytest.mark.parametrize(
    'kind', slow.mark(['softmax', 'linear', 'hyla'], ['softmax', 'linear'])
)
def test_position_biases_alone_tell_the_order(name: str, kind: str) -> None:
  model = make(name, attention=kind)
  params = model.init(jax.random.key(0))
  support, inputs = draw_task()
  order = jnp.array([3, 1, 4, 0, 2])
  permuted = tasks.take(support, order)

  def predict(params: Any, support: tasks.Batch) -> np.ndarray:
    return np.asarray(model.apply(params, None, support, inputs, False).outputs)

  change = np.abs(predict(params, support) - predict(params, permuted)).max()
  assert change > 1e-3
  blind = {
      module: {
          n: jnp.zeros_like(x) if n == 'position_bias' else x
          for n, x in leaves.items()
      }
      for module, leaves in params.items()
  }
  np.testing.assert_allclose(
      predict(blind, support), predict(blind, permuted), rtol=1e-4, atol=1e-5
  )


@BOTH
def test_every_query_has_a_sequence_of_its_own(name: str) -> None:
  model = make(name)
  params = model.init(jax.random.key(0))
  support, inputs = draw_task(num_query=3)
  together = model.apply(params, None, support, inputs, False).outputs
  for row in range(3):
    alone = model.apply(params, None, support, inputs[row : row + 1], False)
    np.testing.assert_allclose(alone.outputs[0], together[row], atol=1e-5)


@BOTH
def test_all_examples_of_the_context_count(name: str) -> None:
  """There is no causal mask: the first example matters, and so do targets."""
  model = make(name)
  params = model.init(jax.random.key(0))
  support, inputs = draw_task()

  def predict(targets: jax.Array) -> jax.Array:
    batch = support._replace(targets=targets)
    return model.apply(params, None, batch, inputs, False).outputs.sum()

  gradient = np.abs(jax.grad(predict)(support.targets))
  assert (gradient > 1e-7).all()


def test_the_bottleneck_s_code_does_not_depend_on_the_query() -> None:
  model = make('hypernetwork_transformer')
  params = model.init(jax.random.key(0))
  support, inputs = draw_task(num_query=2)
  one, two = (
      model.apply(params, None, support, inputs[i : i + 1], False)
      for i in range(2)
  )
  for name in ('code', 'block_0', 'block_1'):
    np.testing.assert_array_equal(one.features[name], two.features[name])
  assert np.abs(one.outputs - two.outputs).max() > 1e-4


@BOTH
def test_dropout_is_off_at_evaluation(name: str) -> None:
  model = make(name, attention_dropout=0.5)
  params = model.init(jax.random.key(0))
  support, inputs = draw_task()
  evaluated = model.apply(params, None, support, inputs, False).outputs
  same = make(name).apply(params, None, support, inputs, False).outputs
  np.testing.assert_array_equal(evaluated, same)
  trained = [
      model.apply(params, jax.random.key(i), support, inputs, True).outputs
      for i in range(2)
  ]
  assert np.abs(trained[0] - evaluated).max() > 1e-3
  assert np.abs(trained[0] - trained[1]).max() > 1e-3


def _teacher() -> Any:
  world = modular_regression.make(
      task_support='triangles',
      input_dim=16,
      output_dim=1,
      teacher_hidden_dim=16,
      num_support=400,
      num_query=1,
  )
  return world, world.init(jax.random.key(5))


def _draw(split: str, number: int) -> tuple[Any, jax.Array, tasks.Task]:
  """Returns the teacher, latents that give unit norm, and tasks."""
  world, params = _teacher()
  keys = jax.random.split(jax.random.key(6), number)
  drawn = jax.vmap(lambda key: world.sample(params, key, split))(keys)
  latents = drawn.latent[:, 0]
  norms = jnp.array([
      np.linalg.norm(np.einsum('m,mxh->xh', z, params.modules), 2)
      for z in np.asarray(latents)
  ])
  # The student divides by the root of the number of inputs.
  return params, math.sqrt(16) * latents / norms[:, None], drawn


@pytest.mark.slow
def test_the_bottleneck_can_be_the_teacher() -> None:
  """With the teacher's modules, padded to twice its width by zeros."""
  params, codes, drawn = _draw('ood', 20)
  network = models.TaskNetwork(
      modules=jnp.pad(params.modules, ((0, 0), (0, 0), (0, 16)))[:, None],
      readout=jnp.pad(params.readout, ((0, 16), (0, 0))),
  )
  outputs = jax.vmap(network.respond)(codes, drawn.support.inputs)
  np.testing.assert_allclose(outputs, drawn.support.targets, atol=2e-5)


@pytest.mark.slow
def test_split_neurons_solve_disconnected_tasks_without_composing() -> None:
  """Each triangle has its own half of the neurons.

  This student is right on all training tasks. On a pair across the triangles it
  can only add two networks, whatever its code is.
  """
  params, codes, drawn = _draw('train', 20)
  is_first = np.arange(6) < 3
  halves = [
      np.where(h[:, None, None], params.modules, 0)
      for h in (is_first, ~is_first)
  ]
  network = models.TaskNetwork(
      modules=jnp.concatenate(halves, -1)[:, None],
      readout=jnp.tile(params.readout, (2, 1)),
  )
  outputs = jax.vmap(network.respond)(codes, drawn.support.inputs)
  np.testing.assert_allclose(outputs, drawn.support.targets, atol=2e-5)
  _, codes, drawn = _draw('ood', 12)

  @jax.jit
  def residuals(code: jax.Array, task: tasks.Task) -> jax.Array:
    outputs = network.respond(code, task.support.inputs)
    return (outputs - task.support.targets)[:, 0]

  jacobian = jax.jit(jax.jacobian(residuals))
  errors_, variances = [], []
  for index, code in enumerate(codes):
    task = jax.tree.map(lambda x, i=index: x[i], drawn)
    best: Any = optimize.least_squares(
        lambda c, t=task: np.asarray(residuals(jnp.float32(c), t), float),
        np.asarray(code, float) / 2,
        cast(
            Any,
            lambda c, t=task: np.asarray(jacobian(jnp.float32(c), t), float),
        ),
    )
    errors_.append(2 * best.cost / 400)
    variances.append(float(task.support.targets.var()))
  assert 0.84 < 1 - np.mean(errors_) / np.mean(variances) < 0.95


def test_a_generated_network_written_out() -> None:
  """Shared first layer, two generated layers with biases."""
  model = make('hypernetwork_transformer', task_num_hidden=3, task_bias=True)
  params = model.init(jax.random.key(0))
  support, inputs = draw_task(num_query=4)
  found = model.apply(params, None, support, inputs, False)
  (parts,) = [p for p in params.values() if 'modules' in p]
  p = {name: np.asarray(x, float) for name, x in parts.items()}
  assert p['modules'].shape == (4, 2, 6, 6)
  code = np.asarray(found.features['code'], float)

  def gelu(x: np.ndarray) -> np.ndarray:
    return (
        0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    )

  hidden = gelu(np.asarray(inputs, float) @ p['embedding'])
  for layer in range(2):
    weights = np.einsum('m,mio->io', code, p['modules'][:, layer])
    bias = code @ p['biases'][:, layer]
    hidden = gelu(hidden @ weights / math.sqrt(6) + bias)
  expected = hidden @ p['readout'] + code @ p['output_biases']
  np.testing.assert_allclose(found.outputs, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    'fields, message',
    [
        (dict(num_heads=3), 'model.body.embedding_dim is 8; it must be a mult'),
        (dict(qkv_dim=3), 'model.body.qkv_dim is 3; it must be a multiple'),
        (dict(num_layers=0), 'model.body.num_layers is 0; it must be positive'),
        (dict(attention='none'), "model.body.attention is 'none'; choose one"),
        (
            dict(attention_dropout=1.0),
            'model.body.attention_dropout is 1.0; it',
        ),
    ],
)
def test_impossible_bodies_are_refused(
    fields: dict[str, Any], message: str
) -> None:
  with pytest.raises(errors.UserError, match=message):
    make(**fields)
