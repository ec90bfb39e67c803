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

Array = jax.Array
Key = jax.Array
TaskParams = Any  # Pytree of arrays: teacher weights, mazes, splits.


class Batch(NamedTuple):
  """Examples of one task."""

  inputs: Array  # [N, X]
  targets: Array  # [N, Y], or what the objective of the world asks for
  mask: Array  # [N] float, 1 where the example counts, 0 where it is padding


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
    sample: `sample(params, key, split) -> Task`. Pure, jittable; `split` is
      a static string: 'train' or one of `evaluation_splits`.
    sample_support: `sample_support(params, key, latent) -> Batch`, fresh
      support examples of the task with this latent, for an inner loop that
      sees new data at every step (Appendix C.1.3). None if a world only
      offers finite support sets.
    num_combinations: `num_combinations(params, split) -> int`. Host code; how
      many distinct combinations of modules a split holds. 0 means that the
      split is empty: what `sample` then returns is meaningless and must be
      reported as missing.
  """

  input_dim: int
  output_dim: int
  num_modules: int
  evaluation_splits: tuple[str, ...]
  init: Callable[[Key], TaskParams]
  sample: Callable[[TaskParams, Key, str], Task]
  num_combinations: Callable[[TaskParams, str], int]
  sample_support: Callable[[TaskParams, Key, Array], Batch] | None = None
