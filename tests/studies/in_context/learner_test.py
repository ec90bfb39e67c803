"""Training and evaluation of in-context learners, from schedule to system."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher import randomness
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import components
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.learning import programs
from modular_hyperteacher.profiling import flops
from modular_hyperteacher.studies.in_context import decoding
from modular_hyperteacher.studies.in_context import learner as learners
from modular_hyperteacher.studies.in_context import modular_regression
from modular_hyperteacher.studies.in_context import system as systems
from modular_hyperteacher.studies.in_context.configs import in_context
from modular_hyperteacher.studies.in_context.configs import (
    in_context_hyperteacher,
)
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks import objectives
from tests.helpers import tiny
from tests.studies.in_context import models_test

_OUTER: dict[str, Any] = dict(
    learning_rate=1e-2,
    warmup_fraction=0.1,
    final_fraction=0.1,
    weight_decay=0.1,
    clip_norm=1.0,
    meta_batch_size=16,
    num_outer_steps=50,
)
_WORLD = modular_regression.make(
    task_support='ring_chords',
    input_dim=3,
    output_dim=2,
    teacher_hidden_dim=4,
    num_support=5,
    num_query=1,
)


def make_config(**fields: Any) -> learners.OuterConfig:
  return learners.OuterConfig(**(_OUTER | fields))


def make_system(name: str = 'transformer', **body: Any) -> programs.System:
  return systems.make_system(
      _WORLD,
      models_test.make(name, **body),
      make_config(),
      num_evaluation_tasks=32,
      draw_unrelated=modular_regression.draw_unrelated,
  )


def make_programs(
    system: programs.System, seeds: list[int]
) -> tuple[programs.Programs, list[programs.SeedTasks]]:
  roots = [randomness.root_key(seed) for seed in seeds]
  drawn = [system.draw_tasks(root) for root in roots]
  return programs.Programs(system, roots, drawn), drawn


def test_the_rate_rises_then_falls_to_a_tenth() -> None:
  rate = learners.learning_rate(
      make_config(num_outer_steps=100, learning_rate=1.0)
  )
  assert rate(0) == 0
  assert rate(5) == pytest.approx(0.5)
  assert rate(10) == pytest.approx(1.0)
  # Half a cosine between step 10 and step 90.
  assert rate(50) == pytest.approx(0.55)
  for step in (90, 95, 100):
    assert rate(step) == pytest.approx(0.1)


def test_what_weight_decay_applies_to() -> None:
  """Matrices, biases that have a row per head, and tables of positions."""
  params = models_test.make().init(jax.random.key(0))
  marks = outer_loop.is_matrix(params)
  decaying = {
      f'{module.split("/")[-1]}/{name}'
      for module, leaves in marks.items()
      for name, mark in leaves.items()
      if mark
  }
  blocks = [f'block_{i}' for i in range(2)]
  attention = ('query', 'key', 'value')
  expected = {'embedding/w', 'readout/w'}
  for block in blocks:
    expected |= {f'{block}_attention/{n}_{p}' for n in attention for p in 'wb'}
    expected |= {f'{block}_attention/position_bias', 'output/w'}
    expected |= {f'{block}_feedforward_{way}/w' for way in ('in', 'out')}
  assert decaying == expected


@pytest.mark.slow
def test_devices_and_chunks_do_not_change_a_step() -> None:
  model = models_test.make(attention_dropout=0.3)
  key = jax.random.key(0)
  task_params = _WORLD.init(key)

  def step(num_devices: int, chunk_size: int | None) -> Any:
    learner = learners.make(
        _WORLD, model, make_config(task_chunk_size=chunk_size)
    )
    state = learner.init(key)._replace(step=jnp.int32(7))
    return tiny.on_devices(learner.step, num_devices)(state, task_params, key)

  state, metrics = step(1, None)
  other, other_metrics = step(2, 4)
  assert other_metrics['loss'] == pytest.approx(metrics['loss'], rel=1e-4)
  for x, y in zip(
      jax.tree.leaves(other.meta_params), jax.tree.leaves(state.meta_params)
  ):
    np.testing.assert_allclose(x, y, rtol=1e-3, atol=2e-4)


def test_a_query_s_target_reaches_no_input() -> None:
  """Predictions are the same whatever the target to predict is."""
  system = make_system()
  params = system.init(jax.random.key(0)).meta_params
  task_params = _WORLD.init(jax.random.key(1))
  task = _WORLD.sample(task_params, jax.random.key(2), 'train')
  model = models_test.make()
  seen = []

  def record(
      params: Any, key: Any, support: tasks.Batch, inputs: jax.Array, _: bool
  ) -> Any:
    seen.append((support, inputs))
    return model.apply(params, key, support, inputs, False)

  for shift in (0.0, 5.0):
    query = task.query._replace(targets=task.query.targets + shift)

    def sample(*_: Any, query: tasks.Batch = query) -> Any:
      return task.support, query

    world = modular_regression.make(
        task_support='ring',
        input_dim=3,
        output_dim=2,
        teacher_hidden_dim=4,
        num_support=5,
        num_query=1,
    )
    object.__setattr__(world, 'sample_examples', sample)
    spy = model._replace(apply=record)
    evaluate = systems._make_evaluate(world, spy, None)
    latents = jnp.zeros((4, 2, 1, 6)).at[:, 1].set(1.0)
    losses, _ = tiny.on_devices(evaluate, 1)(
        params, task_params, latents, jax.random.key(0)
    )
    seen.append(float(losses['loss'][0]))
  arrays = [x for x in seen if not isinstance(x, float)]
  assert all(inputs.shape == (1, 3) for _, inputs in arrays)
  assert all(len(support.targets) == 5 for support, _ in arrays)
  low, high = (x for x in seen if isinstance(x, float))
  predicted = model.apply(params, None, task.support, task.query.inputs, False)
  for loss, shift in ((low, 0.0), (high, 5.0)):
    error = predicted.outputs - task.query.targets - shift
    assert loss == pytest.approx(float((error**2).sum()), rel=1e-4)


@pytest.mark.slow
@models_test.BOTH
def test_evaluation_written_out(name: str) -> None:
  """Pooled R^2, the control, and decoding in float64."""
  system = make_system(name)
  compiled, (drawn,) = make_programs(system, [3])

  def evaluate(state: outer_loop.TrainState) -> dict[str, np.ndarray]:
    metrics = programs.fetch(compiled.evaluate(state.meta_params)[0])
    return {metric: values[0] for metric, values in metrics.items()}

  # Before training, which frees the state. Losses of its few tasks are noisy.
  first = evaluate(state := compiled.init())
  state, _ = compiled.train(state, 40)
  found = evaluate(state)
  assert (found['loss'] < 0.8 * first['loss']).all(), (found, first)
  splits = system.evaluation_splits
  assert splits == ('valid', 'test', 'ood', 'ood_common', 'unrelated')
  params = jax.tree.map(lambda x: x[0], programs.fetch(state.meta_params))
  model = models_test.make(name)
  root = randomness.root_key(3)
  keys = jax.random.split(randomness.stream(root, 'evaluation'), len(splits))
  latents = [*drawn.evaluation_latents, drawn.evaluation_latents[0]]
  features, targets = {}, {}
  for index, split in enumerate(splits):
    errors_, baselines, read = [], [], []
    for latent, key in zip(latents[index], jax.random.split(keys[index], 32)):
      task_params = drawn.task_params
      if split == 'unrelated':
        task_params = modular_regression.draw_unrelated(
            task_params, randomness.stream(key, 'unrelated')
        )
      support, query = _WORLD.sample_examples(task_params, key, latent, 'test')
      predicted = model.apply(params, None, support, query.inputs, False)
      target = np.asarray(query.targets, float)
      errors_.append(((np.asarray(predicted.outputs) - target) ** 2).mean())
      baselines.append(
          ((np.asarray(support.targets, float).mean(0) - target) ** 2).mean()
      )
      read.append(np.asarray(predicted.features['block_1'], float))
    expected = 1 - np.mean(errors_) / np.mean(baselines)
    assert found['prediction_r2'][index] == pytest.approx(expected, rel=1e-3)
    features[split] = np.array(read)
    targets[split] = np.asarray(latents[index], float)[:, 0]
  x, z = features['valid'], targets['valid']
  centred = x - x.mean(0)
  slope = np.linalg.solve(
      centred.T @ centred + np.eye(x.shape[1]), centred.T @ (z - z.mean(0))
  )
  for index, split in enumerate(splits):
    decoded = (features[split] - x.mean(0)) @ slope + z.mean(0)
    error = ((decoded - targets[split]) ** 2).mean(0)
    expected = (1 - error / targets[split].var(0)).mean()
    assert found['decoding_r2'][index] == pytest.approx(expected, abs=2e-3)
    assert found['decoding_r2_block_1'][index] == found['decoding_r2'][index]
  assert ('decoding_r2_code' in found) == (name != 'transformer')


def test_decoding_is_fitted_on_the_split_asked_for() -> None:
  """Only the second split's features hold its latents."""
  rng = np.random.default_rng(0)
  features, latents = rng.normal(size=(2, 2, 500, 3)).astype(np.float32)
  features[1] = latents[1]
  scores = systems._decode(
      [{'block_0': jnp.asarray(f)} for f in features], jnp.asarray(latents), 1
  )
  assert scores[1]['decoding_r2'] > 0.95 > 0 > scores[0]['decoding_r2']


