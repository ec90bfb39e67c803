"""Training and evaluation of sequence networks, from optimiser to runner."""

from collections.abc import Sequence
import functools
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher import randomness
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.learning import programs
from modular_hyperteacher.studies.meta_seq2seq import learner as learners
from modular_hyperteacher.studies.meta_seq2seq import model as models
from modular_hyperteacher.studies.meta_seq2seq import mutual_exclusivity
from modular_hyperteacher.studies.meta_seq2seq import system as systems
from modular_hyperteacher.studies.meta_seq2seq import vocabulary
from modular_hyperteacher.studies.meta_seq2seq.configs import blocks as seq2seq
from modular_hyperteacher.studies.meta_seq2seq.configs import scan_add_jump
from tests.helpers import greedy
from tests.profiling import derived_flops

_OUTER: dict[str, Any] = dict(
    learning_rate=1e-2,
    decay_after=0.5,
    decay_factor=0.1,
    reset_at_decay=True,
    clip_norm=50.0,
    support_loss=True,
    meta_batch_size=1,
    num_outer_steps=40,
)
_WORLD = mutual_exclusivity.MutualExclusivity(num_query=5)
_OF_MEMORY = ('model=meta_seq2seq', 'meanings=permuted')


def make_network(
    dropout_rate: float = 0.0, hidden_dim: int = 8
) -> models.Model:
  config = models.MetaSeq2Seq(
      input_vocab=_WORLD.input_vocab,
      output_vocab=_WORLD.output_vocab,
      hidden_dim=hidden_dim,
      num_layers=1,
      dropout_rate=dropout_rate,
      use_decoder_attention=True,
      mask_padding=True,
  )
  return models.make(config)


def make_system(network: models.Model | None = None, **outer: Any) -> Any:
  return systems.make_system(
      _WORLD,
      network or make_network(),
      learners.OuterConfig(**(_OUTER | outer)),
      num_evaluation_tasks=8,
      num_devices=8,
  )


def make_programs(
    system: Any, seeds: Sequence[int]
) -> tuple[programs.Programs, list[programs.SeedTasks], list[jax.Array]]:
  roots = [randomness.root_key(seed) for seed in seeds]
  worlds = [system.draw_tasks(root) for root in roots]
  return programs.Programs(system, roots, worlds), worlds, roots


# The optimiser.


def _adam_by_hand(
    grads: Sequence[float], rates: Sequence[float], reset_at: int | None
) -> list[float]:
  """Returns Adam's steps on one number."""
  m = v = 0.0
  count = 0
  steps = []
  for step, (grad, rate) in enumerate(zip(grads, rates)):
    if step == reset_at:
      m, v, count = 0.0, 0.0, 0
    count += 1
    m = 0.9 * m + 0.1 * grad
    v = 0.999 * v + 0.001 * grad**2
    unbiased = m / (1 - 0.9**count), v / (1 - 0.999**count)
    steps.append(-rate * unbiased[0] / (unbiased[1] ** 0.5 + 1e-8))
  return steps


@pytest.mark.parametrize('reset', [True, False])
def test_adam_with_a_lower_rate_after_half_of_the_steps(reset: bool) -> None:
  config = learners.OuterConfig(
      **{**_OUTER, 'num_outer_steps': 6, 'reset_at_decay': reset}
  )
  optimizer = learners.make_optimizer(config)
  grads = [0.3, -0.1, 0.2, 0.5, -0.4, 0.1]
  params = {'decoder/readout': {'b': jnp.zeros(1)}}
  state = optimizer.init(params)
  found = []
  for grad in grads:
    updates, state = optimizer.update(
        jax.tree.map(lambda x, g=grad: x + g, params), state, params
    )
    found.append(float(cast(Any, updates)['decoder/readout']['b'][0]))
  expected = _adam_by_hand(grads, [1e-2] * 3 + [1e-3] * 3, 3 if reset else None)
  np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_halves_are_clipped_apart() -> None:
  config = learners.OuterConfig(**{**_OUTER, 'clip_norm': 1.0})
  long, short = jnp.array([30.0, 40.0]), jnp.array([0.3, 0.4])
  grads = {
      'decoder/readout': {'b': short},
      'encoder/combine': {'b': long},
      'encoder/input_encoder/layer_0_forth': {'b': long},
  }
  marks = learners._mark_decoder(grads)
  assert jax.tree.leaves(marks) == [True, False, False]
  optimizer = learners.make_optimizer(config)
  _, state = optimizer.update(grads, optimizer.init(grads), grads)
  adam = [
      part
      for part in jax.tree.leaves(state, is_leaf=lambda x: hasattr(x, 'mu'))
      if hasattr(part, 'mu')
  ]
  (moments,) = adam
  np.testing.assert_allclose(moments.mu['decoder/readout']['b'], 0.1 * short)
  np.testing.assert_allclose(
      moments.mu['encoder/combine']['b'], 0.1 * long / (50 * 2**0.5), rtol=1e-5
  )


