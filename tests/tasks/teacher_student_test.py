"""The theory's world: teacher, latents, splits, and how its student learns."""

import dataclasses
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher import randomness
from modular_hyperteacher.learning import estimates
from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.models import base as models
from modular_hyperteacher.models import modular_student
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks import objectives
from modular_hyperteacher.tasks import teacher_student
from modular_hyperteacher.tasks.supports import families
from tests.helpers import trees

_LM = inner_loop.InnerConfig(
    num_steps=12, solver='levenberg_marquardt', second_order=False
)
_ADAM = inner_loop.InnerConfig(
    num_steps=5, learning_rate=0.01, fresh_support=True, second_order=False
)


def _make(**overrides: Any) -> tasks.TaskDistribution:
  fields: dict[str, Any] = dict(
      num_modules=6,
      task_support='singles_ring',
      latent_type='discrete',
      sampler='released',
      input_dim=5,
      output_dim=2,
      teacher_hidden_dim=3,
      num_support=24,
      num_query=9,
      num_evaluation_query=11,
  )
  return teacher_student.make(**(fields | overrides))


def _student(**overrides: Any) -> models.MetaModel:
  sizes: dict[str, Any] = dict(
      input_dim=5, output_dim=2, hidden_dim=4, num_modules=7
  )
  return modular_student.make(**(sizes | overrides))


def _learner(
    world: tasks.TaskDistribution,
    inner: inner_loop.InnerConfig,
    student: models.MetaModel | None = None,
    **outer: Any,
) -> outer_loop.Learner:
  fields: dict[str, Any] = dict(
      learning_rate=1e-2,
      weight_decay=0.1,
      clip_norm=None,
      max_consecutive_skips=0,
      meta_batch_size=8,
  )
  return outer_loop.make_learner(
      world,
      student or _student(),
      inner,
      outer_loop.OuterConfig(**(fields | outer)),
  )


def _latents(
    world: tasks.TaskDistribution, split: str, num_draws: int = 300
) -> np.ndarray:
  keys = jax.random.split(jax.random.key(0), num_draws)
  draw = lambda key: world.sample_latent(None, key, split)
  return np.asarray(jax.vmap(draw)(keys))[:, 0]


def test_teacher_against_numpy() -> None:
  world = _make()
  params = world.init(jax.random.key(0))
  task = world.sample(params, jax.random.key(1), 'train')
  theta, readout = np.asarray(params.modules), np.asarray(params.readout)
  latent, inputs = np.asarray(task.latent[0]), np.asarray(task.query.inputs)
  for row, x in enumerate(inputs):
    hidden = np.zeros(3)
    for k in range(3):
      weights = sum(latent[m] * theta[m, :, k] for m in range(6))
      hidden[k] = max(weights @ x / np.sqrt(5), 0)
    np.testing.assert_allclose(
        task.query.targets[row], hidden @ readout, atol=1e-6
    )


@pytest.mark.parametrize('teacher_seed', [None, 3])
def test_a_teacher_seed_is_that_of_all_seeds(teacher_seed: int | None) -> None:
  world = _make(teacher_seed=teacher_seed)
  teachers = [world.init(jax.random.key(seed)) for seed in range(2)]
  for one, other in zip(*teachers):
    assert np.array_equal(one, other) == (teacher_seed is not None)


def test_inputs_have_unit_variance_and_initial_weights_are_cut() -> None:
  world = _make(num_query=4000)
  params = world.init(jax.random.key(0))
  inputs = world.sample(params, jax.random.key(1), 'train').query.inputs
  assert float(jnp.abs(inputs).max()) <= np.sqrt(3)
  assert float(inputs.std()) == pytest.approx(1, abs=0.02)
  assert float(inputs.mean()) == pytest.approx(0, abs=0.02)
  quarters, _ = np.histogram(inputs, np.linspace(-(3**0.5), 3**0.5, 5))
  np.testing.assert_allclose(quarters / inputs.size, 0.25, atol=0.015)
  # Halves of a random word are independent.
  first, second = np.asarray(inputs).ravel().reshape(2, -1)
  assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
  modules, readout = teacher_student.init_modular(
      jax.random.key(2), 6, 40, 40, 4
  )
  assert float(jnp.abs(modules).max()) <= 2 / np.sqrt(6)
  assert float(modules.std()) == pytest.approx(0.8796 / np.sqrt(6), rel=0.03)
  assert float(readout.std()) == pytest.approx(0.8796 / np.sqrt(40), rel=0.15)


