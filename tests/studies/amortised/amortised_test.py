"""Amortised inference: the set encoder, and what stays a hypernetwork."""

from collections.abc import Callable
import functools
from typing import Any, NoReturn

import jax
from jax import flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.analysis import base as analyses
from modular_hyperteacher.analysis import decoding
from modular_hyperteacher.configs import fig3b
from modular_hyperteacher.configs import fig4e
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.models import base
from modular_hyperteacher.studies.amortised.configs import amortised as config
from modular_hyperteacher.tasks import base as tasks
from tests.helpers import built
from tests.helpers import slow
from tests.helpers import tiny
from tests.helpers import trees

_PLAIN = {
    'amortised_linear_hypernetwork': 'linear_hypernetwork',
    'amortised_nonlinear_hypernetwork': 'nonlinear_hypernetwork',
}
_NO_STEP = {'num_steps': 0}
_TWO_STEPS = {'num_steps': 2, 'learning_rate': 0.01}


@pytest.fixture(name='name')
def fixture_name(request: pytest.FixtureRequest) -> str:
  """The nonlinear one only where its slots matter: see `_BOTH`."""
  return getattr(request, 'param', next(iter(_PLAIN)))


_BOTH = pytest.mark.parametrize(
    'name', slow.mark(_PLAIN, list(_PLAIN)[1:]), indirect=True
)


@functools.cache
def _moved(name: str) -> tuple[Any, Any]:
  """Returns a compiled model, and parameters off their special values."""
  model = tiny.MODELS[name]()
  assert model.infer is not None
  model = model._replace(infer=jax.jit(model.infer))
  params = jax.jit(model.init)(jax.random.key(0))
  draw = np.random.default_rng(0).normal
  return model, jax.tree.map(
      lambda x: np.float32(x + 0.3 * draw(size=x.shape)), params
  )


def _support(num_support: int = 6, seed: int = 2) -> tasks.Batch:
  draw = np.random.default_rng(seed)
  arrays = (
      draw.uniform(-1, 1, (num_support, 3)),
      draw.dirichlet(np.full(4, 0.3), num_support),
      np.ones(num_support),
  )
  return tasks.Batch(*(jnp.asarray(x, jnp.float32) for x in arrays))


_assert_close = functools.partial(trees.assert_close, rtol=1e-5, atol=1e-6)


# The encoder.


def _twin(params: Any, support: tasks.Batch, num_slots: int) -> np.ndarray:
  """The module's equations, example by example, in double precision."""
  layer = {
      name.removeprefix('set_encoder/').removeprefix(
          '~_memorise/'
      ): jax.tree.map(lambda x: np.asarray(x, np.float64), of_layer)
      for name, of_layer in params.items()
  }

  def apply(name: str, x: np.ndarray) -> np.ndarray:
    return x @ layer[name]['w'] + layer[name].get('b', 0)

  memory = []
  for x, y in zip(np.asarray(support.inputs), np.asarray(support.targets)):
    hidden = apply('inputs', x) + apply('targets', y)
    hidden = apply('hidden_1', np.maximum(hidden, 0))
    hidden = np.maximum(hidden, 0)
    memory.append((apply('keys', hidden), apply('values', hidden)))
  queries = layer['set_encoder']['queries']
  vectors = []
  for slot in range(num_slots):
    answers = []
    for query in queries[slot]:
      weights = [np.exp(query @ key / np.sqrt(len(key))) for key, _ in memory]
      weighted = [w * value for w, (_, value) in zip(weights, memory)]
      answers.append(sum(weighted) / sum(weights))
    hidden = apply(f'head_{slot}/~/linear_0', np.concatenate(answers))
    vectors.append(apply(f'head_{slot}/~/linear_1', np.maximum(hidden, 0)))
  return np.concatenate(vectors)


@_BOTH
def test_the_encoder_against_its_twin(name: str) -> None:
  model, params = _moved(name)
  support = _support()
  start, _ = flatten_util.ravel_pytree(model.init_fast(params))
  predicted, _ = flatten_util.ravel_pytree(model.infer(params, support))
  num_slots = 4 if 'nonlinear' not in name else 3  # One is the fast bias.
  expected = _twin(params['encoder'], support, num_slots)
  np.testing.assert_allclose(predicted - start, expected, rtol=1e-4, atol=1e-5)


def test_the_order_of_examples_is_irrelevant(name: str) -> None:
  model, params = _moved(name)
  support = _support()
  rows = jnp.array([3, 0, 5, 1, 4, 2])
  predicted = model.infer(params, support)
  _assert_close(model.infer(params, tasks.take(support, rows)), predicted)
  other = model.infer(params, _support(seed=3))
  differences = jax.tree.map(
      lambda a, b: jnp.abs(a - b).max(), predicted, other
  )
  assert max(jax.tree.leaves(differences)) > 1e-2