@pytest.mark.parametrize(
    'overrides, message',
    [
        (dict(learning_rate=0.0), 'model.outer.learning_rate is 0.0; it must'),
        (dict(clip_norm=-1.0), 'model.outer.clip_norm is -1.0; it must'),
        (dict(decay_after=0.0), 'model.outer.decay_after is 0.0; it must'),
    ],
)
def test_impossible_settings_are_refused(
    overrides: dict[str, Any], message: str
) -> None:
  with pytest.raises(errors.UserError, match=message):
    learners.OuterConfig(**(_OUTER | overrides))


def test_a_network_without_memory_takes_no_episodes() -> None:
  config = models.Seq2Seq(
      input_vocab=_WORLD.input_vocab,
      output_vocab=_WORLD.output_vocab,
      hidden_dim=4,
      num_layers=1,
      dropout_rate=0.0,
      mask_padding=True,
  )
  with pytest.raises(errors.UserError, match="need 'meta_seq2seq'"):
    make_system(models.make(config), support_loss=False)


# Steps.


@pytest.mark.parametrize('support_loss', [True, False])
def test_the_support_set_is_asked_if_and_only_if_there_is_a_support_loss(
    support_loss: bool,
) -> None:
  asked = []
  network = make_network()

  def apply(
      params: Any,
      key: jax.Array,
      support: vocabulary.Pairs,
      query: vocabulary.Pairs,
      is_training: bool,
  ) -> Any:
    asked.append((support, query))
    return network.apply(params, key, support, query, is_training)

  system = make_system(network._replace(apply=apply), support_loss=support_loss)
  root = randomness.root_key(0)
  params = system.draw_tasks(root).task_params
  state = system.init(root)
  step = jax.vmap(
      system.step,
      axis_name=outer_loop.DEVICE_AXIS,
      axis_size=1,
      in_axes=None,
  )
  jax.eval_shape(step, state, params, root)
  ((support, query),) = asked
  assert support.inputs.lengths.shape == (3,)
  assert query.inputs.lengths.shape == (5 + 3 * support_loss,)


def test_asked_rows_are_those_of_both() -> None:
  episode = _WORLD.sample(_WORLD.init(jax.random.key(0)), jax.random.key(1))
  for support, query in zip(*episode):
    both = vocabulary.concatenate(support, query)
    np.testing.assert_array_equal(
        both.lengths, np.concatenate([support.lengths, query.lengths])
    )
    np.testing.assert_array_equal(both.tokens[3:], query.tokens)
    np.testing.assert_array_equal(both.tokens[:3], support.tokens)
  narrow = jax.tree.map(lambda x: x[..., :2], episode.support.inputs.tokens)
  narrow = vocabulary.Sequences(narrow, episode.support.inputs.lengths)
  both = vocabulary.concatenate(narrow, episode.query.inputs)
  assert both.tokens.shape == (8, 7)
  np.testing.assert_array_equal(both.tokens[:3, :2], narrow.tokens)


@pytest.fixture(scope='module', name='trained')
def fixture_trained() -> tuple[Any, ...]:
  """A network after some steps, of two seeds, in pieces and at once."""
  system = make_system(make_network(hidden_dim=16), meta_batch_size=8)
  compiled, worlds, roots = make_programs(system, [0, 1])
  state, first = compiled.train(compiled.init(), 1)
  pieces, _ = compiled.train(state, 10)
  pieces, last = compiled.train(pieces, 19)
  whole, _ = compiled.train(compiled.init(), 30)
  return system, compiled, worlds, roots, pieces, whole, first, last