def test_discrete_training_and_continuous_evaluation() -> None:
  world = _make()
  train = _latents(world, 'train')
  np.testing.assert_allclose(np.linalg.norm(train, axis=1), 1, rtol=1e-5)
  masks = families.masks(families.FAMILIES['singles_ring'])
  drawn = {tuple(row) for row in train > 0}
  assert drawn == {tuple(row) for row in masks}
  ood = _latents(world, 'ood')
  assert not {tuple(row) for row in ood > 0} & drawn
  assert len(np.unique(ood, axis=0)) == len(ood)
  for k in range(1, 7):
    assert ((_latents(world, f'all_k{k}') > 0).sum(1) == k).all()


def test_continuous_training_follows_the_sampler() -> None:
  released = _latents(_make(latent_type='continuous'), 'train')
  assert (released.sum(1) < 1.5).all()
  paper = _latents(_make(latent_type='continuous', sampler='paper'), 'train')
  num_active = (paper > 0).sum(1)
  np.testing.assert_allclose(paper.sum(1), (num_active + 1) / 2, rtol=1e-5)


def test_counts() -> None:
  world = _make()
  count = lambda split: world.num_combinations(None, split)
  assert count('train') == count('test') == 12
  assert count('ood') == 63 - 12
  assert [count(f'all_k{k}') for k in range(1, 7)] == [6, 15, 20, 15, 6, 1]


def test_evaluation_has_its_own_number_of_examples() -> None:
  world = _make()
  params = world.init(jax.random.key(0))
  shapes = {
      split: [
          batch.inputs.shape[0]
          for batch in world.sample(params, jax.random.key(1), split)[:2]
      ]
      for split in ('train', 'ood')
  }
  assert shapes == {'train': [24, 9], 'ood': [24, 11]}


@pytest.mark.parametrize(
    'field, value, message',
    [
        ('task_support', 'rings', "task_support is 'rings'.* singles_ring"),
        ('latent_type', 'binary', "latent_type is 'binary'.* continuous"),
        ('sampler', 'uniform', "sampler is 'uniform'.* released"),
        ('num_modules', 4, 'num_modules is 4.*6'),
        ('num_query', 0, 'num_query is 0.*positive'),
    ],
)
def test_impossible_values(field: str, value: Any, message: str) -> None:
  with pytest.raises(ValueError, match=message):
    _make(**{field: value})


@pytest.mark.parametrize('inner', [_LM, _ADAM], ids=['lm', 'adam'])
def test_no_gradient_through_the_adaptation(
    inner: inner_loop.InnerConfig,
) -> None:
  """The outer gradient is that of the query loss at a constant latent."""
  world = _make()
  task_params = world.init(jax.random.key(0))
  student = _student()
  meta_params = student.init(jax.random.key(1))
  drawn = world.sample(task_params, jax.random.key(2), 'train')
  learner = _learner(world, inner)

  def query_loss(meta_params: Any) -> tuple[jax.Array, Any]:
    metrics, latent = learner.evaluate_task(
        meta_params, task_params, drawn, jax.random.key(3)
    )
    return metrics['loss'], latent

  gradient_of = jax.jit(jax.grad(query_loss, has_aux=True))
  gradient, latent = gradient_of(meta_params)

  def at_constant_latent(meta_params: Any) -> jax.Array:
    outputs = student.decode(meta_params, latent, drawn.query.inputs)
    return objectives.REGRESSION.loss(outputs, drawn.query)

  expected = jax.jit(jax.grad(at_constant_latent))(meta_params)
  trees.assert_close(gradient, expected, atol=1e-6)
  second_order = dataclasses.replace(_ADAM, second_order=True, eps_root=1e-7)
  learner = _learner(world, second_order)
  other, _ = jax.jit(jax.grad(query_loss, has_aux=True))(meta_params)
  difference = optax.tree.norm(optax.tree.sub(other, expected))
  assert float(difference) > 1e-4


