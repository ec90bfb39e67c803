"""In-context learning as a system that can be run.

Evaluation splits are those of the tasks, and for modular regression also
'unrelated', the paper's control: tasks whose modules are not the teacher's.
The same sequences are used at every evaluation. Metrics of a split:

  loss            the objective
  prediction_r2   1 - error / error of the context's mean target, a ratio of
                  means over sequences; for objectives that are sums of squares
  relative_r2     1 - error / variance of a sequence's targets, averaged over
                  sequences (the released code of Schug et al., 2025)
  decoding_r2_*   of the task's latent by ridge regression from features of the
                  model, fitted on 'valid': the last token's residual stream
                  after each block, the code of a hypernetwork

`decoding_r2` is that of the last block. `naming.py` adds, at some evaluations,
how well terms of fuzzy logic, or rules of sRAVEN, can be named. The paper
averages `prediction_r2` over sequences, which is dominated by those with small
denominators.
"""

from collections.abc import Callable, Mapping
import math
from typing import Any

import jax
from jax import flatten_util
from jax import lax
import jax.numpy as jnp

from modular_hyperteacher import randomness
from modular_hyperteacher.learning import evaluation
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.learning import programs
from modular_hyperteacher.models import base as models_lib
from modular_hyperteacher.studies.in_context import decoding
from modular_hyperteacher.studies.in_context import learner as learners
from modular_hyperteacher.studies.in_context import models
from modular_hyperteacher.studies.in_context import naming as naming_lib
from modular_hyperteacher.tasks import base as tasks

UNRELATED = 'unrelated'
# Sequences evaluated at once on a device; bounds memory.
_CHUNK_SIZE = 64
# `draw_unrelated(task_params, key) -> task_params` of the control.
DrawUnrelated = Callable[[Any, jax.Array], Any]


def make_system(
    task: tasks.TaskDistribution,
    model: models.Model,
    outer: learners.OuterConfig,
    *,
    num_evaluation_tasks: int,
    draw_unrelated: DrawUnrelated | None = None,
    naming: naming_lib.Naming | None = None,
) -> programs.System:
  """Returns the system that trains a model on a distribution of tasks.

  Without `draw_unrelated` there is no control; without `naming`, nothing is
  named from codes.
  """
  learner = learners.make(task, model, outer)
  splits = task.evaluation_splits + ((UNRELATED,) if draw_unrelated else ())
  shapes = jax.eval_shape(model.init, jax.random.key(0))

  def num_combinations(task_params: Any, split: str) -> int:
    return task.num_combinations(
        task_params, 'train' if split == UNRELATED else split
    )

  return programs.System(
      evaluation_splits=splits,
      num_params=(models_lib.num_params(shapes), 0),
      draw_tasks=evaluation.make_draw_tasks(task, num_evaluation_tasks),
      num_combinations=num_combinations,
      init=learner.init,
      step=learner.step,
      evaluate=_make_evaluate(
          task, model, draw_unrelated, naming.kept if naming else ()
      ),
      analyse=naming and naming_lib.make_analyse(naming, splits),
  )


