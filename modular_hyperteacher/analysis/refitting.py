"""How much of a student's error is its own, and how much its inference's?

A latent inferred with limited effort, from one start, may not be the best that
the student has to offer. Here latents of some tasks are inferred once more, by
Levenberg-Marquardt from many starts, to the end. What error is left is the
student's own: Theorem 1 speaks of it. What is gone is that of the inference
that the student was trained and evaluated with.

Source: beyond the paper.
"""

import functools

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.analysis import base
from modular_hyperteacher.analysis import identification
from modular_hyperteacher.learning import least_squares
from modular_hyperteacher.learning import losses
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks

_SPLITS = ('test', 'ood')
_NUM_TASKS = 32  # At least; and one of every combination of modules.
# Beside what was inferred, and what a linear map of the teacher's latent says.
_NUM_RANDOM_STARTS = 6
_NUM_ITERATIONS = 50


def make_analysis(
    task: tasks.TaskDistribution, model: models.MetaModel
) -> base.Analysis:
  """Returns the analysis of a student's best latents, for 'test' and 'ood'.

  'refit_relative_loss' is the mean over tasks (see `choose_tasks`) of half the
  squared error relative to the power of the targets,
  'refit_relative_loss_max' the largest;
  'inference_excess' is by how much the mean is higher with the latents that
  were inferred in evaluation, on the same examples. Examples are fresh ones:
  one batch to fit, one to measure. Of the fits of a task, the best on the
  former counts, which is not the teacher's knowledge.
  """

  @functools.partial(jax.jit, static_argnames='split')
  def measure_task(task_params, meta_params, key, latent, starts, split):
    support, query = task.sample_examples(task_params, key, latent, split)

    def residuals(student_latent, batch):
      outputs = model.decode(meta_params, student_latent, batch.inputs)
      return losses.masked_residuals(outputs, batch)

    def fit(start):
      best = least_squares.minimise(
          functools.partial(residuals, batch=support), start, _NUM_ITERATIONS
      )
      return best, (residuals(best, support) ** 2).sum()

    def error(student_latent):
      outputs = model.decode(meta_params, student_latent, query.inputs)
      return losses.relative_errors(outputs, query)['pooled_relative_loss']

    fitted, errors = lax.map(fit, starts)
    return error(starts[0]), error(fitted[jnp.nanargmin(errors)])

  def measure(adapted):
    latent_map = identification.fit_latent_map(
        adapted.latents['test'][:, 0], adapted.fast_params['test']
    )
    # As large as where the student's own inference starts.
    start = model.init_fast(adapted.meta_params)
    random_starts = jnp.sqrt(jnp.mean(start**2)) * jax.random.normal(
        jax.random.fold_in(adapted.key, len(_SPLITS)),
        (_NUM_RANDOM_STARTS, start.size),
    )
    metrics = {}
    for index, split in enumerate(_SPLITS):
      key = jax.random.fold_in(adapted.key, index)
      latents, inferred = adapted.latents[split], adapted.fast_params[split]
      losses_of_tasks = [
          measure_task(
              adapted.task_params,
              adapted.meta_params,
              jax.random.fold_in(key, number),
              latents[number],
              jnp.concatenate([
                  jnp.stack(
                      [inferred[number], latent_map @ latents[number, 0]]
                  ),
                  random_starts,
              ]),
              split,
          )
          for number in choose_tasks(latents)
      ]
      before, after = np.array(losses_of_tasks, np.float64).T
      metrics[split] = {
          'refit_relative_loss': float(after.mean()),
          'refit_relative_loss_max': float(after.max()),
          'inference_excess': float((before - after).mean()),
      }
    return metrics

  return base.Analysis(_SPLITS, measure)


def choose_tasks(latents: np.ndarray) -> np.ndarray:
  """Returns which tasks' latents to infer anew, in order.

  The first ones, and the first of each further combination of modules, so that
  what holds for all of them holds for every combination that was drawn.

  Args:
    latents: z of each task, [tasks, L, M].
  """
  _, first_of_combination = np.unique(latents != 0, axis=0, return_index=True)
  return np.union1d(np.arange(len(latents))[:_NUM_TASKS], first_of_combination)