def _adapt_by_hand(
    meta_params: Any, latent: jax.Array, batches: list[tasks.Batch]
) -> np.ndarray:
  """Infers a latent by Adam, one product and one task at a time."""
  theta = np.asarray(meta_params['modules'], np.float64)
  readout = np.asarray(meta_params['readout'], np.float64)
  theta = theta / np.sqrt(theta.shape[1])
  z = np.array(latent, np.float64)
  first, second = np.zeros_like(z), np.zeros_like(z)
  for t, batch in enumerate(batches, start=1):
    x = np.asarray(tasks.dense(batch.inputs), np.float64)
    before = x @ np.tensordot(z, theta, 1)
    error = np.maximum(before, 0) @ readout - np.asarray(batch.targets)
    back = (error / error.size) @ readout.T * (before > 0)
    gradient = np.einsum('mxh,nx,nh->m', theta, x, back)
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient**2
    unbiased = first / (1 - 0.9**t), second / (1 - 0.999**t)
    z -= _ADAM.learning_rate * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
  return z


@pytest.mark.parametrize('random_start', [False, True])
def test_shared_inputs_against_a_loop_over_tasks(random_start: bool) -> None:
  """Tasks share the inputs of an inner step, and nothing else."""
  inner = dataclasses.replace(_ADAM, random_start=random_start)
  world = _make(shared_inputs=True)
  task_params = world.init(jax.random.key(0))
  student = _student()
  problem = estimates.Problem(world, student, inner)
  data_key = jax.random.key(2)
  step_key = jax.random.fold_in(data_key, 0)
  inner_keys = jax.random.split(
      randomness.stream(step_key, 'shared_inputs'), inner.num_steps
  )
  meta_params = student.init(jax.random.key(1))

  @jax.jit
  @jax.value_and_grad
  def query_loss(meta_params: Any, latent: Any, query: tasks.Batch) -> Any:
    outputs = student.decode(meta_params, latent, query.inputs)
    return objectives.REGRESSION.loss(outputs, query)

  sample = jax.jit(world.sample, static_argnums=2)
  sample_examples = jax.jit(world.sample_examples, static_argnums=3)
  losses, gradients, inputs = [], [], []
  for key in jax.random.split(step_key, 8):
    sample_key, adapt_key = jax.random.split(key)
    task = sample(task_params, sample_key, 'train')
    batches = [
        sample_examples(task_params, inner_key, task.latent, 'train')[0]
        for inner_key in inner_keys
    ]
    inputs.append([tasks.dense(batch.inputs) for batch in batches])
    start, _ = problem.start(meta_params, task, adapt_key)
    latent = _adapt_by_hand(meta_params, start, batches)
    loss, gradient = query_loss(meta_params, jnp.float32(latent), task.query)
    losses.append(loss)
    gradients.append(gradient)
  assert np.ptp(inputs, axis=0).max() == 0 and np.ptp(inputs, axis=1).min() > 0
  mean = jax.tree.map(lambda *leaves: sum(leaves) / 8, *gradients)

  def take_step(world: tasks.TaskDistribution, chunk_size: int) -> Any:
    learner = _learner(world, inner, student, task_chunk_size=chunk_size)
    step = jax.pmap(
        learner.step,
        axis_name=outer_loop.DEVICE_AXIS,
        devices=jax.devices()[:1],
    )
    arguments = learner.init(jax.random.key(1)), task_params, data_key
    return step(*jax.tree.map(lambda x: x[None], arguments))[1]

  for chunk_size in (2, 8):  # All chunks share them.
    metrics = take_step(world, chunk_size)
    np.testing.assert_allclose(metrics['loss'][0], np.mean(losses), rtol=1e-5)
    np.testing.assert_allclose(
        metrics['gradient_norm'][0], optax.tree.norm(mean), rtol=1e-4
    )
  apart = take_step(_make(), 8)
  assert abs(apart['loss'][0] / np.mean(losses) - 1) > 1e-4


