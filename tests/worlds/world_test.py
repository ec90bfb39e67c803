"""Drawing tasks by name, and scoring predictions."""

import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher import randomness
from modular_hyperteacher import worlds
from modular_hyperteacher.experiments import components
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import objectives


@pytest.fixture(scope='module', name='world')
def fixture_world() -> worlds.World:
  return worlds.make('hyperteacher')


@pytest.fixture(scope='module', name='pseudowords')
def fixture_pseudowords() -> worlds.World:
  return worlds.make('mutual_exclusivity')


def test_worlds_are_those_of_the_configs(world: worlds.World) -> None:
  assert world.experiment == 'fig3b' and world.fields['num_modules'] == 8
  assert world.splits[:4] == ('train', 'valid', 'test', 'ood')
  # These fields occur together in a config, with others of their own.
  connected = worlds.make('preferences', task_support='connected')
  assert (connected.experiment, connected.fields['max_active']) == ('fig4b', 2)
  # These do not: all others are those of the first config.
  own = worlds.make('hyperteacher', num_modules=5, num_support=7)
  assert own.experiment is None
  assert dict(own.fields) == {
      **world.fields,
      'num_modules': 5,
      'num_support': 7,
  }


def test_arrays_have_the_documented_shapes(world: worlds.World) -> None:
  tasks = world.sample('ood', 3)
  assert [(x.dtype.name, x.shape) for x in tasks] == 2 * [
      ('float32', (3, 32, 8)),
      ('float32', (3, 32, 8)),
      ('bool', (3, 32)),
  ] + [('float32', (3, 1, 8))]
  assert all(isinstance(x, np.ndarray) and x.flags.writeable for x in tasks)
  assert tasks.latents.sum(-1).max() <= world.fields['max_active']


def test_a_task_depends_on_its_number_only(world: worlds.World) -> None:
  few, many = world.sample('test', 3, seed=1), world.sample('test', 70, seed=1)
  for x, y in zip(few, many):
    np.testing.assert_allclose(x, y[:3], atol=1e-5)
  assert np.abs(few.query_inputs - world.sample('test', 3).query_inputs).max()
  valid = world.sample('valid', 3, seed=1)
  assert np.abs(few.query_inputs - valid.query_inputs).max()


@pytest.mark.slow
def test_a_seed_is_the_world_of_runs_with_it(world: worlds.World) -> None:
  """The same teacher, and the same combinations held out."""
  distribution = components.TASKS['hyperteacher'].make(**world.fields)
  root = randomness.root_key(2020)
  params = distribution.init(randomness.stream(root, 'task'))
  tasks = world.sample('ood', 200)
  latents = {latent.tobytes() for latent in tasks.latents}
  keys = jax.random.split(jax.random.key(0), 200)
  sample = jax.vmap(distribution.sample_latent, (None, 0, None))
  assert latents == {
      np.asarray(x).tobytes() for x in sample(params, keys, 'ood')
  }
  trained = {x.tobytes() for x in world.sample('train', 500).latents}
  assert not latents & trained


def test_scores_are_the_objectives(world: worlds.World) -> None:
  tasks = world.sample('ood', 4)
  exact = np.log(np.maximum(tasks.query_targets, 1e-30))
  scores = world.score(exact, tasks)
  assert scores['accuracy'] == 1 and abs(scores['loss']) < 1e-5
  wrong = exact.copy()
  wrong[0, :8] = np.nan
  wrong[1, :16] *= -1
  expected = []
  for i in range(4):
    batch = base.examples(None, jnp.asarray(tasks.query_targets[i]))
    expected.append(
        objectives.soft_label_accuracy(jnp.asarray(wrong[i]), batch)
    )
  with pytest.warns(UserWarning, match='predictions: .* numbers are NaN'):
    scores = world.score(wrong, tasks)
  assert scores['accuracy'] == pytest.approx(np.mean(expected))
  assert np.mean(expected) < 1 - 0.25 * 0.25


def test_padding_does_not_count() -> None:
  world = worlds.make('goals', preset='smoke')
  tasks = world.sample('ood', 8)
  assert 0 < tasks.query_mask.mean() < 1
  assert np.isin(tasks.query_inputs, (0, 1)).all()
  right = np.eye(6)[tasks.query_targets]
  spoilt = np.where(tasks.query_mask[..., None], right, -right)
  assert world.score(spoilt, tasks)['accuracy_all'] == 1


def test_rows_of_tokens_are_right_or_not(pseudowords: worlds.World) -> None:
  tasks = pseudowords.sample('ood')
  assert len(tasks.query_targets) == pseudowords.fixed_sizes['ood'] == 20
  symbols = pseudowords.description['output_symbols']
  sos = symbols.index('SOS')
  predictions = np.where(tasks.query_targets == sos, 0, tasks.query_targets)
  assert pseudowords.score(predictions, tasks) == {'accuracy': 1.0}
  predictions[:5, :, 0] += 1
  assert pseudowords.score(predictions, tasks) == {'accuracy': 0.75}


def test_rows_that_belong_to_no_split_do_not_count() -> None:
  world: Any = worlds.make('scan', preset='smoke', split='around_right')
  assert world.experiment == 'scan_around_right'
  tasks = world.sample('ood')
  rows = int(tasks.query_mask.sum())
  assert rows == world.distribution.num_rows['ood'] < tasks.query_mask.size
  predictions = np.where(tasks.query_mask[..., None], tasks.query_targets, -1)
  assert world.score(predictions, tasks) == {'accuracy': 1.0}


