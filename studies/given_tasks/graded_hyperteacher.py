"""A hyperteacher with graded modules, whose tasks are given to the learner.

Source: Redhardt et al., "Scaling can lead to compositional generalization"
(2025), and its released code. A task's latent z mixes up to K of M modules into
the first layer; the readout is shared:

  y = Omega relu(sum_m z_m / sqrt(K) (Theta_m x + b_m)),   x ~ U(-1, 1)^X

Which modules are active is drawn from a split of masks, each equally likely.
Their entries of z are 0.5, 0.6, ..., 1.0 in training and for OOD tasks, so what
is held out is the combination. Inputs start with a code of z (`encodings`), and
models are trained on many tasks at once: there is no inner loop.

Worked example, K = 3: the mask 101 may have z = (0.6, 0, 1). The weights of the
first layer are 0.35 Theta_0 + 0.58 Theta_2.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from modular_hyperteacher import randomness
from modular_hyperteacher.studies.given_tasks import listed_splits
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import encodings
from modular_hyperteacher.tasks import objectives
from modular_hyperteacher.untrusted import rules

_LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_MAX_BIAS = 0.5
# Variance sqrt(3) / fan_in, also after truncation at two standard deviations.
_WEIGHTS = jax.nn.initializers.variance_scaling(
    math.sqrt(3), 'fan_in', 'truncated_normal', batch_axis=0
)


class GradedParams(NamedTuple):
  """What all tasks of a seed share."""

  modules: jax.Array  # [M, X, H]
  biases: jax.Array  # [M, H]
  readout: jax.Array  # [H, Y]
  train: jax.Array  # [C, M] bool
  ood: jax.Array  # [C', M] bool


def squared_error(outputs: jax.Array, batch: base.Batch) -> jax.Array:
  """Returns the squared error, averaged over examples and outputs."""
  return 2 * objectives.half_mean_squared_error(outputs, batch)


def explained(outputs: jax.Array, batch: base.Batch) -> dict[str, jax.Array]:
  """Returns what R2 of a task [N, Y] is computed from, and R2 by unit.

  'unit_r2' is 1 - error / variance, averaged over outputs whose targets vary.
  One that hardly varies weighs heavily, so 'variance', averaged over outputs,
  allows for the R2 of all tasks together: 1 - loss / variance, of the means.
  """
  rows = batch.mask[:, None]
  number = rows.sum()
  mean = (rows * batch.targets).sum(0, keepdims=True) / number
  variance = (rows * (batch.targets - mean) ** 2).sum(0) / number
  error = (rows * (batch.targets - outputs) ** 2).sum(0) / number
  varies = variance > 0
  r2 = 1 - error / jnp.where(varies, variance, 1.0)
  return {
      'unit_r2': objectives.masked_mean(r2, varies.astype(float)),
      'variance': variance.mean(),
  }


OBJECTIVE = base.Objective(
    loss=squared_error,
    metrics=explained,
    residuals=objectives.masked_residuals,
)


def respond(
    params: GradedParams, scaled: jax.Array, inputs: jax.Array
) -> jax.Array:
  """Returns the targets [N, Y] of a task.

  Args:
    params: the parameters of the teacher.
    scaled: z / sqrt(K), [M].
    inputs: [N, X].
  """
  weights = jnp.tensordot(scaled, params.modules, 1)
  hidden = jax.nn.relu(inputs @ weights + (scaled @ params.biases)[None])
  return hidden @ params.readout


def draw_teacher(
    key: jax.Array,
    num_modules: int,
    input_dim: int,
    width: int,
    output_dim: int,
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Returns modules, biases and readout, as in `GradedParams`."""
  modules_key, biases_key, readout_key = jax.random.split(key, 3)
  return (
      _WEIGHTS(modules_key, (num_modules, input_dim, width)),
      jax.random.uniform(biases_key, (num_modules, width), maxval=_MAX_BIAS),
      _WEIGHTS(readout_key, (1, width, output_dim))[0],
  )


def draw_latent(key: jax.Array, masks: jax.Array) -> jax.Array:
  """Draws one of the masks [C, M], then a latent [1, M] on it."""
  mask_key, level_key = jax.random.split(key)
  mask = masks[jax.random.randint(mask_key, (), 0, len(masks))]
  levels = jax.random.choice(level_key, jnp.array(_LEVELS), mask.shape)
  return (mask * levels)[None]


def _check_sizes(
    num_modules: int, input_dim: int, width: int, output_dim: int, number: int
) -> None:
  base.check_size(
      'input_dim and task.teacher_hidden_dim', num_modules * input_dim * width
  )
  base.check_size('output_dim', width * output_dim)
  base.check_size(
      'num_support, task.num_query and task.input_dim', number * input_dim
  )


@rules.enforce('task')
def make(
    *,
    num_modules: int,
    max_active: int,
    task_support: str,
    fraction_ood: float,
    encoding: str,
    input_dim: rules.Count,
    output_dim: rules.Count,
    teacher_hidden_dim: rules.Count,
    num_support: rules.Count,
    num_query: rules.Count,
) -> base.TaskDistribution:
  """Returns the task distribution.

  Splits: 'train'; 'valid' and 'test', fresh draws of it; 'ood', held-out masks.

  A task mixes up to K = `max_active` of M = `num_modules` modules; a share of
  the masks is held out (`fraction_ood`, see `listed_splits.draw`). X is without
  the code, which may show `num_support` examples (`encodings`).

  Raises:
    UserError: for impossible sizes or splits; names the field.
  """
  support = task_support, num_modules, max_active, fraction_ood
  num_train, num_ood = listed_splits.count(*support)
  sizes = num_modules, input_dim, teacher_hidden_dim, output_dim
  _check_sizes(*sizes, num_support + num_query)

  def init(key: jax.Array) -> GradedParams:
    split = listed_splits.draw(*support, randomness.stream(key, 'split'))
    return GradedParams(
        *draw_teacher(randomness.stream(key, 'teacher'), *sizes),
        train=jnp.asarray(split.train),
        ood=jnp.asarray(split.ood),
    )

  def masks(params: GradedParams, split: str) -> jax.Array:
    return params.ood if split == 'ood' else params.train

  def sample_examples(
      params: GradedParams, key: jax.Array, latent: jax.Array, split: str
  ) -> tuple[base.Batch, base.Batch]:
    del split  # All splits have the same number of examples.
    scaled = latent[0] / math.sqrt(max_active)

    def draw(set_key: jax.Array, number: int) -> base.Batch:
      inputs = jax.random.uniform(set_key, (number, input_dim), minval=-1.0)
      return base.examples(inputs, respond(params, scaled, inputs))

    support_key, query_key = jax.random.split(key)
    return draw(support_key, num_support), draw(query_key, num_query)

  task = base.TaskDistribution(
      input_dim=input_dim,
      output_dim=output_dim,
      num_modules=num_modules,
      objective=OBJECTIVE,
      evaluation_splits=('valid', 'test', 'ood'),
      init=init,
      sample_latent=lambda params, key, split: draw_latent(
          key, masks(params, split)
      ),
      sample_examples=sample_examples,
      num_combinations=lambda params, split: len(masks(params, split)),
      fixed_counts={
          **dict.fromkeys(('train', 'valid', 'test'), num_train),
          'ood': num_ood,
      },
  )
  return encodings.give(
      task, encoding, num_entries=num_modules, num_support=num_support
  )