def test_decoding_leaves_out_latents_that_do_not_vary() -> None:
  rng = np.random.default_rng(0)
  features = jnp.asarray(rng.normal(size=(500, 4)), jnp.float32)
  latents = features[:, :3] @ jnp.asarray(rng.normal(size=(3, 3)), jnp.float32)
  latents = latents.at[:, 1].set(1.0)
  weights = decoding.fit(features, latents)
  assert decoding.score(weights, features, latents) > 0.99


def test_objectives_without_squares_have_no_r2() -> None:
  batch = tasks.examples(jnp.zeros((1, 3)), jnp.array([[0.2, 0.8]]))
  found = systems.measure(
      objectives.SOFT_LABELS, jnp.array([[0.0, 1.0]]), batch, batch
  )
  assert set(found) == {'loss', 'accuracy'}
  assert found['accuracy'] == 1


def test_what_a_task_of_another_package_returns_is_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  monkeypatch.setattr(components, '_allowed', {})
  run, *_ = sweeps.expand(in_context_hyperteacher.get_config('smoke'))
  task = run.config['task'] | {'name': 'tests.helpers.odd_tasks:flat'}
  config = run.config | {'task': task}
  components.allow(config)
  with pytest.raises(errors.UserError, match='sample_latent returns an array'):
    build.draw_tasks(build.build(config, 1))


