"""Modular regression in context: the theory's teacher, normalised.

Source: Sections 2 and 3 of Kobayashi et al., "When can transformers
compositionally generalize in-context?" (2024). A task's latent z mixes two of
M = 6 modules into the first layer; the readout is shared:

  y = gelu(x W(z) / |W(z)|) a,   W(z) = sum_m z_m Theta_m

Theta_m is [X, H], a is [H, Y], there are no biases, and |.| is the largest
singular value. So a task depends on the direction of z only. Inputs are uniform
on [-sqrt(3), sqrt(3)]^X, with unit variance.

Worked example: support 'ring' trains on the pairs 01, 12, 23, 34, 45, 50. A
task of the pair 12 may have the latent z = (0, 0.6, 0.9, 0, 0, 0): two active
entries between 0.5 and 1, which sum to 1.5. It mixes 2 parts of Theta_1 with 3
parts of Theta_2. The pair 13 is out of distribution.
"""

import math
from typing import Annotated

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import randomness
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import objectives
from modular_hyperteacher.tasks import teacher_student
from modular_hyperteacher.tasks.supports import combinations
from modular_hyperteacher.tasks.supports import families
from modular_hyperteacher.untrusted import rules

_NUM_SQUARINGS = 20
_CHORDS = ((0, 2), (1, 3), (2, 4), (3, 5), (0, 4), (1, 5))
# Table 1: 'Connected', 'Disconnected' and 'Connected+'.
SUPPORTS = {
    'ring': families.FAMILIES['ring'],
    'triangles': families.FAMILIES['triangles'],
    'ring_chords': families.FAMILIES['ring'] + _CHORDS,
}


def squared_error(outputs: jax.Array, batch: base.Batch) -> jax.Array:
  """Returns the squared error per example, summed over outputs."""
  error = jnp.sum((outputs - batch.targets) ** 2, axis=-1)
  return objectives.masked_mean(error, batch.mask)


OBJECTIVE = base.Objective(
    loss=squared_error,
    metrics=lambda outputs, batch: {},
    residuals=objectives.masked_residuals,
)


def mix(modules: jax.Array, latent: jax.Array) -> jax.Array:
  """Returns a task's normalised first layer, [M, X, H] and [M] -> [X, H]."""
  weights = jnp.tensordot(latent, modules, 1)
  return weights / spectral_norm(weights)


def spectral_norm(weights: jax.Array) -> jax.Array:
  """Returns the largest singular value of a matrix [X, H].

  It is a root of the Gram matrix's largest eigenvalue, which is a mean of all
  eigenvalues, weighted by their power 2^20: at most a few millionths too small.
  LAPACK's decomposition can block a CPU that is divided into devices: it waits
  for a thread while a sum over devices, which holds the thread, waits for it.
  """
  gram = weights @ weights.T

  def square(_: int, power: jax.Array) -> jax.Array:
    power = power @ power
    return power / jnp.trace(power)

  power = lax.fori_loop(0, _NUM_SQUARINGS, square, gram / jnp.trace(gram))
  return jnp.sqrt(jnp.sum(gram * power))


def respond(
    params: teacher_student.TeacherParams, latent: jax.Array, inputs: jax.Array
) -> jax.Array:
  """Returns the targets [N, Y] of a latent [M] at inputs [N, X]."""
  hidden = jax.nn.gelu(inputs @ mix(params.modules, latent))
  return hidden @ params.readout


def masks_of(task_support: str) -> dict[str, np.ndarray]:
  """Returns split -> masks [C, M] of the pairs of modules that it draws from.

  'ood' holds the pairs that are not trained on. 'ood_common' holds those of
  them that neither the ring nor the triangles train on, so that these two
  supports can be compared on the same tasks.
  """
  pairs = combinations.masks_with(families.NUM_MODULES, 2)
  train = families.masks(SUPPORTS[task_support])
  compared = families.masks(SUPPORTS['ring'] + SUPPORTS['triangles'])
  ood = combinations.without(pairs, train)
  common = combinations.without(ood, compared)
  return {
      'train': train,
      'valid': train,
      'test': train,
      'ood': ood,
      'ood_common': common,
  }


def draw_unrelated(
    params: teacher_student.TeacherParams, key: jax.Array
) -> teacher_student.TeacherParams:
  """Returns a teacher with fresh modules and the same readout.

  Tasks of such teachers, each with its own modules, are the paper's control:
  they share no structure with training.
  """
  num_modules, input_dim, hidden_dim = params.modules.shape
  modules, _ = teacher_student.init_modular(
      key, num_modules, input_dim, hidden_dim, params.readout.shape[1]
  )
  return params._replace(modules=modules)


@rules.enforce('task')
def make(
    *,
    task_support: Annotated[str, rules.one_of(SUPPORTS)],
    input_dim: rules.Count,
    output_dim: rules.Count,
    teacher_hidden_dim: rules.Count,
    num_support: rules.Count,
    num_query: rules.Count,
) -> base.TaskDistribution:
  """Returns the task distribution.

  Splits: 'train'; 'valid' and 'test', fresh draws of it; 'ood' and
  'ood_common', see `masks_of`.

  Raises:
    UserError: for an impossible value; names the field.
  """
  base.check_size(
      'input_dim and task.teacher_hidden_dim',
      families.NUM_MODULES * input_dim * teacher_hidden_dim,
  )
  masks = masks_of(task_support)

  def init(key: jax.Array) -> teacher_student.TeacherParams:
    return teacher_student.init_modular(
        randomness.stream(key, 'teacher'),
        families.NUM_MODULES,
        input_dim,
        teacher_hidden_dim,
        output_dim,
    )

  def sample_latent(
      params: teacher_student.TeacherParams, key: jax.Array, split: str
  ) -> jax.Array:
    del params
    return teacher_student.draw_latent(
        key, masks[split], discrete=False, sampler='paper'
    )

  def sample_examples(
      params: teacher_student.TeacherParams,
      key: jax.Array,
      latent: jax.Array,
      split: str,
  ) -> tuple[base.Batch, base.Batch]:
    del split  # All splits have the same number of examples.
    bound = math.sqrt(3)
    shape = num_support + num_query, input_dim
    inputs = jax.random.uniform(key, shape, minval=-bound, maxval=bound)
    targets = respond(params, latent[0], inputs)
    return (
        base.examples(inputs[:num_support], targets[:num_support]),
        base.examples(inputs[num_support:], targets[num_support:]),
    )

  return base.TaskDistribution(
      input_dim=input_dim,
      output_dim=output_dim,
      num_modules=families.NUM_MODULES,
      objective=OBJECTIVE,
      evaluation_splits=tuple(split for split in masks if split != 'train'),
      init=init,
      sample_latent=sample_latent,
      sample_examples=sample_examples,
      num_combinations=lambda params, split: len(masks[split]),
  )
