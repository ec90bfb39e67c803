"""What an episode is, and what a distribution of episodes must offer."""

import abc
from typing import Any, Callable, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher.seq2seq import vocabulary

Key = jax.Array


class Episode(NamedTuple):
  """A little problem of its own."""

  support: vocabulary.Pairs  # I rows, which spell out what words mean
  query: vocabulary.Pairs  # N rows


class TestSet(NamedTuple):
  """Episodes to be judged on, of equal shapes."""

  episodes: Episode  # [E, ...]
  weights: jax.Array  # [E, N] float, 0 for rows that do not count
  is_row: jax.Array  # [E, N] bool, False for rows that only fill up


class EpisodeDistribution(abc.ABC):
  """A world of episodes.

  Attributes:
    input_vocab: of commands.
    output_vocab: of actions.
    has_support: whether episodes have a support set; without, they are batches
      for a standard network.
    num_rows: split -> how many different rows it is drawn from.
  """

  input_vocab: vocabulary.Vocabulary
  output_vocab: vocabulary.Vocabulary
  has_support: bool
  num_rows: dict[str, int]

  @abc.abstractmethod
  def init(self, key: Key) -> Any:
    """Returns what a seed's episodes are drawn from.

    Runs once per seed, on the host; arrays only, of shapes that do not depend
    on the key.
    """

  @abc.abstractmethod
  def sample(self, params: Any, key: Key) -> Episode:
    """Returns an episode to train on; pure, jittable."""

  @abc.abstractmethod
  def make_test_set(self, params: Any, key: Key, num_devices: int) -> TestSet:
    """Returns what no episode of training was about.

    Runs on the host; `num_devices` divides the number of episodes.
    """

  @abc.abstractmethod
  def measure(
      self, test_set: TestSet, correct: np.ndarray
  ) -> dict[str, float]:
    """Returns accuracies of parts of the test set, metric -> fraction.

    On the host, after training; `correct` [E, N] says which rows were right.
    """

  @abc.abstractmethod
  def example(self) -> Episode:
    """Returns a test query, a single row, whose attention is worth a look."""


def until(
    draw: Callable[[Key], Any], is_allowed: Callable[[Any], jax.Array], key: Key
) -> Any:
  """Returns the first draw that is allowed; each has a key of its own."""

  def redraw(carry):
    _, count = carry
    return draw(jax.random.fold_in(key, count)), count + 1

  first = draw(jax.random.fold_in(key, 0)), jnp.int32(1)
  drawn, _ = lax.while_loop(lambda c: ~is_allowed(c[0]), redraw, first)
  return drawn


def draw_distinct(key: Key, number: int, size: int) -> jax.Array:
  """Returns distinct integers below `size`, in random order: [number].

  Draws all of them anew until no two are equal, which takes a few times as
  long as one draw if `check_distinct` has nothing against it, and is one of
  the few ways that neither sort nor depend on their past.
  """

  def are_distinct(drawn):
    return (drawn[:, None] == drawn[None]).sum() == number

  return until(
      lambda key: jax.random.randint(key, (number,), 0, size),
      are_distinct,
      key,
  )


def check_distinct(field: str, number: int, size: int) -> None:
  """Raises ValueError if distinct rows would take too long to draw."""
  if number**2 > 8 * size:
    raise errors.UserError(
        f'{field}: {number} different rows are to be drawn from {size}; allowed'
        f' are at most {int((8 * size) ** 0.5)}.'
    )


def stack(episodes: list[Episode]) -> Episode:
  """Returns episodes of equal shapes as one, [E, ...]."""
  return jax.tree.map(lambda *leaves: jnp.stack(leaves), *episodes)


def chunk(
    rows: vocabulary.Pairs,
    supports: list[vocabulary.Pairs],
    size: int,
    num_devices: int,
    weights: np.ndarray | None = None,
) -> TestSet:
  """Returns a test set that asks all rows of each support set.

  Args:
    rows: N queries.
    supports: of equal shapes.
    size: rows of an episode.
    num_devices: what the number of episodes must be a multiple of.
    weights: of the rows, [N]; None if all count.
  """
  number = rows.outputs.lengths.shape[0]
  size = min(size, number)
  per_support = -(-number // size)
  while (per_support * len(supports)) % num_devices:
    per_support += 1
  places = np.arange(per_support * size)
  is_row = places < number
  # Rows of similar lengths side by side: steps that no row needs cost nothing.
  order = np.argsort(np.asarray(rows.outputs.lengths), kind='stable')
  order = order[np.minimum(places, number - 1)]
  weights = np.ones(number) if weights is None else weights
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
  weights, is_row = (
      jnp.tile(jnp.asarray(x.reshape(per_support, size)), (len(supports), 1))
      for x in (weights, is_row)
  )
  return TestSet(stack(episodes), weights, is_row)
