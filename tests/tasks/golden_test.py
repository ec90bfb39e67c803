"""Agreement with numbers computed with the authors' released code.

Tolerances are relative to the largest entry of an array.
"""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.models import hypernetwork
from modular_hyperteacher.models import linear_hypernetwork
from modular_hyperteacher.models import maml
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import hyperteacher
from modular_hyperteacher.tasks import objectives
from modular_hyperteacher.tasks.gridworlds import goals
from modular_hyperteacher.tasks.gridworlds import mazes
from modular_hyperteacher.tasks.gridworlds import observations
from modular_hyperteacher.tasks.gridworlds import preferences
from tests.helpers import golden

_BLOCKS = ('input', 'hidden', 'output')


class Case:
  """One few-shot file: our learner, and a dictionary in the file's terms.

  The observations of grid worlds are dense there; `compact` ones are what
  training is on.
  """

  def __init__(self, name: str, compact: bool = False) -> None:
    self.compact = compact
    self.data = golden.load(name)
    if name == 'hyperteacher_maml':
      self.model = maml.make(
          input_dim=16, output_dim=8, num_hidden=3, hidden_dim=16
      )
      self.to_ours, self.to_theirs = maml_to_ours, maml_to_theirs
      self.fast_to_theirs = maml_to_theirs
    else:
      sizes = {
          'hyperteacher_linear': (16, 8, 16, 8),
          'preferences_linear': (490, 5, 8, 4),
      }[name]
      input_dim, output_dim, hidden_dim, num_modules = sizes
      self.model = linear_hypernetwork.make(
          input_dim=input_dim,
          output_dim=output_dim,
          num_hidden=3,
          hidden_dim=hidden_dim,
          num_modules=num_modules,
      )
      self.to_ours, self.to_theirs = linear_to_ours, linear_to_theirs
      self.fast_to_theirs = linear_fast_to_theirs
    self.objective = (
        objectives.ACTION_VALUES
        if name.startswith('preferences')
        else objectives.SOFT_LABELS
    )
    self.inner = inner_loop.InnerConfig(
        num_steps=int(self.data['hp_n_inner']),
        learning_rate=float(self.data['hp_lr_inner']),
        weight_decay=float(self.data['hp_weight_decay_inner']),
        eps_root=float(self.data['hp_eps_root_inner']),
    )
    self.num_tasks = len(self.data['support_x'])
    outer = outer_loop.OuterConfig(
        learning_rate=float(self.data['hp_lr_outer']),
        weight_decay=float(self.data['hp_weight_decay_outer']),
        clip_norm=float(self.data['hp_clip']),
        max_consecutive_skips=1,
        meta_batch_size=self.num_tasks,
    )
    self.optimizer = outer_loop.make_optimizer(outer)
    drawn = base.Task(
        self._batch('support'), self._batch('query'), self.data['latent']
    )
    self.tasks = jax.tree.map(jnp.asarray, drawn)
    nothing: Any = None
    distribution = base.TaskDistribution(
        input_dim=0,
        output_dim=0,
        num_modules=0,
        evaluation_splits=(),
        objective=self.objective,
        init=nothing,
        sample_latent=nothing,
        sample_examples=nothing,
        num_combinations=nothing,
    )
    self.learner = outer_loop.make_learner(
        distribution, self.model, self.inner, outer
    )
    self.meta_params = self.to_ours(self.data, 'meta_')

  def _batch(self, name: str) -> base.Batch:
    inputs = self.data[f'{name}_x'].astype(np.float32)
    mask = self.data.get(f'{name}_mask', np.ones(inputs.shape[:2]))
    if self.compact:
      scenes = [to_scenes(rows) for rows in inputs]
      inputs = jax.tree.map(lambda *leaves: np.stack(leaves), *scenes)
    return base.Batch(inputs, self.data[f'{name}_y'], mask.astype(np.float32))

  def evaluate(self, meta_params: Any) -> Any:
    key = jax.random.key(0)
    return jax.vmap(
        lambda task: self.learner.evaluate_task(meta_params, None, task, key)
    )(self.tasks)

  def outer_loss(self, meta_params: Any) -> jax.Array:
    metrics, _ = self.evaluate(meta_params)
    return metrics['loss'].mean()


