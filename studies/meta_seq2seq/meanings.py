"""What the words of SCAN mean in an episode: two tables, token -> token.

Source: Sections 4.3 to 4.6 of Lake (2019), and the released code. The tables
are applied to SCAN's own commands and actions, so identity tables give SCAN's
own meanings.
"""

from collections.abc import Callable
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.studies.meta_seq2seq import episodes
from modular_hyperteacher.studies.meta_seq2seq import scan
from modular_hyperteacher.studies.meta_seq2seq import vocabulary


class Tables(NamedTuple):
  """The replacement of every token."""

  words: jax.Array  # [V of inputs]
  actions: jax.Array  # [V of outputs]


class Symbols(NamedTuple):
  """Tokens whose meaning is drawn; the extra ones are not in SCAN."""

  words: np.ndarray  # [P]
  actions: np.ndarray  # [P], what the words mean in SCAN
  extra_words: np.ndarray  # [num_extra]
  extra_actions: np.ndarray  # [num_extra]
  sizes: tuple[int, int]  # V of inputs and of outputs

  def fill(self, words: jax.Array | np.ndarray, actions: jax.Array) -> Tables:
    """Returns tables that map SCAN's drawn tokens to these."""
    return Tables(
        jnp.arange(self.sizes[0]).at[self.words].set(words),
        jnp.arange(self.sizes[1]).at[self.actions].set(actions),
    )


Draw = Callable[[jax.Array], Tables]


def vocabularies(
    split: str, num_extra: int
) -> tuple[vocabulary.Vocabulary, vocabulary.Vocabulary]:
  """Returns SCAN's vocabularies of words and actions, with extra symbols."""
  kind = 'direction' if split == 'around_right' else 'primitive'
  numbers = range(1, num_extra + 1)
  return (
      vocabulary.Vocabulary(scan.WORDS + tuple(f'{kind}{i}' for i in numbers)),
      vocabulary.Vocabulary(
          scan.ACTIONS + tuple(f'I_{kind.upper()}{i}' for i in numbers)
      ),
  )


def symbols(split: str, num_extra: int) -> Symbols:
  """Returns the tokens of these vocabularies whose meaning is drawn."""
  words, actions = vocabularies(split, num_extra)
  drawn = scan.DIRECTIONS if split == 'around_right' else scan.PRIMITIVES
  extra = np.arange(num_extra)
  return Symbols(
      np.array(words.numbers(drawn)),
      np.array(actions.numbers(scan.MEANINGS[word] for word in drawn)),
      len(scan.WORDS) + extra,
      len(scan.ACTIONS) + extra,
      (words.size, actions.size),
  )


def make_permuted(split: str, num_extra: int) -> Draw:
  """Permutes the actions of words; excludes the identity."""
  drawn = symbols(split, num_extra)
  orders = np.array(list(itertools.permutations(range(len(drawn.words))))[1:])

  def draw(key: jax.Array) -> Tables:
    order = jax.random.choice(key, orders)
    return drawn.fill(drawn.words, jnp.asarray(drawn.actions)[order])

  return draw


def make_extended(split: str, num_extra: int) -> Draw:
  """Draws words and their actions from SCAN's and the extra ones.

  Excludes the tested meaning: 'jump' as I_JUMP, or 'right' as I_TURN_RIGHT.
  The split 'length' tests only length and excludes SCAN's own tables.
  """
  drawn = symbols(split, num_extra)
  num_drawn = len(drawn.words)
  all_words = jnp.concatenate([drawn.words, drawn.extra_words])
  all_actions = jnp.concatenate([drawn.actions, drawn.extra_actions])

  def draw_indices(key: jax.Array) -> list[jax.Array]:
    keys = jax.random.split(key)
    size = num_drawn + num_extra
    return [jax.random.permutation(k, size)[:num_drawn] for k in keys]

  def is_allowed(indices: list[jax.Array]) -> jax.Array:
    words, actions = indices
    if split == 'length':
      return ~((words == actions) & (words < num_drawn)).all()
    tested = num_drawn - 1  # The last of PRIMITIVES or DIRECTIONS.
    return ~((words == tested) & (actions == tested)).any()

  def draw(key: jax.Array) -> Tables:
    words, actions = episodes.until(draw_indices, is_allowed, key)
    return drawn.fill(all_words[words], all_actions[actions])

  return draw


def make_aligned(split: str, num_extra: int) -> Draw:
  """Draws words with their own actions; never draws the last, tested word."""
  drawn = symbols(split, num_extra)
  words = jnp.concatenate([drawn.words[:-1], drawn.extra_words])
  actions = jnp.concatenate([drawn.actions[:-1], drawn.extra_actions])

  def draw(key: jax.Array) -> Tables:
    chosen = jax.random.permutation(key, len(words))[: len(drawn.words)]
    return drawn.fill(words[chosen], actions[chosen])

  return draw


def replace(pairs: vocabulary.Pairs, tables: Tables) -> vocabulary.Pairs:
  """Returns pairs with their tokens replaced by these tables."""
  return vocabulary.Pairs(
      vocabulary.relabel(pairs.inputs, tables.words),
      vocabulary.relabel(pairs.outputs, tables.actions),
  )
