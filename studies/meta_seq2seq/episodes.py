"""Interfaces: an episode, and a distribution of episodes."""

import abc
from collections.abc import Callable
import math
from typing import Any, NamedTuple, TypeVar

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher.studies.meta_seq2seq import vocabulary

Key = jax.Array
_Drawn = TypeVar('_Drawn')


class Episode(NamedTuple):
  """One task: pairs to learn the meanings from, and pairs to predict."""

  support: vocabulary.Pairs  # I rows, which reveal what words mean
  query: vocabulary.Pairs  # N rows


class TestSet(NamedTuple):
  """Evaluation episodes of equal shapes."""

  episodes: Episode  # [E, ...]
  weights: jax.Array  # [E, N] float, 0 for rows that do not count
  is_row: jax.Array  # [E, N] bool, False for rows that are padding


class EpisodeDistribution(abc.ABC):
  """A distribution of episodes."""

  input_vocab: vocabulary.Vocabulary  # Words of commands.
  output_vocab: vocabulary.Vocabulary  # Actions.
  # Without a support set, episodes are batches for a standard network.
  has_support: bool
  num_rows: dict[str, int]  # Split -> different rows that it is drawn from.

  @abc.abstractmethod
  def init(self, key: Key) -> Any:
    """Returns the parameters of a seed's distribution, a pytree of arrays.

    Runs once per seed, on the host. Shapes must not depend on the key.
    """

  @abc.abstractmethod
  def sample(self, params: Any, key: Key) -> Episode:
    """Returns a training episode; pure and jittable."""

  @abc.abstractmethod
  def make_test_set(self, params: Any, key: Key, num_devices: int) -> TestSet:
    """Returns the held-out test episodes.

    Runs on the host; the number of episodes is a multiple of `num_devices`.
    """

  @abc.abstractmethod
  def measure(self, test_set: TestSet, correct: np.ndarray) -> dict[str, float]:
    """Returns accuracies on parts of the test set, metric -> fraction.

    Runs on the host; `correct` [E, N] marks the correct rows.
    """

  @abc.abstractmethod
  def example(self) -> Episode:
    """Returns a test episode with one query, to show the attention of."""


def until(
    draw: Callable[[Key], _Drawn],
    is_allowed: Callable[[_Drawn], jax.Array],
    key: Key,
) -> _Drawn:
  """Returns the first draw that is allowed; every draw gets a fresh key."""

  def redraw(carry: tuple[_Drawn, jax.Array]) -> tuple[_Drawn, jax.Array]:
    _, count = carry
    return draw(jax.random.fold_in(key, count)), count + 1

  first = draw(jax.random.fold_in(key, 0)), jnp.int32(1)
  drawn, _ = lax.while_loop(lambda c: ~is_allowed(c[0]), redraw, first)
  return drawn


def draw_distinct(key: Key, number: int, size: int) -> jax.Array:
  """Returns distinct integers below `size`, in random order: [number].

  Redraws all of them until no two are equal. This avoids sorting, and takes few
  draws on average if `check_distinct` passes.
  """

  def are_distinct(drawn: jax.Array) -> jax.Array:
    return (drawn[:, None] == drawn[None]).sum() == number

  return until(
      lambda key: jax.random.randint(key, (number,), 0, size),
      are_distinct,
      key,
  )


def check_distinct(field: str, number: int, size: int) -> None:
  """Raises UserError if distinct rows would take too long to draw."""
  most = min(size, math.isqrt(8 * size))
  if number > most:
    raise errors.UserError(
        f'{field} needs {number} different rows out of {size}; allowed are at'
        f' most {most}.'
    )


def chunk(
    rows: vocabulary.Pairs,
    supports: list[vocabulary.Pairs],
    size: int,
    num_devices: int,
    weights: np.ndarray,
) -> TestSet:
  """Returns a test set that pairs each support set with all N query rows.

  Support sets have equal shapes, weights are [N]. An episode has at most `size`
  rows; the number of episodes is a multiple of `num_devices`.
  """
  number = rows.outputs.lengths.shape[0]
  size = min(size, number)
  per_support = -(-number // size)
  while (per_support * len(supports)) % num_devices:
    per_support += 1
  slots = np.arange(per_support * size)
  is_row = slots < number
  # Groups rows of similar lengths, because steps that no row needs are skipped.
  order = np.argsort(np.asarray(rows.outputs.lengths), kind='stable')
  order = order[np.minimum(slots, number - 1)]
  weights = np.where(is_row, weights[order], 0.0).astype(np.float32)
  queries = jax.tree.map(
      lambda x: np.asarray(x)[order].reshape((per_support, size) + x.shape[1:]),
      rows,
  )
  episodes = [
      Episode(support, jax.tree.map(lambda x, i=i: x[i], queries))
      for support in supports
      for i in range(per_support)
  ]
  tiled = (
      jnp.tile(jnp.asarray(x.reshape(per_support, size)), (len(supports), 1))
      for x in (weights, is_row)
  )
  stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *episodes)
  return TestSet(stacked, *tiled)
