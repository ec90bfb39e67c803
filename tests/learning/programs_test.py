"""Seeds side by side, calls of any length, and the evaluation of all splits."""

from collections.abc import Sequence
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import randomness
from modular_hyperteacher.devices import compilation_options
from modular_hyperteacher.learning import evaluation
from modular_hyperteacher.learning import programs
from modular_hyperteacher.tasks import base as tasks
from tests.helpers import tiny


def _train(
    compiled: programs.Programs, lengths: Sequence[int]
) -> tuple[Any, Any]:
  state = compiled.init()
  for length in lengths:
    state, metrics = compiled.train(state, length)
  return programs.fetch(state), programs.fetch(metrics)


def test_a_run_cut_into_calls_is_the_same_run_bit_for_bit() -> None:
  world = tiny.task()
  compiled = tiny.make_programs(world, tiny.learner(world), [0, 1])
  whole, whole_metrics = _train(compiled, [6])
  pieces, pieces_metrics = _train(compiled, [1, 3, 2])
  jax.tree.map(np.testing.assert_array_equal, pieces, whole)
  jax.tree.map(np.testing.assert_array_equal, pieces_metrics, whole_metrics)
  assert whole.step.tolist() == [6, 6]


def test_a_seed_alone_and_among_three_has_the_same_curve() -> None:
  # In float32, Adam's first steps turn rounding into a part of the curve.
  with jax.enable_x64(True):
    world = tiny.task()
    algorithm = tiny.learner(world, 'linear_hypernetwork')
    alone = tiny.make_programs(world, algorithm, [7])
    among = tiny.make_programs(world, algorithm, [3, 7, 11])
    for num_steps in (1, 3):
      state, metrics = _train(alone, [num_steps])
      state_3, metrics_3 = _train(among, [num_steps])
      for metric, values in metrics.items():
        np.testing.assert_allclose(
            metrics_3[metric][1], values[0], rtol=1e-5, err_msg=metric
        )
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a[1], b[0], rtol=1e-5, atol=1e-7),
      state_3.meta_params,
      state.meta_params,
  )


@pytest.mark.slow
def test_what_is_not_optimised_computes_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  compile_ = jax.stages.Lowered.compile
  asked = []

  def note(lowered: Any, options: Any = None, **others: Any) -> Any:
    asked.append(options)
    return compile_(lowered, options, **others)

  monkeypatch.setattr(jax.stages.Lowered, 'compile', note)
  world = tiny.task()
  algorithm = tiny.learner(world)
  soon, fast = (
      tiny.make_programs(world, algorithm, [0], optimise=optimise)
      for optimise in (False, True)
  )
  (state, metrics), (_, expected) = _train(soon, [1]), _train(fast, [1])
  options, none = asked
  assert none is None and options['xla_backend_optimization_level'] == 0
  assert options == compilation_options.QUICK
  if jax.__version_info__ < (0, 11, 1):
    assert options['xla_cpu_use_fusion_emitters'] is False
  for name, values in metrics.items():
    np.testing.assert_allclose(values, expected[name], rtol=1e-5, err_msg=name)
  soon.evaluate(programs.replicate(state.meta_params))
  assert asked == [options, None, options]


def test_every_seed_and_step_has_its_own_tasks() -> None:
  world = tiny.task()
  compiled = tiny.make_programs(world, tiny.learner(world), [0, 1])
  state = compiled.init()
  # The same parameters, about to take the first step or the second.
  states = state, state._replace(step=state.step + 1)
  losses = [programs.fetch(compiled.train(s, 1)[1])['loss'] for s in states]
  assert len(set(np.ravel(losses))) == 4


@pytest.mark.slow
def test_evaluation_averages_what_evaluate_task_returns() -> None:
  world = tiny.task()
  algorithm = tiny.learner(world)
  compiled = tiny.make_programs(world, algorithm, [0], num_tasks=16)
  state = compiled.init()
  metrics = programs.fetch(compiled.evaluate(state.meta_params)[0])
  again = programs.fetch(compiled.evaluate(state.meta_params)[0])
  jax.tree.map(np.testing.assert_array_equal, metrics, again)
  assert metrics['loss'].shape == (1, len(world.evaluation_splits))

  (root,), ((params, latents),) = tiny.make_seed_tasks(world, [0], 16)
  key = randomness.stream(root, 'evaluation')
  host_params = programs.fetch(state.meta_params)
  meta_params = jax.tree.map(lambda x: jnp.asarray(x[0]), host_params)
  split_keys = jax.random.split(key, len(world.evaluation_splits))
  index = world.evaluation_splits.index('ood')

  def evaluate_task(latent: jax.Array, task_key: jax.Array) -> Any:
    example_key, adapt_key = jax.random.split(task_key)
    support, query = world.sample_examples(params, example_key, latent, 'ood')
    return algorithm.evaluate_task(
        meta_params, params, tasks.Task(support, query, latent), adapt_key
    )[0]

  keys = jax.random.split(split_keys[index], 16)
  expected = jax.vmap(evaluate_task)(latents[index], keys)
  for metric, values in expected.items():
    np.testing.assert_allclose(
        metrics[metric][0, index], values.mean(), rtol=1e-4, err_msg=metric
    )


@pytest.mark.parametrize('num_devices, task_chunk_size', [(1, None), (2, 2)])
def test_evaluation_is_the_mean_over_tasks(
    num_devices: int, task_chunk_size: int | None
) -> None:
  """A loss that is a task's latent, without examples or adaptation."""
  nothing = tasks.examples(jnp.zeros((1, 1)), jnp.zeros((1, 1)))
  world = dataclasses.replace(
      tiny.task(), sample_examples=lambda *_: (nothing, nothing)
  )
  learner = tiny.learner(world)._replace(
      evaluate_task=lambda meta_params, task_params, task, key: (
          {'loss': task.latent[0, 0]},
          (),
      )
  )
  num_splits = len(world.evaluation_splits)
  latents = np.random.default_rng(0).normal(size=(num_splits, 8, 1, 1))
  evaluate = evaluation.make_evaluate(world, learner, task_chunk_size)
  metrics, _ = tiny.on_devices(evaluate, num_devices)(
      (), (), jnp.asarray(latents), jax.random.key(0)
  )
  np.testing.assert_allclose(
      metrics['loss'], latents[..., 0, 0].mean(1), rtol=1e-5, atol=1e-6
  )


def test_evaluation_latents_are_those_of_their_split() -> None:
  world = tiny.task(num_modules=4, max_active=2)
  _, ((_, latents),) = tiny.make_seed_tasks(world, [0], 64)
  by_split = dict(zip(world.evaluation_splits, np.asarray(latents)))
  for k in (1, 2, 4):
    assert (by_split[f'ood_k{k}'].sum(-1) == k).all()
  assert not np.array_equal(by_split['valid'], by_split['test'])
  seen = {row.tobytes() for row in by_split['valid']}
  seen |= {row.tobytes() for row in by_split['test']}
  assert not seen & {row.tobytes() for row in by_split['ood']}
