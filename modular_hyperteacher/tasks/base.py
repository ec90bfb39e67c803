"""What a task is, and what a distribution of tasks must offer.

Shape legend, used in every docstring of the package (functions that callers
`vmap` document the shapes of one task):

  B  tasks in a meta-batch      L  layers that get a mask of their own
  N  examples (S support,       M  modules (the teacher's)
     Q query)                   C  combinations of modules
  X  input features             H  hidden units
  Y  outputs                    D  devices
  R  seeds trained side by side
"""

import dataclasses
from typing import Any, Callable, NamedTuple

import jax
import jax.numpy as jnp

Array = jax.Array
Key = jax.Array
TaskParams = Any  # Pytree of arrays: teacher weights, mazes, splits.


class Batch(NamedTuple):
  """Examples of one task."""

  inputs: Any  # [N, X], an array or a compact form of one, see `gridworld`
  targets: Array  # [N, Y], or what the objective of the world asks for
  mask: Array  # [N] float, 1 where the example counts, 0 where it is padding


def examples(inputs: Any, targets: Array) -> Batch:
  """Returns examples that all count, such as a support set of one's own."""
  return Batch(inputs, targets, jnp.ones(len(targets)))


def take(tree: Any, rows: Array) -> Any:
  """Returns these rows of every leaf of a tree, [N, ...] -> [rows, ...].

  What is not simply an array of rows says itself what they are: it has a
  method `take_rows`.
  """

  def is_compact(x):
    return hasattr(x, 'take_rows')

  return jax.tree.map(
      lambda x: x.take_rows(rows) if is_compact(x) else x[rows],
      tree,
      is_leaf=is_compact,
  )


class Task(NamedTuple):
  """One learning problem."""

  support: Batch  # N = S, to adapt on
  query: Batch  # N = Q, to be judged on
  latent: Array  # [L, M], how the task selects and weighs modules


@dataclasses.dataclass(frozen=True)
class TaskDistribution:
  """A world: everything tasks share, and how to draw one of them.

  Attributes:
    input_dim: X, the number of input features.
    output_dim: Y, the number of outputs that a model must produce.
    num_modules: M.
    evaluation_splits: the splits that evaluation reports, in order. All of
      them yield tasks of the same shapes.
    init: `init(key) -> params`. Runs once per seed, on the host; returns
      arrays only, of shapes that do not depend on the key.
    sample_latent: `sample_latent(params, key, split) -> [L, M]`, which task;
      pure, jittable. `split` is a static string: 'train' or one of
      `evaluation_splits`.
    sample_examples: `sample_examples(params, key, latent, split) ->
      (support, query)`, two batches of the task with this latent; pure,
      jittable. A world may draw another number of examples in training than
      at evaluation; beyond that the split makes no difference.
    num_combinations: `num_combinations(params, split) -> int`. Host code; how
      many distinct combinations of modules a split holds; for sets that must
      be searched, of the first four million candidates. 0 means that the
      split is empty: what `sample` then returns is meaningless and must be
      reported as missing.
  """

  input_dim: int
  output_dim: int
  num_modules: int
  evaluation_splits: tuple[str, ...]
  init: Callable[[Key], TaskParams]
  sample_latent: Callable[[TaskParams, Key, str], Array]
  sample_examples: Callable[
      [TaskParams, Key, Array, str], tuple[Batch, Batch]
  ]
  num_combinations: Callable[[TaskParams, str], int]

  def sample(self, params: TaskParams, key: Key, split: str) -> Task:
    """Returns a task of a split, with its examples."""
    latent_key, example_key = jax.random.split(key)
    latent = self.sample_latent(params, latent_key, split)
    return Task(
        *self.sample_examples(params, example_key, latent, split), latent
    )
