"""Fuzzy logic: functions that are the maximum of a few known terms.

Source: Section 3.1 of Schug et al., "Attention as a Hypernetwork" (2025). With
Zadeh's operators, and = min, or = max, not x = 1 - x. A term is the conjunction
of all L variables, each plain or negated; a function is the disjunction of K
different terms. Inputs are uniform on [0, 1]^L.

The last quarter of the 2^L terms is never trained on. Of all combinations of K
others, a share is held out, drawn anew until training shows every such term.

Worked example: with L = 2, the terms 00, 01, 10, 11 are min(1 - a, 1 - b),
min(1 - a, b), min(a, 1 - b) and min(a, b). The function of terms 01 and 10 is
fuzzy xor, max(min(1 - a, b), min(a, 1 - b)). At (a, b) = (0.2, 0.7) its terms
are min(0.8, 0.7) = 0.7 and min(0.2, 0.3) = 0.2, so it is 0.7.
"""

import itertools
from typing import Annotated, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher import randomness
from modular_hyperteacher.studies.in_context import modular_regression
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks.supports import combinations
from modular_hyperteacher.untrusted import rules

UNKNOWN_TERMS = 'ood_unknown_terms'
# Splits whose contexts have the same inputs for all functions -> the split that
# the functions are drawn from.
FIXED_CONTEXT = {'valid_fixed_context': 'train', 'ood_fixed_context': 'ood'}
_MAX_VARIABLES = 6


class FuzzyParams(NamedTuple):
  """What the tasks of a seed share.

  Attributes:
    train: which terms the functions combine, as 0/1 masks [C, M].
    ood: those of held-out functions, [C', M].
    context: the inputs of fixed contexts, [num_support, L].
  """

  train: jax.Array
  ood: jax.Array
  context: jax.Array


def term_bits(num_variables: int) -> np.ndarray:
  """Returns all terms, [M, L]: 1 for a plain variable, 0 for a negated one."""
  return np.array(list(itertools.product((0, 1), repeat=num_variables)))


def respond(latent: jax.Array, inputs: jax.Array) -> jax.Array:
  """Returns the targets [N, 1] of a function.

  Args:
    latent: 1 for the terms of the function, else 0; [M].
    inputs: [N, L].
  """
  plain = term_bits(inputs.shape[-1])[None] == 1
  x = inputs[:, None]
  terms = jnp.min(jnp.where(plain, x, 1 - x), axis=-1)
  return jnp.max(terms * latent[None], axis=-1, keepdims=True)


def list_functions(
    num_variables: int, num_active: int
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the functions of known and of unknown terms, as 0/1 masks [C, M].

  Raises:
    UserError: if there are no functions of so many terms.
  """
  num_terms = 2**num_variables
  num_unknown = num_terms // 4
  num_known = num_terms - num_unknown
  most = min(num_unknown, 3)
  errors.require(
      2 <= num_active <= most,
      'task.num_active',
      num_active,
      f'it must be between 2 and {most}',
  )
  known, unknown = (
      combinations.masks_with(number, num_active).astype(np.int32)
      for number in (num_known, num_unknown)
  )
  return (
      np.pad(known, ((0, 0), (0, num_unknown))),
      np.pad(unknown, ((0, 0), (num_known, 0))),
  )


def draw_order(key: jax.Array, known: np.ndarray, num_ood: int) -> jax.Array:
  """Returns the functions of known terms, [C, M], held-out ones first.

  Drawn anew until the others show every term that they can.
  """

  def draw(number: jax.Array) -> jax.Array:
    return jax.random.permutation(
        jax.random.fold_in(key, number), jnp.asarray(known)
    )

  num_known = known.any(0).sum()

  def is_missing_a_term(number: jax.Array) -> jax.Array:
    return ~draw(number)[num_ood:, :num_known].any(0).all()

  number = lax.while_loop(is_missing_a_term, lambda n: n + 1, jnp.array(0))
  return draw(number)


@rules.enforce('task')
def make(
    *,
    num_variables: Annotated[int, rules.between(3, _MAX_VARIABLES)],
    num_active: int,
    ood_fraction: float,
    num_support: rules.Count,
    num_query: rules.Count,
) -> base.TaskDistribution:
  """Returns the task distribution.

  Splits: 'train'; 'valid' and 'test', fresh draws of it; 'ood', new
  combinations of known terms; 'ood_unknown_terms', combinations of terms that
  are not trained on; 'valid_fixed_context' and 'ood_fixed_context', functions
  of 'valid' and 'ood' whose contexts all have the same inputs.

  A function of L = `num_variables` combines K = `num_active` terms; a share of
  the combinations of known terms is held out (`ood_fraction`).

  Raises:
    UserError: for an impossible value; names the field.
  """
  base.check_size(
      'num_support, task.num_query and task.num_variables',
      (num_support + num_query) * num_variables,
  )
  known, unknown = list_functions(num_variables, num_active)
  num_ood = int(len(known) * ood_fraction)
  num_known = known.any(0).sum()
  errors.require(
      0 < num_ood <= len(known) - num_known,
      'task.ood_fraction',
      ood_fraction,
      f'it must leave at least {num_known} of {len(known)} combinations for'
      ' training, and hold out at least one',
  )

  def init(key: jax.Array) -> FuzzyParams:
    masks = draw_order(randomness.stream(key, 'combinations'), known, num_ood)
    context = jax.random.uniform(
        randomness.stream(key, 'context'), (num_support, num_variables)
    )
    return FuzzyParams(masks[num_ood:], masks[:num_ood], context)

  def masks(params: FuzzyParams, split: str) -> jax.Array:
    if split == UNKNOWN_TERMS:
      return jnp.asarray(unknown)
    drawn_from = FIXED_CONTEXT.get(split, split)
    return params.ood if drawn_from == 'ood' else params.train

  def sample_latent(
      params: FuzzyParams, key: jax.Array, split: str
  ) -> jax.Array:
    chosen = masks(params, split)
    row = jax.random.randint(key, (), 0, len(chosen))
    return chosen[row][None].astype(float)

  def sample_examples(
      params: FuzzyParams, key: jax.Array, latent: jax.Array, split: str
  ) -> tuple[base.Batch, base.Batch]:
    shape = num_support + num_query, num_variables
    inputs = jax.random.uniform(key, shape)
    if split in FIXED_CONTEXT:
      inputs = inputs.at[:num_support].set(params.context)
    targets = respond(latent[0], inputs)
    return base.divide(base.examples(inputs, targets), num_support)

  return base.TaskDistribution(
      input_dim=num_variables,
      output_dim=1,
      num_modules=known.shape[1],
      objective=modular_regression.OBJECTIVE,
      evaluation_splits=('valid', 'test', 'ood', UNKNOWN_TERMS, *FIXED_CONTEXT),
      context_splits=tuple(FIXED_CONTEXT),
      init=init,
      sample_latent=sample_latent,
      sample_examples=sample_examples,
      num_combinations=lambda params, split: len(masks(params, split)),
  )