def test_examples_that_do_not_count_are_not_read(name: str) -> None:
  model, params = _moved(name)
  support = _support()
  padded = jax.tree.map(lambda x: jnp.concatenate([x, 9 + x[:2]]), support)
  padded = padded._replace(mask=jnp.arange(8) < 6)
  _assert_close(model.infer(params, padded), model.infer(params, support))


def test_predictions_have_the_shapes_of_fast_parameters(name: str) -> None:
  model, params = _moved(name)
  plain = tiny.MODELS[_PLAIN[name]]()
  predicted = jax.eval_shape(model.infer, params, _support())
  expected = jax.eval_shape(plain.init_fast, params['model'])
  assert predicted == expected


def test_actions_are_read_as_classes() -> None:
  """On compositional goals: compact observations, integer targets."""
  run, *_ = sweeps.select(
      sweeps.expand(fig4e.get_config('smoke')), ['model=linear_hypernetwork']
  )
  amortised = sweeps.select(
      sweeps.expand(config.get_config('smoke')),
      ['model=amortised_linear_hypernetwork', 'num_steps=0'],
  )[0]
  block = dict(amortised.config['model'], num_modules=4)
  experiment = built.bilevel_experiment(run.config | {'model': block})

  params = experiment.task.init(jax.random.key(0))

  def infer(key: jax.Array) -> Any:
    support = experiment.task.sample(params, key, 'train').support
    assert support.targets.ndim == 1
    assert experiment.model.infer is not None
    return experiment.model.infer(experiment.model.init(key), support)

  fast = jax.eval_shape(infer, jax.random.key(0))
  assert fast['embeddings']['input'].shape == (1, 4)


# The inner loop.


def _inner(**fields: Any) -> inner_loop.InnerConfig:
  defaults: dict[str, Any] = dict(
      num_steps=3, learning_rate=0.1, weight_decay=1e-4, eps_root=1e-7
  )
  return inner_loop.InnerConfig(**(defaults | fields))


def test_without_steps_nothing_is_differentiated(name: str) -> None:
  def forbidden(outputs: jax.Array, batch: tasks.Batch) -> NoReturn:
    raise AssertionError('the inner loss was computed')

  model, params = _moved(name)
  objective = tasks.Objective(forbidden, lambda outputs, batch: {})
  adapt = inner_loop.InnerLoop(model, objective, _inner(num_steps=0)).adapt
  predicted = model.infer(params, _support())
  draw = inner_loop.from_support(_support(), None)
  adapted = adapt(params, predicted, draw, jax.random.key(0))
  _assert_close(adapted, predicted, rtol=0, atol=0)
  adapt = inner_loop.InnerLoop(model, objective, _inner(num_steps=1)).adapt
  with pytest.raises(AssertionError, match='inner loss'):
    adapt(params, predicted, draw, jax.random.key(0))


@functools.cache
def _world() -> tuple[tasks.TaskDistribution, tasks.Task]:
  """Returns a world and one of its tasks."""
  world = tiny.task()
  sample = jax.jit(lambda params, key: world.sample(params, key, 'train'))
  params = world.init(jax.random.key(0))
  return world, sample(params, jax.random.key(1))


@functools.cache
def _evaluate(name: str, **inner: Any) -> Callable[[Any], Any]:
  """Returns `evaluate(params) -> metrics, fast parameters` of the task."""
  world, drawn = _world()
  learner = tiny.learner(world, name, inner=inner)
  key = jax.random.key(2)
  return jax.jit(lambda params: learner.evaluate_task(params, None, drawn, key))


@_BOTH
def test_a_silent_encoder_leaves_the_plain_hypernetwork(name: str) -> None:
  """Predict, then adapt, with all of the heads' last layers at zero."""
  _, params = _moved(name)
  encoder = {
      layer: jax.tree.map(jnp.zeros_like, p) if 'linear_1' in layer else p
      for layer, p in params['encoder'].items()
  }
  silent = params | {'encoder': encoder}
  expected = _evaluate(_PLAIN[name], **_TWO_STEPS)(params['model'])
  evaluate = _evaluate(name, **_TWO_STEPS)
  _assert_close(evaluate(silent), expected)
  talking = evaluate(params)
  assert abs(talking[0]['loss'] - expected[0]['loss']) > 1e-3


def test_steps_start_from_the_prediction(name: str) -> None:
  """A step of AdamW moves no parameter by much more than its rate of 0.01."""
  _, drawn = _world()
  model, params = _moved(name)
  predicted = model.infer(params, drawn.support)
  for inner, low, high in ((_NO_STEP, 0, 1e-6), (_TWO_STEPS, 1e-3, 0.025)):
    metrics, fast = _evaluate(name, **inner)(params)
    moved = jax.tree.map(lambda a, b: jnp.abs(a - b).max(), fast, predicted)
    assert low <= max(jax.tree.leaves(moved)) <= high
    before = metrics['support_loss_before']
    after = metrics['support_loss_after']
    assert after < before if inner['num_steps'] else after == before


