"""The multi-task teacher of the theory: one layer, mixed from modules.

Source: Section 3.1, Appendix B. A task's latent z mixes M modules into the
first layer; the readout is shared:

  y = relu(x W(z) / sqrt(X)) a,   W(z) = sum_m z_m Theta_m

Theta_m is [X, H], a is [H, Y], and there are no biases. Inputs are uniform on
[-sqrt(3), sqrt(3)]^X, which makes their variance one. A task is drawn by
picking one of the families that `task_support` names, all equally likely, then
a latent on its modules. (The theorems are about one output; the experiments,
as released, have four and the factor 1/sqrt(X).)
"""

import functools
import math
from typing import NamedTuple

import jax
from jax.extend import random as jex_random
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import randomness
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import combinations
from modular_hyperteacher.tasks import families
from modular_hyperteacher.tasks import latents

LATENT_TYPES = ('discrete', 'continuous')


class TeacherParams(NamedTuple):
  """What all tasks of a seed share."""

  modules: base.Array  # Theta, [M, X, H]
  readout: base.Array  # a, [H, Y]


def respond(
    modules: base.Array,
    readout: base.Array,
    latent: base.Array,
    inputs: base.Array,
) -> base.Array:
  """Returns the outputs [N, Y] of a modular network.

  Args:
    modules: [M, X, H].
    readout: [H, Y].
    latent: [M].
    inputs: [N, X].
  """
  weights = jnp.tensordot(latent, modules, 1) / math.sqrt(modules.shape[1])
  return jax.nn.relu(inputs @ weights) @ readout


def init_modular(
    key: base.Key,
    num_modules: int,
    input_dim: int,
    hidden_dim: int,
    output_dim: int,
) -> tuple[base.Array, base.Array]:
  """Draws modules [M, X, H] and readout [H, Y], of teacher or student.

  Entries are normal, cut at two standard deviations and not rescaled, with
  scale 1/sqrt(M) for modules and 1/sqrt(H) for the readout.
  """
  module_key, readout_key = jax.random.split(key)
  draw = functools.partial(jax.random.truncated_normal, lower=-2.0, upper=2.0)
  return (
      draw(module_key, shape=(num_modules, input_dim, hidden_dim))
      / math.sqrt(num_modules),
      draw(readout_key, shape=(hidden_dim, output_dim)) / math.sqrt(hidden_dim),
  )


def make(
    *,
    num_modules: int,
    task_support: str,
    latent_type: str,
    sampler: str,
    input_dim: int,
    output_dim: int,
    teacher_hidden_dim: int,
    num_support: int,
    num_query: int,
    num_evaluation_query: int,
    teacher_seed: int | None = None,
) -> base.TaskDistribution:
  """Returns the task distribution of the theory's experiments.

  Splits: 'train'; 'valid' and 'test', fresh draws of it; 'ood', all sets of
  modules that are not a family in training; 'all_k{k}', all sets of exactly k
  modules, families in training included. Latents outside of training are
  continuous, also after discrete training, as in the released code.

  Args:
    num_modules: M; the named families have 6.
    task_support: a name in `families.FAMILIES`.
    latent_type: 'discrete', the family's mask at unit norm, or 'continuous'.
    sampler: of continuous latents, a name in `latents.SAMPLERS`.
    input_dim: X.
    output_dim: Y.
    teacher_hidden_dim: H.
    num_support: examples to infer a latent from (per inner step, if the inner
      loop asks for a fresh support set at every step).
    num_query: examples per task of the outer loss.
    num_evaluation_query: the same at evaluation.
    teacher_seed: of the one teacher that all seeds learn from, so that they
      differ in the student's start and in the data alone; None for a teacher
      per seed.

  Raises:
    ValueError: for an impossible value; names the field.
  """
  _check(locals())
  train = families.masks(families.FAMILIES[task_support])
  everything = combinations.masks_up_to(num_modules, num_modules)
  seen = (everything[:, None] == train[None]).all(-1).any(-1)
  masks = {'train': train, 'valid': train, 'test': train}
  masks['ood'] = everything[~seen]
  for k in range(1, num_modules + 1):
    masks[f'all_k{k}'] = combinations.masks_with(num_modules, k)

  def init(key):
    if teacher_seed is not None:
      key = jax.random.key(teacher_seed, impl=jax.random.key_impl(key))
    return TeacherParams(
        *init_modular(
            randomness.stream(key, 'teacher'),
            num_modules,
            input_dim,
            teacher_hidden_dim,
            output_dim,
        )
    )

  def sample_latent(params, key, split):
    del params
    return _sample_latent(
        key,
        masks[split],
        discrete=latent_type == 'discrete' and masks[split] is train,
        sampler=sampler,
    )

  def sample_examples(params, key, latent, split):
    num_asked = num_query if split == 'train' else num_evaluation_query
    # Two keys: a caller that ignores one batch does not pay for it.
    support_key, query_key = jax.random.split(key)
    return (
        _examples(params, support_key, latent, (num_support, input_dim)),
        _examples(params, query_key, latent, (num_asked, input_dim)),
    )

  return base.TaskDistribution(
      input_dim=input_dim,
      output_dim=output_dim,
      num_modules=num_modules,
      evaluation_splits=tuple(split for split in masks if split != 'train'),
      init=init,
      sample_latent=sample_latent,
      sample_examples=sample_examples,
      num_combinations=lambda params, split: len(masks[split]),
  )