def test_shared_inputs_change_no_output() -> None:
  """They only change the order of a product."""
  world, task_key = _make(), jax.random.key(1)
  params = world.init(jax.random.key(0))
  task = world.sample(params, task_key, 'train')
  shared = _make(shared_inputs=True).sample(params, task_key, 'train')
  rows = jnp.array([3, 0])
  for ours, theirs in (
      (shared.support, task.support),
      (tasks.take(shared.support, rows), tasks.take(task.support, rows)),
  ):
    np.testing.assert_array_equal(tasks.dense(ours.inputs), theirs.inputs)
    np.testing.assert_allclose(ours.targets, theirs.targets, atol=1e-6)


def test_inputs_are_shared_only_if_they_are_fresh() -> None:
  message = 'task.shared_inputs is True; without model.inner.fresh_support it'
  with pytest.raises(errors.UserError, match=message):
    _learner(_make(shared_inputs=True), _LM)


def test_latent_start_is_not_learned() -> None:
  world = _make()
  learner = _learner(world, _LM)
  task_params = world.init(jax.random.key(0))
  state = learner.init(jax.random.key(1))
  step = jax.pmap(
      learner.step, axis_name=outer_loop.DEVICE_AXIS, devices=jax.devices()[:1]
  )
  add_axis = lambda tree: jax.tree.map(lambda x: x[None], tree)
  after, _ = step(
      add_axis(state), add_axis(task_params), add_axis(jax.random.key(2))
  )
  moved = jax.tree.map(
      lambda a, b: bool((a != b[0]).any()),
      state.meta_params,
      after.meta_params,
  )
  assert moved == {'modules': True, 'readout': True, 'latent_start': False}


def test_levenberg_marquardt_finds_the_latent_of_a_faithful_student() -> None:
  world = _make()
  task_params = world.init(jax.random.key(0))
  student = _student(hidden_dim=3, num_modules=6)
  meta_params = {
      'modules': task_params.modules,
      'readout': task_params.readout,
      'latent_start': jnp.full(6, 0.3),
  }
  learner = _learner(world, _LM, student)
  drawn = world.sample(task_params, jax.random.key(5), 'ood')
  metrics, latent = learner.evaluate_task(
      meta_params, task_params, drawn, jax.random.key(0)
  )
  assert float(metrics['loss']) < 1e-9
  np.testing.assert_allclose(latent, drawn.latent[0], atol=1e-3)


def test_random_start_differs_between_tasks() -> None:
  world = _make()
  task_params = world.init(jax.random.key(0))
  meta_params = _student().init(jax.random.key(1))
  drawn = world.sample(task_params, jax.random.key(2), 'train')
  config = dataclasses.replace(_ADAM, random_start=True, learning_rate=1e-9)
  learner = _learner(world, config)
  evaluated = [
      learner.evaluate_task(
          meta_params, task_params, drawn, jax.random.key(seed)
      )
      for seed in (3, 3, 4)
  ]
  for metrics, _ in evaluated:  # Such small steps do not change the loss.
    np.testing.assert_allclose(
        metrics['support_loss_before'],
        metrics['support_loss_after'],
        rtol=1e-4,
    )
  starts = [fast_params for _, fast_params in evaluated]
  np.testing.assert_array_equal(starts[0], starts[1])
  assert float(jnp.abs(starts[0] - starts[2]).max()) > 0.1
  assert float(jnp.abs(starts[0] - meta_params['latent_start']).max()) > 0.1


def test_cosine_schedule() -> None:
  outer = outer_loop.OuterConfig(
      learning_rate=1e-3,
      weight_decay=0.0,
      clip_norm=None,
      max_consecutive_skips=0,
      meta_batch_size=1,
      num_outer_steps=100,
      final_fraction=1e-3,
  )
  optimizer = outer_loop.make_optimizer(outer)
  params = jnp.zeros(1)
  state, sizes = optimizer.init(params), []
  update = jax.jit(optimizer.update)
  for _ in range(101):
    updates, state = update(jnp.ones(1), state, params)
    sizes.append(float(-cast(jax.Array, updates)[0]))
  # A constant gradient moves Adam by the learning rate.
  halfway = 1e-3 * (0.999 * 0.5 + 1e-3)
  np.testing.assert_allclose(
      [sizes[0], sizes[50], sizes[100]], [1e-3, halfway, 1e-6], rtol=1e-3
  )
