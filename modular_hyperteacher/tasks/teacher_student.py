"""The multi-task teacher of the theory: one hidden layer mixed from modules.

Source: Section 3.1, Appendix B. A task's latent z mixes M modules into the
first layer; the readout is shared:

  y = relu(x W(z) / sqrt(X)) a,   W(z) = sum_m z_m Theta_m

Theta_m is [X, H], a is [H, Y], and there are no biases. Inputs are uniform on
[-sqrt(3), sqrt(3)]^X and so have unit variance. To draw a task, choose one of
the families in `task_support` uniformly, then a latent on its modules. (The
theorems assume one output; the released experiments have four outputs and the
factor 1/sqrt(X).)
"""

import functools
import math
from typing import Annotated, Any, NamedTuple

import jax
from jax.extend import random as jex_random
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import randomness
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import objectives
from modular_hyperteacher.tasks.supports import combinations
from modular_hyperteacher.tasks.supports import families
from modular_hyperteacher.tasks.supports import latents
from modular_hyperteacher.untrusted import rules

_NumModules = Annotated[
    int,
    rules.that(
        lambda number: number == families.NUM_MODULES,
        f'{families.NUM_MODULES}, as many as the families here combine',
    ),
]


class TeacherParams(NamedTuple):
  """The parameters that all tasks of a seed share."""

  modules: jax.Array  # Theta, [M, X, H]
  readout: jax.Array  # a, [H, Y]


class SharedInputs(NamedTuple):
  """Inputs that the tasks of a meta-batch may share, marked for `respond`."""

  array: jax.Array  # [N, X]

  def dense(self) -> jax.Array:
    """Returns the inputs, [N, X]."""
    return self.array


def respond(
    modules: jax.Array,
    readout: jax.Array,
    latent: jax.Array,
    inputs: jax.Array | SharedInputs,
) -> jax.Array:
  """Returns the outputs [N, Y] of a modular network on inputs [N, X].

  Modules are [M, X, H], the readout is [H, Y], and the latent [M].
  """
  weights = jnp.tensordot(latent, modules, 1) / math.sqrt(modules.shape[1])
  if isinstance(inputs, SharedInputs):
    # For B tasks, [B * H, X] @ [X, N]: in this order, XLA transposes no array
    # of all tasks, neither here nor in the backward pass.
    hidden = jax.nn.relu(weights.T @ inputs.array.T)
    return jnp.einsum('hn,hy->ny', hidden, readout)
  return jax.nn.relu(inputs @ weights) @ readout


def init_modular(
    key: jax.Array,
    num_modules: int,
    input_dim: int,
    hidden_dim: int,
    output_dim: int,
) -> TeacherParams:
  """Draws modules [M, X, H] and readout [H, Y] of a teacher or a student.

  Entries are normal, truncated at two standard deviations and not rescaled to
  unit variance; the scale is 1/sqrt(M) for modules, 1/sqrt(H) for the readout.
  """
  module_key, readout_key = jax.random.split(key)
  draw = functools.partial(jax.random.truncated_normal, lower=-2.0, upper=2.0)
  return TeacherParams(
      draw(module_key, shape=(num_modules, input_dim, hidden_dim))
      / math.sqrt(num_modules),
      draw(readout_key, shape=(hidden_dim, output_dim)) / math.sqrt(hidden_dim),
  )