def _sample_latent(
    key: base.Key, masks: np.ndarray, *, discrete: bool, sampler: str
) -> base.Array:
  """Draws one of the masks [C, M], then a latent [1, M] on it."""
  mask_key, latent_key = jax.random.split(key)
  row = jax.random.randint(mask_key, (), 0, len(masks))
  mask = jnp.asarray(masks)[row]
  if discrete:
    return latents.normalise(mask)[None]
  return latents.sample_continuous(latent_key, mask, sampler)[None]


def _examples(params, key, latent, shape):
  inputs = _uniform(key, shape, bound=math.sqrt(3))
  targets = respond(params.modules, params.readout, latent[0], inputs)
  return base.Batch(inputs, targets, jnp.ones(shape[0]))


def _uniform(key, shape, bound):
  """Draws from 2^16 equally likely values, evenly spaced in [-bound, bound].

  A hash gives two words, and a word two values. With fresh inputs at every
  inner step, drawing them is most of the work, and `jax.random.uniform`, which
  spends a hash on each, takes four times as long.
  """
  size = math.prod(shape)
  count = jnp.arange((size + 1) // 2, dtype=jnp.uint32)
  words = jex_random.threefry_2x32(jax.random.key_data(key), count)
  # Shifts along a new axis: concatenated halves would not be vectorised.
  halves = (words[None] >> np.array([[0], [16]], np.uint32)) & 0xFFFF
  # By way of int32, whose conversion is a single instruction.
  centred = halves.astype(jnp.int32).astype(jnp.float32) + 0.5 - 2.0**15
  return (centred.ravel()[:size] * (bound / 2**15)).reshape(shape)


def _check(fields):
  teacher_seed = fields['teacher_seed']
  if teacher_seed is not None and teacher_seed < 0:
    raise ValueError(
        f'task.teacher_seed is {teacher_seed}; it must be at least 0, or None.'
    )
  for field in (
      'input_dim',
      'output_dim',
      'teacher_hidden_dim',
      'num_support',
      'num_query',
      'num_evaluation_query',
  ):
    if not fields[field] > 0:
      raise ValueError(f'task.{field} is {fields[field]}; it must be positive.')
  if fields['num_modules'] != families.NUM_MODULES:
    raise ValueError(
        f'task.num_modules is {fields["num_modules"]}; the families of this'
        f' world are made of {families.NUM_MODULES} modules.'
    )
  for field, allowed in (
      ('task_support', families.FAMILIES),
      ('latent_type', LATENT_TYPES),
      ('sampler', latents.SAMPLERS),
  ):
    if fields[field] not in allowed:
      raise ValueError(
          f"task.{field} is '{fields[field]}'; choose one of"
          f' {", ".join(map(repr, allowed))}.'
      )