def test_the_memory_learns_without_inner_steps(name: str) -> None:
  evaluate = _evaluate(name, **_NO_STEP)
  gradient = jax.jit(jax.grad(lambda params: evaluate(params)[0]['loss']))
  encoder = gradient(_moved(name)[1])['encoder']
  # Heads as small as these may have no active unit.
  memory = {layer: p for layer, p in encoder.items() if 'head' not in layer}
  assert len(memory) == 6
  assert all(jnp.abs(x).max() > 0 for x in jax.tree.leaves(memory))


# Around it.


def test_latents_are_decoded_from_predictions(name: str) -> None:
  """The analysis of adapted parameters, against a ridge by hand."""
  world, _ = _world()
  world_params = world.init(jax.random.key(0))
  model, params = _moved(name)

  def draw_and_infer(key: jax.Array, split: str) -> tuple[jax.Array, Any]:
    drawn = world.sample(world_params, key, split)
    return drawn.latent, model.infer(params, drawn.support)

  latents, fast = {}, {}
  for split in ('test', 'ood'):
    keys = jax.random.split(jax.random.key(len(split)), 20)
    infer = jax.jit(jax.vmap(functools.partial(draw_and_infer, split=split)))
    latent, fast[split] = infer(keys)
    latents[split] = np.asarray(latent)
  measured = decoding.make_analysis(world, model).measure(
      analyses.Adapted(world_params, params, latents, fast, jax.random.key(0))
  )['ood']
  features = {s: decoding.flatten(fast[s]).astype(float) for s in fast}
  x = {s: np.column_stack([f, np.ones(len(f))]) for s, f in features.items()}
  system = x['test'].T @ x['test'] + np.eye(x['test'].shape[1])
  for module in range(3):
    z = {split: latents[split][:, 0, module] for split in latents}
    decoded = x['ood'] @ np.linalg.solve(system, x['test'].T @ z['test'])
    if np.ptp(z['ood']) > 0:
      error = np.sum((z['ood'] - decoded) ** 2)
      r2 = 1 - error / np.sum((z['ood'] - z['ood'].mean()) ** 2)
      assert measured[f'r2_exact_l0_m{module}'] == pytest.approx(r2, rel=1e-3)
  assert np.isfinite(measured['r2_exact'])


def _runs(preset: str, *only: str) -> list[sweeps.Run]:
  return sweeps.select(sweeps.expand(config.get_config(preset)), list(only))


@pytest.mark.parametrize('preset', presets.PRESETS)
def test_the_gradient_runs_are_those_of_figure_3b(preset: str) -> None:
  digests = {
      sweeps.hash_of(run.run_id)
      for run in sweeps.expand(fig3b.get_config(preset))
      if run.config['model']['name'] in models.HYPERNETWORKS
  }
  assert len(digests) == 4
  assert digests <= {sweeps.hash_of(run.run_id) for run in _runs(preset)}


@_BOTH
def test_prediction_adds_no_fast_parameter(name: str) -> None:
  counts = {}
  for model in (name, _PLAIN[name]):
    run, *_ = _runs('laptop', f'model={model}', 'task_support=random')
    counts[model] = base.count_params(
        built.bilevel_experiment(run.config).model
    )
  (meta, fast), (plain_meta, plain_fast) = counts.values()
  assert fast == plain_fast
  # An encoder of width E has two layers, keys and values; four queries of
  # each slot; heads of two layers.
  e = _runs('laptop', f'model={name}')[0].config['model']['encoder_hidden_dim']
  slots = [32, 32, 32] if 'nonlinear' in name else [32, 32, 32, 8]
  memory = (8 + 8 + 1) * e + 3 * (e + 1) * e
  heads = sum(4 * e + (4 * e + 1) * e + (e + 1) * dim for dim in slots)
  assert meta - plain_meta == memory + heads


@pytest.mark.parametrize(
    'model, field, value, message',
    [
        ('linear_hypernetwork', 'num_steps', 0, 'must be at least 1'),
        ('amortised_linear_hypernetwork', 'num_steps', -1, 'at least 0'),
        ('amortised_linear_hypernetwork', 'second_order', False, 'be True'),
        ('amortised_linear_hypernetwork', 'random_start', True, 'be False'),
    ],
)
def test_what_prediction_cannot_do_is_refused(
    model: str, field: str, value: Any, message: str
) -> None:
  run = _runs('smoke', f'model={model}')[0]
  run.config['model']['inner'][field] = value
  with pytest.raises(errors.UserError, match=message) as error:
    build.build(run.config, num_devices=1)
  assert f'model.inner.{field} is {value}' in str(error.value)