@pytest.mark.slow
def test_the_hyperteacher_is_that_of_figure_3b() -> None:
  """And its splits and evaluation tasks; only the number of queries differs."""
  from modular_hyperteacher.configs import fig3b  # pylint: disable=import-outside-toplevel

  ours, theirs = (
      sweeps.select(
          sweeps.expand(config.get_config('laptop')), ['task_support=random']
      )[0]
      for config in (in_context_hyperteacher, fig3b)
  )
  changed = {
      field
      for field, value in theirs.config['task'].items()
      if ours.config['task'][field] != value
  }
  assert changed == {'num_query'}
  drawn = []
  for run in (ours, theirs):
    training = run.config['training'] | {'num_evaluation_tasks': 8}
    built = build.build(run.config | {'training': training}, 1)
    drawn.append(build.draw_tasks(built)[0])
  for x, y in zip(*map(jax.tree.leaves, drawn)):
    np.testing.assert_array_equal(
        jax.random.key_data(x)
        if jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
        else x,
        jax.random.key_data(y)
        if jnp.issubdtype(y.dtype, jax.dtypes.prng_key)
        else y,
    )


@pytest.mark.parametrize(
    'fields, message',
    [
        (dict(learning_rate=0.0), 'model.outer.learning_rate is 0.0; it must'),
        (dict(clip_norm=-1.0), 'model.outer.clip_norm is -1.0; it must'),
        (dict(weight_decay=-1.0), 'model.outer.weight_decay is -1.0; it must'),
        (dict(final_fraction=2.0), 'model.outer.final_fraction is 2.0; it m'),
        (dict(warmup_fraction=0.5), 'model.outer.warmup_fraction is 0.5; it'),
        # A third of two steps, rounded, is half of them.
        (
            dict(warmup_fraction=0.3, num_outer_steps=2),
            'model.outer.warmup_fraction is 0.3; it must .* rounded to steps',
        ),
    ],
)
def test_impossible_settings_are_refused(
    fields: dict[str, Any], message: str
) -> None:
  with pytest.raises(errors.UserError, match=message):
    make_config(**fields)


@pytest.mark.slow
@pytest.mark.parametrize('model', ['transformer', 'hypernetwork_transformer'])
def test_a_step_multiplies_no_more_than_it_must(model: str) -> None:
  """Three products per weight matrix and token; two for the first layer.

  Of the last block only the last token is read, so only its keys and values
  are computed for all tokens.
  """
  run, *_ = sweeps.select(
      sweeps.expand(in_context.get_config('laptop')), [f'model={model}']
  )
  body, task = run.config['model']['body'], run.config['task']
  width, tokens = body['embedding_dim'], task['num_support'] + 1
  inputs = task['input_dim'] + task['output_dim']
  per_token = 4 * width**2 + 2 * width * body['feedforward_dim']
  full = tokens * (per_token + 2 * tokens * width)
  last = tokens * 2 * width**2 + (per_token - 2 * width**2)
  last += 2 * tokens * width
  multiply_adds = 2 * tokens * inputs * width + 3 * (full + last)
  needed = 2 * multiply_adds * run.config['training']['meta_batch_size']
  counted = flops.outer_step(run.config)
  assert counted is not None
  # In addition: the teacher, and the bottleneck's network.
  assert 1 < counted / needed < 1.1