def _make_evaluate(
    task_distribution: tasks.TaskDistribution,
    model: models.Model,
    draw_unrelated: DrawUnrelated | None,
    kept_splits: tuple[str, ...] = (),
) -> programs.Evaluate:
  """Returns `System.evaluate`, which returns the codes of some splits."""

  def evaluate_task(
      params: models.Params,
      task_params: Any,
      latent: jax.Array,
      key: jax.Array,
      split: str,
  ) -> tuple[dict[str, jax.Array], dict[str, jax.Array], jax.Array]:
    if split == UNRELATED and draw_unrelated is not None:
      task_params = draw_unrelated(
          task_params, randomness.stream(key, UNRELATED)
      )
    support, query = task_distribution.sample_examples(
        task_params, key, latent, split
    )
    predicted = model.apply(params, None, support, query.inputs, False)
    metrics = measure(
        task_distribution.objective, predicted.outputs, support, query
    )
    return metrics, predicted.features, predicted.codes

  def evaluate(
      params: models.Params,
      task_params: Any,
      latents: jax.Array,
      key: jax.Array,
  ) -> tuple[programs.Evaluation, Any]:
    splits = task_distribution.evaluation_splits
    valid = splits.index('valid')
    if draw_unrelated is not None:
      splits += (UNRELATED,)
      # Its latents are drawn like those of training, too.
      latents = jnp.concatenate([latents, latents[valid][None]])
    measured = []
    for index, split_key in enumerate(jax.random.split(key, len(latents))):
      keys = jax.random.split(split_key, latents.shape[1])
      share = outer_loop.device_shard((latents[index], keys))
      measured.append(
          lax.map(
              lambda drawn, split=splits[index]: evaluate_task(
                  params, task_params, drawn[0], drawn[1], split
              ),
              share,
              batch_size=math.gcd(len(share[1]), _CHUNK_SIZE),
          )
      )
    gathered = _gather([shares[:2] for shares in measured])
    kept = [
        codes
        for name, (*_, codes) in zip(splits, measured)
        if name in kept_splits
    ]
    metrics = [_finish(jax.tree.map(jnp.mean, m)) for m, _ in gathered]
    decoded = _decode(
        [features for _, features in gathered],
        latents.reshape(*latents.shape[:2], -1),
        valid,
    )
    together = [m | d for m, d in zip(metrics, decoded)]
    values = jax.tree.map(lambda *values: jnp.stack(values), *together)
    return values, jnp.stack(kept) if kept else ()

  return evaluate


def _gather(tree: Any) -> Any:
  """Returns arrays [tasks, ...], given every device's share of the tasks.

  Sends everything at once. A device that waited for others in several places
  could hold the threads that these need, where a CPU is divided into devices.
  """
  first = jax.tree.map(lambda x: x[0], tree)
  _, unravel = flatten_util.ravel_pytree(first)
  flat = jax.vmap(lambda task: flatten_util.ravel_pytree(task)[0])(tree)
  everything = lax.all_gather(flat, outer_loop.DEVICE_AXIS, tiled=True)
  return jax.vmap(unravel)(everything)


def measure(
    objective: tasks.Objective,
    outputs: jax.Array,
    support: tasks.Batch,
    query: tasks.Batch,
) -> dict[str, jax.Array]:
  """Returns the metrics of a task's predictions [Q, Y].

  `prediction_r2` needs their means.
  """
  metrics = objective.measure(outputs, query)
  if objective.residuals is None:
    return metrics
  mean = support.targets.mean(0, keepdims=True)
  error = jnp.mean((query.targets - outputs) ** 2)
  baseline = jnp.mean((query.targets - mean) ** 2)
  targets = jnp.concatenate([support.targets, query.targets])
  variance = targets.var(0).mean()
  return metrics | {
      'error': error,
      'baseline': baseline,
      'relative_r2': 1 - error / jnp.where(variance > 0, variance, 1.0),
  }


def _finish(mean: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
  """Returns metrics of a split, given the means of those of its tasks."""
  metrics = dict(mean)
  if 'baseline' in metrics:
    ratio = metrics.pop('error') / metrics.pop('baseline')
    metrics['prediction_r2'] = 1 - ratio
  return metrics


def _decode(
    features: list[Mapping[str, jax.Array]], latents: jax.Array, fitted_on: int
) -> list[dict[str, jax.Array]]:
  """Returns how well latents [splits, tasks, L M] are decoded, by split.

  Features of a split are name -> [tasks, F].
  """
  known = features[fitted_on]
  scores: list[dict[str, jax.Array]] = [{} for _ in features]
  for name in known:
    weights = decoding.fit(known[name], latents[fitted_on])
    for index, new in enumerate(features):
      scores[index][f'decoding_r2_{name}'] = decoding.score(
          weights, new[name], latents[index]
      )
  last = [name for name in known if name.startswith('block_')][-1]
  return [s | {'decoding_r2': s[f'decoding_r2_{last}']} for s in scores]