def test_steps_lower_the_loss(trained: tuple[Any, ...]) -> None:
  *_, first, last = trained
  first, last = programs.fetch(first), programs.fetch(last)
  assert (last['loss'] < 0.9 * first['loss']).all()
  assert set(last) == {'loss', 'accuracy', 'gradient_norm'}


def test_a_run_cut_into_calls_is_the_same_run_bit_for_bit(
    trained: tuple[Any, ...],
) -> None:
  pieces, whole = (programs.fetch(state) for state in trained[4:6])
  jax.tree.map(np.testing.assert_array_equal, pieces, whole)
  assert whole.step.tolist() == [30, 30]


# Evaluation.


@pytest.mark.parametrize('own', [False, True])
def test_accuracy_is_that_of_greedy_decoding(
    trained: tuple[Any, ...], own: bool
) -> None:
  """Of the test set, and of one whose every other answer is the network's."""
  system, compiled, worlds, roots, state, *_ = trained
  params = programs.fetch(state.meta_params)
  vocab = _WORLD.output_vocab
  decode = jax.jit(
      jax.vmap(
          functools.partial(greedy.decode, make_network(hidden_dim=16)),
          (None, 0, 0, None),
      ),
      static_argnums=3,
  )
  found = [
      decode(
          jax.tree.map(lambda x, i=seed: x[i], params),
          world.evaluation_latents['ood'].episodes.support,
          world.evaluation_latents['ood'].episodes.query.inputs,
          8,
      ).tolist()
      for seed, world in enumerate(worlds)
  ]
  if own:
    worlds = [*map(_with_own_answers, worlds, found)]
    compiled = programs.Programs(system, roots, worlds)
  metrics, kept = compiled.evaluate(state.meta_params)
  metrics, kept = programs.fetch(metrics), programs.fetch_divided(kept)
  for seed, world in enumerate(worlds):
    test_set = world.evaluation_latents['ood']
    outputs = test_set.episodes.query.outputs
    right = [
        [
            vocab.decode(row) == vocab.decode(target) and vocab.eos in row
            for row, target in zip(*rows)
        ]
        for rows in zip(found[seed], outputs.tokens.tolist())
    ]
    counted = np.asarray(test_set.weights) > 0
    right = np.array(right)[counted]
    assert not own or 0.4 < right.mean() < 1
    np.testing.assert_array_equal((kept[seed, 0] > 0)[counted], right)
    index = system.evaluation_splits.index('ood')
    np.testing.assert_allclose(
        metrics['accuracy'][seed, index], right.mean(), rtol=1e-5
    )


def _with_own_answers(
    world: programs.SeedTasks, found: Any
) -> programs.SeedTasks:
  """Replaces the targets of every other test row by what was decoded."""
  test_set = world.evaluation_latents['ood']
  outputs = test_set.episodes.query.outputs
  tokens, lengths = map(np.array, outputs)
  for index in np.ndindex(lengths.shape):
    row = _WORLD.output_vocab.decode(found[index[0]][index[1]])
    if index[1] % 2 == 0 and len(row) < tokens.shape[-1] and 'SOS' not in row:
      encoded = _WORLD.output_vocab.encode([row], tokens.shape[-1])
      tokens[index], lengths[index] = encoded.tokens[0], encoded.lengths[0]
  query = test_set.episodes.query._replace(
      outputs=vocabulary.Sequences(jnp.asarray(tokens), jnp.asarray(lengths))
  )
  episodes = test_set.episodes._replace(query=query)
  return world._replace(
      evaluation_latents=dict(
          world.evaluation_latents, ood=test_set._replace(episodes=episodes)
      )
  )


