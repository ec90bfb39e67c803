"""Interfaces: a task, and a distribution of tasks.

Shape legend for every docstring of the package (functions under `vmap`
document the shapes of one task):

  B  tasks in a meta-batch      L  layers that get a mask of their own
  N  examples (S support,       M  modules (the teacher's)
     Q query)                   C  combinations of modules
  X  input features             H  hidden units
  Y  outputs                    D  devices
  R  seeds trained side by side
"""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from modular_hyperteacher import errors

_MAX_NUMBERS = 2**31  # The largest array has 8 GiB.
TaskParams = Any  # Pytree of arrays: teacher weights, mazes, splits.


class Batch(NamedTuple):
  """Examples of one task."""

  inputs: Any  # [N, X], an array or a compact form, see `observations.Scenes`
  targets: jax.Array  # [N, Y], or as the objective expects
  mask: jax.Array  # [N] float, 1 for examples, 0 for padding


def examples(inputs: Any, targets: jax.Array) -> Batch:
  """Returns a batch in which every example counts."""
  return Batch(inputs, targets, jnp.ones(len(targets)))


def divide(examples: Any, num_support: int) -> tuple[Any, Any]:
  """Divides a tree of arrays [S + Q, ...] into support and query set."""
  return (
      jax.tree.map(lambda x: x[:num_support], examples),
      jax.tree.map(lambda x: x[num_support:], examples),
  )


def dense(inputs: Any) -> jax.Array:
  """Returns inputs, which may be in compact form, as an array [N, X]."""
  return inputs.dense() if hasattr(inputs, 'dense') else inputs


def take(tree: Any, rows: jax.Array) -> Any:
  """Returns the given rows of every leaf of a tree, [N, ...] -> [rows, ...].

  Inputs in compact form have a method `take_rows`, which is used instead.
  """

  def is_compact(x: Any) -> bool:
    return hasattr(x, 'take_rows')

  return jax.tree.map(
      lambda x: x.take_rows(rows) if is_compact(x) else x[rows],
      tree,
      is_leaf=is_compact,
  )


# (outputs [N, Y], batch of N examples) -> the loss, or its residuals.
Loss = Callable[[jax.Array, Batch], jax.Array]


class Objective(NamedTuple):
  """The loss that both loops minimise, and the metrics reported with it.

  Examples with mask 0 are ignored.
  """

  loss: Loss
  metrics: Callable[[jax.Array, Batch], Mapping[str, jax.Array]]
  # Flat, with a squared norm that is proportional to the loss; None for a loss
  # that is not a sum of squares.
  residuals: Loss | None = None

  def measure(self, outputs: jax.Array, batch: Batch) -> dict[str, jax.Array]:
    """Returns metric -> scalar, the loss among them."""
    loss = self.loss(outputs, batch)
    # Last: a user's metrics may have a 'loss', too, which is not minimised.
    return {**self.metrics(outputs, batch), 'loss': loss}


class Task(NamedTuple):
  """One learning problem."""

  support: Batch  # N = S, to adapt on
  query: Batch  # N = Q, to evaluate on
  latent: jax.Array  # [L, M], how the task selects and weights modules


def check_size(fields: str, size: float) -> None:
  """Raises UserError if fields of the task ask for too large an array.

  XLA aborts the process on arrays whose size overflows.
  """
  if size > _MAX_NUMBERS:
    raise errors.UserError(
        f'task.{fields}: an array would have {size:.1e} numbers; at most'
        f' {_MAX_NUMBERS:.1e} are supported.'
    )


# (params, split) -> the number of distinct combinations; runs on the host.
# Where counting needs a search, it stops after four million candidates. 0 marks
# an empty split: tasks sampled from it are meaningless, and results on it must
# be reported as missing.
NumCombinations = Callable[[TaskParams, str], int]


@dataclasses.dataclass(frozen=True)
class TaskDistribution:
  """A distribution of tasks: what they share, and how to sample one."""

  input_dim: int  # X
  output_dim: int  # Y
  num_modules: int  # M
  objective: Objective
  # What evaluation reports, in order; 'valid', whose loss chooses the best
  # parameters, must be one of them. Their tasks all have the same shapes.
  evaluation_splits: tuple[str, ...]
  # (key) -> params. Runs once per seed, on the host; returns arrays only, of
  # shapes that do not depend on the key.
  init: Callable[[jax.Array], TaskParams]
  # (params, key, split) -> a latent, [L, M]. Pure, jittable; `split` is static,
  # 'train' or one of `evaluation_splits`.
  sample_latent: Callable[[TaskParams, jax.Array, str], jax.Array]
  # (params, key, latent, split) -> support and query set. Pure, jittable; the
  # split may change only the number of examples, or the order in which a
  # sequence shows them.
  sample_examples: Callable[
      [TaskParams, jax.Array, jax.Array, str], tuple[Batch, Batch]
  ]
  num_combinations: NumCombinations
  # Split -> that number, if it is the same for all `params`; then nothing needs
  # to be drawn to know it.
  fixed_counts: Mapping[str, int] | None = None
  # Input features that give the task, which come first; 0 if it must be
  # inferred. See `encodings`.
  code_dim: int = 0
  # Those of `evaluation_splits` whose support sets are special, which only
  # learners in context measure.
  context_splits: tuple[str, ...] = ()
  # The numbers of support and query examples that are tokens of one sequence,
  # to be read in order and predicted together; None where examples are pairs
  # that can be read in any order.
  sequence_lengths: tuple[int, int] | None = None
  # Whether the tasks of a training meta-batch share the inputs of an inner
  # step: the learner then calls `sample_examples` with one key for all of them,
  # and inputs must depend on nothing else.
  shared_inputs: bool = False

  def __post_init__(self) -> None:
    splits = self.evaluation_splits
    errors.require(
        isinstance(splits, tuple) and all(isinstance(s, str) for s in splits),
        'evaluation_splits',
        repr(splits),
        'it must be a tuple of names',
    )

  def sample(self, params: TaskParams, key: jax.Array, split: str) -> Task:
    """Returns a task of the given split."""
    latent_key, example_key = jax.random.split(key)
    latent = self.sample_latent(params, latent_key, split)
    return Task(
        *self.sample_examples(params, example_key, latent, split), latent
    )