def to_scenes(rows: np.ndarray) -> observations.Scenes:
  """Returns the preferences' instances that observations [N, X] show."""
  layout = preferences.LAYOUT
  shape = -1, preferences.HORIZON, layout.num_cells, layout.num_channels
  channels = rows.reshape(shape)
  objects = channels[..., : layout.num_types]
  shown = [np.nonzero(instance.max(0)) for instance in objects]
  arrays: dict[str, Any] = dict(
      agent=channels[..., layout.agent].argmax(-1),
      object_cells=np.stack([cells for cells, _ in shown]),
      object_types=np.stack([types for _, types in shown]),
      visible=np.stack([
          instance[:, cells, types]
          for instance, (cells, types) in zip(objects, shown)
      ]),
      walls=channels[0, 0, :, layout.walls],
  )
  scenes = observations.Scenes(**arrays, layout=layout)
  np.testing.assert_array_equal(scenes.dense(), rows)
  return scenes


def maml_to_ours(data: dict[str, Any], prefix: str) -> Any:
  layers = [
      {'w': data[f'{prefix}layer{i}_W'], 'b': data[f'{prefix}layer{i}_b']}
      for i in range(4)
  ]
  layers[-1]['w'] = layers[-1]['w'].T  # Ours is stored as [Y, H].
  names = ('body/linear', 'body/linear_1', 'body/linear_2', 'readout')
  return jax.tree.map(jnp.asarray, dict(zip(names, layers)))


def maml_to_theirs(params: Any) -> dict[str, Any]:
  names = ('body/linear', 'body/linear_1', 'body/linear_2', 'readout')
  theirs = {}
  for i, name in enumerate(names):
    weights = params[name]['w']
    if name == 'readout':
      weights = jnp.swapaxes(weights, -1, -2)
    theirs[f'layer{i}_W'] = weights
    theirs[f'layer{i}_b'] = params[name]['b']
  return theirs


def linear_to_ours(data: dict[str, Any], prefix: str) -> Any:
  return jax.tree.map(
      jnp.asarray,
      {
          'embeddings': {b: data[f'{prefix}{b}_embedding'] for b in _BLOCKS},
          'generators': {b: {'w': data[f'{prefix}{b}_bank']} for b in _BLOCKS},
      },
  )


def linear_to_theirs(params: Any) -> dict[str, Any]:
  banks = {f'{b}_bank': params['generators'][b]['w'] for b in _BLOCKS}
  return banks | {f'{b}_embedding': params['embeddings'][b] for b in _BLOCKS}


def linear_fast_to_theirs(fast: Any) -> dict[str, Any]:
  theirs = {f'{b}_embedding': fast['embeddings'][b] for b in _BLOCKS}
  return theirs | {'output_bias': fast['bias']}


@pytest.fixture(
    params=[
        ('hyperteacher_linear',),
        ('hyperteacher_maml',),
        ('preferences_linear',),
        ('preferences_linear', True),
    ],
    ids=lambda arguments: arguments[0] + ' compact' * (len(arguments) > 1),
)
def case(request: pytest.FixtureRequest) -> Case:
  return Case(*request.param)


def test_adapted_parameters_and_losses(case: Case) -> None:
  metrics, fast_params = jax.jit(case.evaluate)(case.meta_params)
  for name, value in case.fast_to_theirs(fast_params).items():
    golden.assert_close(value, case.data[f'fast_end_{name}'], 2e-4, name)
  golden.assert_close(metrics['loss'], case.data['query_loss'], 2e-4)
  for key in ('support_loss_before', 'support_loss_after'):
    golden.assert_close(metrics[key], case.data[key], 2e-4, key)
  if 'query_acc' in case.data:
    np.testing.assert_allclose(metrics['accuracy'], case.data['query_acc'])