def test_an_added_task_is_a_world(monkeypatch: pytest.MonkeyPatch) -> None:
  make = components.TASKS['goals'].make
  monkeypatch.setitem(components.TASKS, 'added', components.TaskEntry(make))
  assert 'added' in worlds.list()
  fields = {'fraction_ood': 0.25, 'max_path_length': 24, 'grid_size': 7}
  world = worlds.make('added', task_support='non_compositional', **fields)
  assert (world.preset, world.experiment) == (None, None)
  assert world.sample('ood', 2).latents.shape == (2, 4, 5)


def test_a_task_of_another_package_is_a_world(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  monkeypatch.setattr(components, '_allowed', {})
  name = 'modular_hyperteacher.tasks.hyperteacher:make'
  fields = worlds.make('hyperteacher').fields
  assert worlds.make(name, **fields).sample('test', 2).latents.shape[0] == 2


@pytest.mark.parametrize(
    'make, message',
    [
        ('nothing', 'returns None; it must return a TaskDistribution'),
        ('flat', r'sample_latent returns an array \[\d\]; it must be'),
    ],
)
def test_what_a_task_of_another_package_returns_is_checked(
    make: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
  monkeypatch.setattr(components, '_allowed', {})
  fields = worlds.make('hyperteacher').fields
  with pytest.raises(errors.UserError, match=message):
    worlds.make(f'tests.helpers.odd_tasks:{make}', **fields).sample('test', 2)


@pytest.mark.parametrize(
    'fields, message',
    [
        ({'name': 'mazes'}, "the world is 'mazes'; choose one of hyperteacher"),
        ({'name': 'mine.make'}, 'choose one of .*, package.module:function'),
        ({'name': 3}, 'the world is 3; it must be text'),
        ({'preset': 'huge'}, "preset is 'huge'; choose one of smoke, laptop"),
        ({'seed': -1}, 'seed is -1; it must be an integer, at least 0'),
        ({'num_suport': 3}, 'task.num_suport does not exist; task has num_mod'),
        ({'num_query': 0}, 'task.num_query is 0; it must be positive'),
    ],
)
def test_wrong_worlds_are_refused(fields: dict, message: str) -> None:
  arguments: dict[str, Any] = {'name': 'hyperteacher'} | fields
  with pytest.raises(errors.UserError, match=message):
    worlds.make(**arguments)


@pytest.mark.parametrize(
    'arguments, message',
    [
        (
            ('odd', 2),
            "split is 'odd'; hyperteacher has train, valid, test, ood",
        ),
        (
            ('ood', None),
            'num_tasks is None; it must be a whole number from 1 to 1048576',
        ),
        (
            ('ood', 0),
            'num_tasks is 0; it must be a whole number from 1 to 1048576',
        ),
        (('ood', 10**12), 'num_tasks is 1000000000000; it must be a whole'),
        (('ood', 2**20), r'its arrays would take 4\.\d GiB, and allowed are 2'),
        (('ood', 2, 2**32), 'seed is 4294967296; it must be an integer'),
    ],
)
def test_wrong_draws_are_refused(
    world: worlds.World, arguments: tuple, message: str
) -> None:
  with pytest.raises(errors.UserError, match=message):
    world.sample(*arguments)


def test_predictions_come_before_tasks(world: worlds.World) -> None:
  tasks: Any = world.sample('ood', 2)
  message = 'tasks is of type ndarray; it must be what `sample` returned'
  with pytest.raises(errors.UserError, match=message):
    world.score(tasks, tasks.query_targets)


def test_a_fixed_split_is_drawn_whole(pseudowords: worlds.World) -> None:
  with pytest.raises(errors.UserError, match='ask for 20, or for no number'):
    pseudowords.sample('ood', 3)


@pytest.mark.parametrize(
    'predictions, message',
    [
        (
            np.zeros((2, 32, 7)),
            r'float64 of shape \[2, 32, 7\]; they must be f',
        ),
        (np.zeros((2, 32, 8), complex), r'complex128 of shape \[2, 32, 8\]'),
    ],
)
def test_wrong_predictions_are_refused(
    world: worlds.World, predictions: np.ndarray, message: str
) -> None:
  with pytest.raises(errors.UserError, match=message):
    world.score(predictions, world.sample('ood', 2))


def test_numbers_of_numpy_are_numbers() -> None:
  plain = worlds.make('hyperteacher', preset='smoke', num_modules=6, seed=3)
  three: Any = np.int32(3)
  two: Any = np.int64(2)
  other = worlds.make(
      'hyperteacher', preset='smoke', num_modules=np.int64(6), seed=three
  )
  expected = plain.sample('ood', 2, seed=1)
  drawn = other.sample('ood', two, seed=three - two)
  for one, array in zip(expected, drawn, strict=True):
    np.testing.assert_array_equal(one, array)
  wrong: Any = 4.0
  for arguments in ((wrong,), (True,)):
    with pytest.raises(errors.UserError, match='num_tasks is .*; it must be'):
      plain.sample('ood', *arguments)
  # A process that is started by 'spawn' gets a pickle.
  again = pickle.loads(pickle.dumps(other)).sample('ood', 2, seed=1)
  for one, array in zip(expected, again, strict=True):
    np.testing.assert_array_equal(one, array)


def test_nan_among_predictions_is_told() -> None:
  world = worlds.make('hyperteacher', preset='smoke')
  tasks = world.sample('ood', 2)
  logits = np.zeros(tasks.query_targets.shape)
  logits[0, 0, 0] = np.nan
  with pytest.warns(UserWarning, match='predictions: 1 of 512 numbers are NaN'):
    world.score(logits, tasks)
