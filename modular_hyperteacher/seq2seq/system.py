"""Meta sequence-to-sequence learning as a system that can be run.

Evaluation splits: 'valid' and 'test' are fresh episodes like those of
training; without a memory, training rows. 'ood' is what the paper tests: word
meanings held out of training, or a split of SCAN. No split decides anything:
the network after the last step is the result.
"""

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher import randomness
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.learning import programs
from modular_hyperteacher.models import base as models_lib
from modular_hyperteacher.seq2seq import episodes
from modular_hyperteacher.seq2seq import learner as learners
from modular_hyperteacher.seq2seq import model as models

SPLITS = ('valid', 'test', 'ood')


def make_system(
    world: episodes.EpisodeDistribution,
    network: models.Model,
    outer: learners.OuterConfig,
    *,
    num_evaluation_tasks: int,
    num_devices: int,
) -> programs.System:
  """Returns the system of one network in one world.

  Args:
    world: where episodes come from.
    network: what is trained.
    outer: how.
    num_evaluation_tasks: episodes of 'valid' and of 'test'.
    num_devices: over which episodes are divided.

  Raises:
    ValueError: if world and network do not fit.
  """
  _check_memory(world, network, outer)
  learner = learners.make(world, network, outer)
  shapes = jax.eval_shape(network.init, jax.random.key(0))

  def draw_world(root):
    params = world.init(randomness.stream(root, 'task'))
    key = randomness.stream(root, 'evaluation_latents')
    sample = jax.jit(jax.vmap(world.sample, (None, 0)))
    sets = {}
    for split in SPLITS[:2]:
      keys = jax.random.split(
          randomness.stream(key, split), num_evaluation_tasks
      )
      drawn = sample(params, keys)
      weights = jnp.ones_like(drawn.query.outputs.lengths, jnp.float32)
      sets[split] = episodes.TestSet(drawn, weights, weights > 0)
    sets['ood'] = world.make_test_set(
        params, randomness.stream(key, 'ood'), num_devices
    )
    return programs.World(params, sets)

  return programs.System(
      evaluation_splits=SPLITS,
      num_params=(models_lib.num_params(shapes), 0),
      draw_world=draw_world,
      num_combinations=lambda params, split: world.num_rows[split],
      init=learner.init,
      step=learner.step,
      evaluate=_make_evaluate(network),
      make_analyse=lambda worlds, roots: _make_analyse(world, network, worlds),
  )


def _check_memory(world, network, outer):
  if world.has_support != network.config.use_memory:
    raise errors.UserError(
        'model.name and task.meanings do not fit: a network with a memory needs'
        ' episodes with a support set, one without has no use for them.'
    )
  if outer.support_loss and not world.has_support:
    raise errors.UserError(
        'model.outer.support_loss is True; without a support set it must be'
        ' False.'
    )


def _make_evaluate(network):
  """Returns `evaluate` of `programs.System`; kept is which rows are right."""

  def judge_set(params, test_set):
    def judge_episode(episode):
      decoded, _ = network.apply(
          params, None, episode.support, episode.query, False
      )
      return learners.judge(decoded.logits, episode.query.outputs)

    share = outer_loop.device_shard(test_set)
    judged = lax.map(judge_episode, share.episodes)
    weights = share.weights
    sums = lax.psum(
        (
            (weights * judged.loss).sum(),
            (weights * judged.num_symbols).sum(),
            (weights * judged.correct).sum(),
            weights.sum(),
        ),
        outer_loop.DEVICE_AXIS,
    )
    metrics = {'loss': sums[0] / sums[1], 'accuracy': sums[2] / sums[3]}
    return metrics, judged.correct

  def evaluate(params, world_params, test_sets, key):
    del world_params, key
    judged = [judge_set(params, test_sets[split]) for split in SPLITS]
    metrics = [metrics for metrics, _ in judged]
    kept = judged[-1][1][None]
    return jax.tree.map(lambda *values: jnp.stack(values), *metrics), kept

  return evaluate


def _make_analyse(world, network, worlds):
  """Returns what is measured at the end: parts of the test set, attention."""
  apply = jax.jit(
      lambda params, episode: network.apply(
          params, None, episode.support, episode.query, False
      )
  )

  def analyse(params, kept):
    found = []
    for index, seed_world in enumerate(worlds):
      test_set = jax.tree.map(np.asarray, seed_world.evaluation_latents['ood'])
      seed_params = jax.tree.map(lambda x, i=index: x[i], params)
      found.append(
          world.measure(test_set, kept[index, 0] > 0)
          | _attention(apply, seed_params, world.example())
      )
    return {
        'ood': {
            name: np.array([metrics[name] for metrics in found])
            for name in found[0]
        }
    }

  return analyse


def _attention(apply, params, episode):
  """Returns where attention goes in an example, without its padding.

  `memory_attention_{t}_{i}` of query step t to support item i,
  `decoder_attention_{j}_{t}` of output step j to query step t.
  """
  decoded, context = apply(params, episode)
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