def test_outer_gradient(case: Case) -> None:
  loss, gradient = jax.jit(jax.value_and_grad(case.outer_loss))(
      case.meta_params
  )
  golden.assert_close(loss, case.data['outer_loss'], 2e-4)
  golden.assert_close(optax.tree.norm(gradient), case.data['grad_norm'], 1e-4)
  for name, value in case.to_theirs(gradient).items():
    golden.assert_close(value, case.data[f'grad_{name}'], 1e-3, name)


def test_outer_update_from_stored_gradient(case: Case) -> None:
  gradient = case.to_ours(case.data, 'grad_')
  updates, _ = case.optimizer.update(
      gradient, case.optimizer.init(case.meta_params), case.meta_params
  )
  after = optax.apply_updates(case.meta_params, updates)
  for name, value in case.to_theirs(after).items():
    np.testing.assert_allclose(
        value, case.data[f'meta_after1_{name}'], atol=1e-6, err_msg=name
    )


def test_two_outer_steps(case: Case) -> None:
  gradient_of = jax.jit(jax.value_and_grad(case.outer_loss))
  params, state = case.meta_params, case.optimizer.init(case.meta_params)
  for step in (1, 2):
    _, gradient = gradient_of(params)
    updates, state = case.optimizer.update(gradient, state, params)
    params = optax.apply_updates(params, updates)
    for name, value in case.to_theirs(params).items():
      expected = case.data[f'meta_after{step}_{name}']
      golden.assert_close(value, expected, 5e-3, f'{name} after step {step}')
    if step == 1:
      loss, gradient = gradient_of(params)
      golden.assert_close(loss, case.data['outer_loss_after1'], 5e-3)
      norm = optax.tree.norm(gradient)
      golden.assert_close(norm, case.data['grad_norm_after1'], 5e-3)


def test_first_inner_step(case: Case) -> None:
  inner = inner_loop.InnerLoop(
      case.model,
      case.objective,
      inner_loop.InnerConfig(**{**vars(case.inner), 'num_steps': 1}),
  )
  start = case.model.init_fast(case.meta_params)
  fast_params = jax.vmap(
      lambda batch: inner.adapt(
          case.meta_params, start, lambda key: batch, jax.random.key(0)
      )
  )(case.tasks.support)
  for name, value in case.fast_to_theirs(fast_params).items():
    golden.assert_close(value, case.data[f'fast_one_{name}'], 5e-5, name)


@pytest.mark.parametrize('block', _BLOCKS)
def test_generated_weights(block: str) -> None:
  data = golden.load('hyperteacher_linear')
  blocks = hypernetwork.base_blocks(16, 8, 3, 16)
  embeddings = hypernetwork.normalise(data[f'meta_{block}_embedding'])
  flat = embeddings @ data[f'meta_{block}_bank']
  weights, biases = jax.vmap(
      lambda layer: hypernetwork.split_layer(layer, blocks[block])
  )(flat)
  expected = data[f'gen_{block}_W']
  golden.assert_close(weights.reshape(expected.shape), expected, 5e-5)
  golden.assert_close(biases.ravel(), data[f'gen_{block}_b'].ravel(), 5e-5)


def test_hyperteacher_targets() -> None:
  data = golden.load('hyperteacher_world')
  teacher = hyperteacher.Teacher(16, 8, 8, 3)

  params = hyperteacher.HyperteacherParams(
      input_weights=data['teacher_W_in'],
      generator=data['teacher_Gamma'],
      output_weights=data['teacher_W_out'],
      standardisation_inputs=data['standardisation_x'],
      split=cast(Any, None),
  )

  def outputs(mask: jax.Array, inputs: Any) -> Any:
    generated = teacher.generate(params.generator, mask)
    return teacher.respond(params, generated, inputs)

  masks = data['masks'].astype(np.float32)
  generated = jax.vmap(teacher.generate, (None, 0))(
      data['teacher_Gamma'], masks
  )
  golden.assert_close(generated[:, 0], data['generated_W1'], 5e-5)
  golden.assert_close(generated[:, 1], data['generated_W2'], 5e-5)
  raw = jax.vmap(outputs)(masks, data['x'])
  golden.assert_close(raw, data['y_raw'], 5e-5)
  reference = jax.vmap(outputs, (0, None))(masks, data['standardisation_x'])
  mean, std = reference.mean(1), reference.std(1)
  golden.assert_close(mean, data['y_mean'], 5e-5)
  golden.assert_close(std, data['y_std'], 5e-5)
  targets = jax.vmap(hyperteacher.soft_labels, (0, 0, 0, None))(
      raw, mean, std, float(data['hp_temperature'])
  )
  golden.assert_close(targets, data['soft_target'], 5e-5)
  np.testing.assert_array_equal(targets.argmax(-1), data['label'])


