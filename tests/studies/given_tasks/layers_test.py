"""Decoding from layers, on constructed features and a constructed network."""

from collections.abc import Sequence
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.analysis import base
from modular_hyperteacher.studies.given_tasks import graded_hyperteacher
from modular_hyperteacher.studies.given_tasks import layers
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks.gridworlds import goals
from tests.helpers import small_hyperteacher

_NAMES = ('code', 'layer_0', 'layer_1', 'layer_2')


def _latents(key: int, number: int) -> np.ndarray:
  rng = np.random.default_rng(key)
  return rng.uniform(0.1, 1, (number, 1, 3)).astype(np.float32)


def _draw_latents(
    task: tasks.TaskDistribution,
    params: Any,
    splits: Sequence[str],
    number: int,
) -> dict[str, np.ndarray]:
  keys = jax.random.split(jax.random.key(1), number)
  return {
      split: np.asarray(
          jax.vmap(lambda key, s=split: task.sample_latent(params, key, s))(
              keys
          )
      )
      for split in splits
  }


def test_what_features_hold_can_be_decoded() -> None:
  """The code mixes latents, one layer rotates them, another is noise."""
  rng = np.random.default_rng(0)
  mixing = rng.normal(size=(3, 6))
  latents, new = _latents(1, 400), _latents(2, 200)

  def features(z: np.ndarray, shift: float) -> dict[str, np.ndarray]:
    z = z[:, 0]
    return {
        'code': z,
        'layer_0': 3 * z @ mixing + shift,
        'layer_1': rng.normal(size=(len(z), 6)),
        'layer_2': z[:, :1] ** 2,
    }

  metrics = layers.score_layers(
      features(latents, 1), latents, features(new, 1), new
  )
  assert set(metrics) == {'test', 'ood'}
  for scores in metrics.values():
    assert scores['decoding_r2_exact_layer_0'] > 0.98
    assert scores['decoding_r2_exact_code'] > 0.8
    assert scores['decoding_r2_layer_1'] < 0.1
    # The readout does not count as a hidden layer.
    assert scores['decoding_r2'] == scores['decoding_r2_layer_0']
    assert scores['decoding_r2_last'] == scores['decoding_r2_layer_1']
  # What differs between seen and new tasks is lost on new ones.
  shifted = layers.score_layers(
      features(latents, 1), latents, features(new, 9), new
  )
  assert shifted['test']['decoding_r2_exact_layer_0'] > 0.98
  assert shifted['ood']['decoding_r2_exact_layer_0'] < 0.5


def test_fit_and_scores_use_different_tasks() -> None:
  """A feature per task: perfect on what is fitted, useless on the rest."""
  latents = _latents(1, 60)
  one_hot = {name: np.eye(60, dtype=np.float32) for name in _NAMES}
  metrics = layers.score_layers(one_hot, latents, one_hot, latents)
  assert metrics['test']['decoding_r2_exact_layer_0'] < 0.1
  assert metrics['ood']['decoding_r2_exact_layer_0'] > 0.1  # Half are known.


@pytest.mark.parametrize('encoding', ['identity', 'fewshot'])
def test_analysis_reads_code_and_layers(encoding: str) -> None:
  task = graded_hyperteacher.make(
      num_modules=3,
      max_active=2,
      task_support='random',
      fraction_ood=0.2,
      encoding=encoding,
      input_dim=2,
      output_dim=2,
      teacher_hidden_dim=4,
      num_support=3,
      num_query=4,
  )
  dim = task.code_dim
  assert dim == {'identity': 3, 'fewshot': 3 * (2 + 2)}[encoding]
  seen = []

  def activations(meta_params: jax.Array, inputs: jax.Array) -> list[jax.Array]:
    seen.append(inputs.shape)
    return [meta_params * inputs[:, :dim], inputs[:, dim:], inputs[:, dim:]]

  analysis = layers.make_analysis(task, activations)
  params = task.init(jax.random.key(0))
  latents = _draw_latents(task, params, analysis.splits, 200)
  metrics = analysis.measure(
      base.Adapted(params, jnp.array(2.0), latents, {}, jax.random.key(2))
  )
  assert seen == [(4, dim + 2)]
  for split in ('test', 'ood'):
    code = metrics[split]['decoding_r2_exact_code']
    assert (code > 0.9) == (encoding == 'identity')
    assert metrics[split]['decoding_r2_exact_layer_1'] < 0.2


def test_one_task_is_too_few_to_decode_from() -> None:
  task = small_hyperteacher.make()
  params = task.init(jax.random.key(0))
  analysis = layers.make_analysis(task, lambda params, inputs: [inputs])
  latents = _draw_latents(task, params, analysis.splits, 1)
  metrics = analysis.measure(
      base.Adapted(params, None, latents, {}, jax.random.key(2))
  )
  assert metrics == {'test': {}, 'ood': {}}


def test_a_task_is_read_at_its_last_example() -> None:
  """So that a transformer has seen all others, as in training."""
  task = small_hyperteacher.make()
  params = task.init(jax.random.key(0))

  def places(meta_params: None, inputs: jax.Array) -> list[jax.Array]:
    del meta_params
    return 2 * [jnp.cumsum(jnp.ones((len(inputs), 1)), 0)]

  analysis = layers.make_analysis(task, places)
  latents = _draw_latents(task, params, analysis.splits, 4)
  with mock.patch.object(layers, 'score_layers') as score:
    analysis.measure(base.Adapted(params, None, latents, {}, jax.random.key(2)))
  features, _, new_features, _ = score.call_args.args
  _, query = task.sample_examples(
      params, jax.random.key(0), latents['test'][0], 'test'
  )
  for found in (features, new_features):
    assert (found['layer_0'] == len(query.targets)).all()


@pytest.mark.slow
def test_tasks_with_compact_inputs_and_without_a_code() -> None:
  """Grid worlds: dense observations reach the model."""
  task = goals.make(
      task_support='random', fraction_ood=0.25, max_path_length=20, grid_size=7
  )

  def activations(weights: jax.Array, inputs: jax.Array) -> list[jax.Array]:
    assert inputs.shape[1:] == (task.input_dim,)
    return [inputs @ weights, inputs @ weights**2]

  analysis = layers.make_analysis(task, activations)
  params = task.init(jax.random.key(0))
  latents = _draw_latents(task, params, analysis.splits, 8)
  weights = jax.random.normal(jax.random.key(2), (task.input_dim, 3))
  metrics = analysis.measure(
      base.Adapted(params, weights, latents, {}, jax.random.key(3))
  )
  for scores in metrics.values():
    assert np.isfinite(scores['decoding_r2'])
    assert 'decoding_r2_code' not in scores
