"""Is a student's error due to its modules, or to inferring its latents?

Latents inferred in a few steps from one start may not be the student's best.
Here the latents of some tasks are inferred again by Levenberg-Marquardt from
many starts. The remaining error is due to the modules, which Theorem 1 is
about. The difference is due to the inference in training and evaluation.

Source: beyond the paper.
"""

import functools
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.analysis import base
from modular_hyperteacher.analysis import identification
from modular_hyperteacher.learning import levenberg_marquardt
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks import objectives

_SPLITS = ('test', 'ood')
_NUM_TASKS = 32  # At least so many, and one of every combination of modules.
# In addition to the inferred latent and to the teacher's, mapped linearly.
_NUM_RANDOM_STARTS = 6
_NUM_ITERATIONS = 50
_METRICS = (
    'refit_relative_loss',
    'refit_relative_loss_max',
    'inference_excess',
)


def make_analysis(
    task: tasks.TaskDistribution, model: models.MetaModel
) -> base.Analysis:
  """Returns the analysis of a student's best latents, for 'test' and 'ood'.

  'refit_relative_loss' is half the squared error relative to the power of the
  targets, a mean over tasks (see `choose_tasks`); 'refit_relative_loss_max' is
  the maximum. 'inference_excess' is how much higher the mean is, on the same
  examples, with the latents inferred in evaluation. Each task gets two fresh
  batches, one to fit and one to measure. The fit with the lowest error on the
  first counts, so the choice uses no knowledge of the teacher. All are NaN if
  the student's parameters or inferred latents are not finite.
  """

  @functools.partial(jax.jit, static_argnames='split')
  def measure_task(
      task_params: Any,
      meta_params: models.MetaParams,
      key: jax.Array,
      latent: jax.Array,
      starts: jax.Array,
      split: str,
  ) -> tuple[jax.Array, jax.Array]:
    support, query = task.sample_examples(task_params, key, latent, split)

    def residuals(student_latent: jax.Array, batch: tasks.Batch) -> jax.Array:
      outputs = model.decode(meta_params, student_latent, batch.inputs)
      return objectives.masked_residuals(outputs, batch)

    def fit(start: jax.Array) -> tuple[jax.Array, jax.Array]:
      best = levenberg_marquardt.minimise(
          functools.partial(residuals, batch=support), start, _NUM_ITERATIONS
      )
      return best, (residuals(best, support) ** 2).sum()

    def error(student_latent: jax.Array) -> jax.Array:
      outputs = model.decode(meta_params, student_latent, query.inputs)
      return objectives.relative_errors(outputs, query)['pooled_relative_loss']

    fitted, errors = lax.map(fit, starts)
    return error(starts[0]), error(fitted[jnp.nanargmin(errors)])

  def measure(adapted: base.Adapted) -> base.Metrics:
    if not base.is_finite(adapted.meta_params, adapted.fast_params):
      # One lost seed must not cost the others: the fit below would raise.
      return {split: dict.fromkeys(_METRICS, np.nan) for split in _SPLITS}
    latent_map = identification.fit_latent_map(
        adapted.latents['test'][:, 0], adapted.fast_params['test']
    )
    # Scaled like the start of the student's own inference.
    start = model.init_fast(adapted.meta_params)
    random_starts = jnp.sqrt(jnp.mean(start**2)) * jax.random.normal(
        jax.random.fold_in(adapted.key, len(_SPLITS)),
        (_NUM_RANDOM_STARTS, start.size),
    )
    metrics = {}
    for index, split in enumerate(_SPLITS):
      key = jax.random.fold_in(adapted.key, index)
      latents, inferred = adapted.latents[split], adapted.fast_params[split]
      task_losses = [
          measure_task(
              adapted.task_params,
              adapted.meta_params,
              jax.random.fold_in(key, number),
              latents[number],
              jnp.vstack([
                  inferred[number],
                  latent_map @ latents[number, 0],
                  random_starts,
              ]),
              split,
          )
          for number in choose_tasks(latents)
      ]
      before, after = np.array(task_losses, np.float64).T
      values = after.mean(), after.max(), (before - after).mean()
      metrics[split] = dict(zip(_METRICS, map(float, values)))
    return metrics

  return base.Analysis(_SPLITS, measure)


def choose_tasks(latents: np.ndarray) -> np.ndarray:
  """Returns the sorted indices of the tasks whose latents to infer again.

  These are the first tasks, and the first task of each combination of modules,
  so that every combination that was drawn is covered. Latents z are [tasks, L,
  M].
  """
  _, first_of_combination = np.unique(latents != 0, axis=0, return_index=True)
  return np.union1d(np.arange(len(latents))[:_NUM_TASKS], first_of_combination)