@rules.enforce('task')
def make(
    *,
    num_modules: _NumModules,
    task_support: Annotated[str, rules.one_of(families.FAMILIES)],
    latent_type: Annotated[str, rules.one_of(('discrete', 'continuous'))],
    sampler: latents.Sampler,
    input_dim: rules.Count,
    output_dim: rules.Count,
    teacher_hidden_dim: rules.Count,
    num_support: rules.Count,
    num_query: rules.Count,
    num_evaluation_query: rules.Count,
    teacher_seed: Annotated[int, rules.at_least(0, ', or None')] | None = None,
    shared_inputs: bool = False,
) -> base.TaskDistribution:
  """Returns the task distribution of the theory's experiments.

  Splits are those of `list_masks`. Latents are 'discrete', the mask at unit
  norm, or 'continuous', drawn by `sampler`; on splits with other combinations
  than training, they are always continuous, as in the released code. If every
  inner step draws a fresh support set, `num_support` counts its examples.

  With a `teacher_seed`, all seeds of a run share a teacher; they then differ
  only in the student's initialisation and the data.

  With `shared_inputs`, the tasks of a training meta-batch share the fresh
  inputs of an inner step. In the paper every task draws its own (Appendix B),
  as here at evaluation. Each task sees the same distribution either way, but
  shared inputs make one large matrix product of many small ones.

  Raises:
    UserError: for an impossible value; names the field.
  """
  masks = list_masks(families.FAMILIES[task_support], num_modules)

  def init(key: jax.Array) -> TeacherParams:
    if teacher_seed is not None:
      key = randomness.root_key(teacher_seed)
    return init_modular(
        randomness.stream(key, 'teacher'),
        num_modules,
        input_dim,
        teacher_hidden_dim,
        output_dim,
    )

  def sample_latent(_: Any, key: jax.Array, split: str) -> jax.Array:
    discrete = latent_type == 'discrete' and split in ('train', 'valid', 'test')
    return draw_latent(key, masks[split], discrete=discrete, sampler=sampler)

  def sample_examples(
      params: TeacherParams, key: jax.Array, latent: jax.Array, split: str
  ) -> tuple[base.Batch, base.Batch]:
    num_asked = num_query if split == 'train' else num_evaluation_query
    # With two keys, the compiler can drop a batch that the caller ignores.
    support_key, query_key = jax.random.split(key)
    return (
        _examples(params, support_key, latent, num_support, shared_inputs),
        _examples(params, query_key, latent, num_asked),
    )

  return base.TaskDistribution(
      input_dim=input_dim,
      output_dim=output_dim,
      num_modules=num_modules,
      objective=objectives.REGRESSION,
      evaluation_splits=tuple(split for split in masks if split != 'train'),
      init=init,
      sample_latent=sample_latent,
      sample_examples=sample_examples,
      num_combinations=lambda params, split: len(masks[split]),
      shared_inputs=shared_inputs,
  )


def list_masks(
    families_: families.Families, num_modules: int
) -> dict[str, np.ndarray]:
  """Returns split -> the sets of modules that its tasks combine, [C, M].

  Splits: 'train', the families; 'valid' and 'test', fresh draws of it; 'ood',
  all other sets; 'all_k{k}', all sets of exactly k modules.
  """
  train = families.masks(families_)
  all_masks = combinations.masks_up_to(num_modules, num_modules)
  masks = {'train': train, 'valid': train, 'test': train}
  masks['ood'] = combinations.without(all_masks, train)
  for k in range(1, num_modules + 1):
    masks[f'all_k{k}'] = combinations.masks_with(num_modules, k)
  return masks


def draw_latent(
    key: jax.Array, masks: np.ndarray, *, discrete: bool, sampler: str
) -> jax.Array:
  """Draws one of the masks [C, M], then a latent [1, M] on it."""
  mask_key, latent_key = jax.random.split(key)
  row = jax.random.randint(mask_key, (), 0, len(masks))
  mask = jnp.asarray(masks)[row]
  if discrete:
    return latents.normalise(mask)[None]
  return latents.sample_continuous(latent_key, mask, sampler)[None]


def _examples(
    params: TeacherParams,
    key: jax.Array,
    latent: jax.Array,
    number: int,
    shared: bool = False,
) -> base.Batch:
  inputs = _uniform(key, (number, params.modules.shape[1]))
  inputs = SharedInputs(inputs) if shared else inputs
  targets = respond(params.modules, params.readout, latent[0], inputs)
  return base.examples(inputs, targets)


def _uniform(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
  """Draws from 2^16 equally likely values between -sqrt(3) and sqrt(3).

  Sampling dominates the cost if every inner step draws fresh inputs. Here one
  hash yields two words of two values each, four times as fast as
  `jax.random.uniform` with one hash per value.
  """
  size = math.prod(shape)
  count = jnp.arange((size + 1) // 2, dtype=jnp.uint32)
  words = jex_random.threefry_2x32(jax.random.key_data(key), count)
  # Shift along a new axis, as XLA does not vectorise concatenated halves.
  halves = (words[None] >> np.array([[0], [16]], np.uint32)) & 0xFFFF
  # Int32 converts to float32 in a single instruction.
  centred = halves.astype(jnp.int32).astype(jnp.float32) + 0.5 - 2.0**15
  return (centred.ravel()[:size] * (math.sqrt(3) / 2**15)).reshape(shape)