def test_after_the_last_step_parts_and_attention_are_measured(
    trained: tuple[Any, ...],
) -> None:
  system, compiled, worlds, roots, state, *_ = trained
  _, kept = compiled.evaluate(state.meta_params)
  analyse = programs.over_seeds(system.analyse, worlds, roots)
  assert analyse is not None
  found: Any = analyse(
      programs.fetch(state.meta_params), programs.fetch_divided(kept)
  )['ood']
  assert {values.shape for values in found.values()} == {(2,)}
  assert {'accuracy_withheld', 'accuracy_shown'} <= set(found)
  memory = sum(found[f'memory_attention_5_{i}'] for i in range(3))
  decoder = sum(found[f'decoder_attention_0_{t}'] for t in range(6))
  np.testing.assert_allclose([memory, decoder], 1, rtol=1e-5)
  assert 'memory_attention_6_0' not in found  # Padding.


def test_unknown_fields_are_refused() -> None:
  config = {
      'task': {'name': 'mutual_exclusivity', 'num_queries': 3},
      'model': {'name': 'meta_seq2seq', 'outer': {}},
      'training': dict(
          seeds=[0],
          num_outer_steps=4,
          meta_batch_size=1,
          evaluate_every=4,
          num_evaluation_tasks=4,
          prng_impl='threefry2x32',
      ),
      'execution': dict(log_every=2, checkpoint_every_s=60.0),
  }
  with pytest.raises(errors.UserError, match='task.num_queries does not exist'):
    build.build(config, 1)


# Operations.


def test_operations_are_two_per_weight_and_symbol() -> None:
  config = {
      'task': {'name': 'mutual_exclusivity', 'num_query': 5},
      'model': dict(
          name='meta_seq2seq',
          hidden_dim=8,
          num_layers=1,
          use_decoder_attention=True,
          outer=dict(support_loss=True),
      ),
      'training': {'meta_batch_size': 2},
  }
  params = _WORLD.init(jax.random.key(0))
  keys = jax.random.split(jax.random.key(1), 64)
  drawn = jax.jit(jax.vmap(_WORLD.sample, (None, 0)))(params, keys)
  # Every row has as many colours as words, and three items are in memory.
  queries = float(np.mean(np.sum(drawn.query.inputs.lengths, 1)))
  items = 3 * 2.0
  asked = queries + items
  shapes = jax.eval_shape(make_network().init, jax.random.key(0))
  sizes = {
      name.replace('/~', ''): sum(
          leaf.size for key, leaf in leaves.items() if key.startswith('w')
      )
      for name, leaves in shapes.items()
  }
  expected = 0
  for name, size in sizes.items():
    times = asked
    if name.startswith('encoder/input_encoder'):
      times = asked + items
    elif name.startswith('encoder/output_encoder'):
      times = items
    expected += 2 * size * times
  expected += asked * 2 * 2 * 3 * 8 + asked * 2 * 2 * (asked / 8) * 8
  assert derived_flops.outer_step(config) == pytest.approx(2 * 3 * expected)


# Meta seq2seq on SCAN itself.


@pytest.mark.slow
@pytest.mark.parametrize(
    'fields',
    [
        {'mask_padding': False, 'outer': {'support_loss': False}},
        {'use_decoder_attention': False},
    ],
)
def test_a_few_steps_on_scan_lower_the_loss(fields: dict[str, Any]) -> None:
  config: Any = scan_add_jump.get_config('smoke')
  config.task.update(seq2seq.limit_actions('smoke', 4))
  config.training.update({'meta_batch_size': 8, 'num_evaluation_tasks': 8})
  run = sweeps.select(sweeps.expand(config), list(_OF_MEMORY))[0]
  model = dict(run.config['model'])
  for name, value in fields.items():
    model[name] = model[name] | value if isinstance(value, dict) else value
  built = build.build(run.config | {'model': model}, num_devices=8)
  worlds = build.draw_tasks(built)
  roots = build.root_keys(built.training)
  compiled = programs.Programs(built.system, roots, worlds)
  state, first = compiled.train(compiled.init(), 1)
  state, last = compiled.train(state, 20)
  first, last = programs.fetch(first), programs.fetch(last)
  assert np.isfinite(last['gradient_norm']).all()
  assert last['loss'] < first['loss']
  metrics, _ = compiled.evaluate(state.meta_params)
  index = built.system.evaluation_splits.index('valid')
  for name, values in programs.fetch(metrics).items():
    assert np.isfinite(values[:, index]).all(), name
