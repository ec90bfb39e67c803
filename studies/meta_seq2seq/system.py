"""The trainable system of meta sequence-to-sequence learning.

Evaluation splits: 'valid' and 'test' are fresh episodes like those of training
or, without a memory, training rows. 'ood' is the paper's test: word meanings
held out of training, or a split of SCAN. No split is used for model selection:
the result is the network after the last step.
"""

from collections.abc import Mapping
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher import randomness
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.learning import programs
from modular_hyperteacher.models import base as models_lib
from modular_hyperteacher.studies.meta_seq2seq import episodes
from modular_hyperteacher.studies.meta_seq2seq import learner as learners
from modular_hyperteacher.studies.meta_seq2seq import model as models

SPLITS = ('valid', 'test', 'ood')


def make_system(
    distribution: episodes.EpisodeDistribution,
    network: models.Model,
    outer: learners.OuterConfig,
    *,
    num_evaluation_tasks: int,
    num_devices: int,
) -> programs.System:
  """Returns the system that trains a network on a distribution of episodes.

  'valid' and 'test' have `num_evaluation_tasks` episodes each, divided over the
  devices.

  Raises:
    UserError: if only one of distribution and network uses a support set.
  """
  uses = 'meta_seq2seq' if network.config.use_memory else 'seq2seq'
  fits = 'meta_seq2seq' if distribution.has_support else 'seq2seq'
  rule = f"episodes of this task need '{fits}'"
  errors.require(uses == fits, 'model.name', f"'{uses}'", rule)
  errors.require(
      distribution.has_support or not outer.support_loss,
      'model.outer.support_loss',
      True,
      'without a support set it must be False',
  )
  learner = learners.make(distribution, network, outer)
  shapes = jax.eval_shape(network.init, jax.random.key(0))

  def draw_tasks(root: jax.Array) -> programs.SeedTasks:
    task_params = distribution.init(randomness.stream(root, 'task'))
    key = randomness.stream(root, 'evaluation_latents')
    sample = jax.jit(jax.vmap(distribution.sample, (None, 0)))
    test_sets = {}
    for split in SPLITS[:2]:
      keys = jax.random.split(
          randomness.stream(key, split), num_evaluation_tasks
      )
      drawn = sample(task_params, keys)
      weights = jnp.ones_like(drawn.query.outputs.lengths, jnp.float32)
      test_sets[split] = episodes.TestSet(drawn, weights, weights > 0)
    test_sets['ood'] = distribution.make_test_set(
        task_params, randomness.stream(key, 'ood'), num_devices
    )
    return programs.SeedTasks(task_params, test_sets)

  return programs.System(
      evaluation_splits=SPLITS,
      num_params=(models_lib.num_params(shapes), 0),
      draw_tasks=draw_tasks,
      num_combinations=lambda task_params, split: distribution.num_rows[split],
      init=learner.init,
      step=learner.step,
      evaluate=_make_evaluate(network),
      analyse=_make_analyse(distribution, network),
  )


def _make_evaluate(network: models.Model) -> programs.Evaluate:
  """Returns `System.evaluate`, which also returns the correct rows of 'ood'."""

  def evaluate_split(
      params: models.Params, test_set: episodes.TestSet
  ) -> tuple[Mapping[str, jax.Array], jax.Array]:
    def evaluate_episode(episode: episodes.Episode) -> learners.RowScores:
      decoded, _ = network.apply(
          params, None, episode.support, episode.query, False
      )
      return learners.evaluate_rows(decoded.logits, episode.query.outputs)

    share = outer_loop.device_shard(test_set)
    scores = lax.map(evaluate_episode, share.episodes)
    weights = share.weights
    sums = lax.psum(
        (
            (weights * scores.loss).sum(),
            (weights * scores.num_symbols).sum(),
            (weights * scores.correct).sum(),
            weights.sum(),
        ),
        outer_loop.DEVICE_AXIS,
    )
    metrics = {'loss': sums[0] / sums[1], 'accuracy': sums[2] / sums[3]}
    return metrics, scores.correct

  def evaluate(
      meta_params: models.Params,
      task_params: Any,
      evaluation_latents: Mapping[str, episodes.TestSet],
      key: jax.Array,
  ) -> tuple[programs.Evaluation, jax.Array]:
    del task_params, key
    results = [
        evaluate_split(meta_params, evaluation_latents[split])
        for split in SPLITS
    ]
    metrics = [metrics for metrics, _ in results]
    kept = results[-1][1][None]
    return jax.tree.map(lambda *values: jnp.stack(values), *metrics), kept

  return evaluate


def _make_analyse(
    distribution: episodes.EpisodeDistribution, network: models.Model
) -> programs.AnalyseSeed:
  """Returns the analysis: parts of the test set, attention."""
  apply = jax.jit(
      lambda params, episode: network.apply(
          params, None, episode.support, episode.query, False
      )
  )

  def analyse(
      drawn: programs.SeedTasks, root: jax.Array, meta_params: Any, kept: Any
  ) -> dict[str, dict[str, float]]:
    del root
    test_set = jax.tree.map(np.asarray, drawn.evaluation_latents['ood'])
    metrics = distribution.measure(test_set, kept[0] > 0)
    example = distribution.example()
    attention = _attention(example, *apply(meta_params, example))
    return {'ood': metrics | attention}

  return analyse


def _attention(
    episode: episodes.Episode, decoded: models.Decoded, context: models.Context
) -> dict[str, float]:
  """Returns the attention in an example, without padding.

  `memory_attention_{t}_{i}` is from query step t to support item i,
  `decoder_attention_{j}_{t}` from output step j to query step t.
  """
  num_inputs = int(episode.query.inputs.lengths[0])
  num_outputs = int(episode.query.outputs.lengths[0])
  maps = {}
  if context.memory_attention is not None:
    maps['memory'] = context.memory_attention[:num_inputs, 0]
  if decoded.attention is not None:
    maps['decoder'] = decoded.attention[:num_outputs, 0, :num_inputs]
  return {
      f'{name}_attention_{row}_{column}': float(value)
      for name, attention in maps.items()
      for (row, column), value in np.ndenumerate(np.asarray(attention))
  }