def _preferences_instance(
    data: dict[str, Any], i: int
) -> preferences.Instances:
  """Instance i, whose cells ours counts among the free ones."""
  cells = np.concatenate([data['object_cells'][i], data['agent_cell'][i][None]])
  numbers = np.searchsorted(preferences.FREE_CELLS, cells @ [7, 1])[None]
  return preferences.Instances(
      object_cells=jnp.asarray(numbers[:, :4]),
      colours=jnp.asarray(data['object_colours'][i][None]),
      agent=jnp.asarray(numbers[:, 4]),
  )


@pytest.mark.parametrize('i', [0, 1])
def test_preferences_world(i: int) -> None:
  data = golden.load('preferences_world')
  np.testing.assert_array_equal(preferences.WALLS, data['walls'])
  np.testing.assert_array_equal(
      preferences.FREE_CELLS, data['free_cells'] @ [7, 1]
  )
  instances = _preferences_instance(data, i)
  worth = jnp.asarray(data['latent'][i] @ data['templates_B'])
  arrival = preferences.arrival_values(
      instances.object_cells, worth[instances.colours]
  )
  # Theirs numbers states 16 * cell + set of objects.
  table = np.asarray(arrival)[:, preferences.NEXT, 0].swapaxes(0, 1)
  golden.assert_close(table.reshape(304, 5), data['q_table'][i], 5e-5)
  shown = preferences.demonstrate(instances, worth)
  batch = preferences.to_batch(instances, shown)
  np.testing.assert_array_equal(shown.actions[0], data['demo_action'][i])
  np.testing.assert_array_equal(batch.mask, data['demo_mask'][i])
  np.testing.assert_array_equal(batch.inputs.dense(), data['demo_obs'][i])
  golden.assert_close(batch.targets, data['demo_q'][i], 5e-5)


@pytest.mark.parametrize('integer', [2020, 2021, 2022])
def test_goals_mazes(integer: int) -> None:
  data = golden.load('goals_world')
  walls = mazes.generate(goals.SIDE, integer)
  np.testing.assert_array_equal(walls, data[f'maze_{integer}'])
  if integer == 2020:
    np.testing.assert_array_equal(
        mazes.distances(walls), data['maze_2020_distance']
    )


@pytest.mark.parametrize('i', [0, 1])
def test_goals_demonstrations(i: int) -> None:
  data = golden.load('goals_world')
  walls = np.stack([mazes.generate(goals.SIDE, 2020 + m) for m in range(5)])
  longest = 60
  nothing: Any = None
  params = goals.GoalsParams(
      **goals.maze_tables(walls, longest), goals=nothing, num_train=nothing
  )
  factors = jnp.asarray(data['goal_factors'][i])
  assert data['maze_integer'][i] == 2020 + factors[2]
  instance = goals.Instance(
      maze=factors[2],
      target=jnp.asarray(data['target_cell'][i] @ [11, 1]),
      agent=jnp.asarray(data['agent_cell'][i] @ [11, 1]),
      distractors=jnp.asarray(data['distractor_cells'][i] @ [11, 1]),
      distractor_types=jnp.asarray(data['distractor_types'][i]),
  )
  batch = goals.to_batch(params, instance, factors)
  rows = longest + 1
  np.testing.assert_array_equal(batch.mask, data['demo_mask'][i][:rows])
  assert not data['demo_mask'][i][rows:].any()
  # Here no tie was broken differently; elsewhere it might be.
  np.testing.assert_array_equal(batch.targets, data['demo_action'][i][:rows])
  np.testing.assert_array_equal(
      batch.inputs.dense(), data['demo_obs'][i][:rows]
  )
