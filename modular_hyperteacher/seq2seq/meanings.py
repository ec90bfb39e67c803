"""What words of SCAN mean in an episode: two tables, token -> token.

Source: Sections 4.3 to 4.6 of Lake (2019), and the released code. Tables are
applied to SCAN's own commands and actions, so a table that changes nothing
gives SCAN's own meanings.
"""

import itertools
from typing import Callable, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.seq2seq import episodes
from modular_hyperteacher.seq2seq import scan
from modular_hyperteacher.seq2seq import vocabulary


class Tables(NamedTuple):
  """What takes the place of every token."""

  words: jax.Array  # [V of inputs]
  actions: jax.Array  # [V of outputs]


class Symbols(NamedTuple):
  """Tokens whose meaning is drawn; the extra ones are not SCAN's."""

  words: np.ndarray  # [P]
  actions: np.ndarray  # [P], what the words mean in SCAN
  extra_words: np.ndarray
  extra_actions: np.ndarray


Draw = Callable[[jax.Array], Tables]


def vocabularies(
    split: str, num_extra: int
) -> tuple[vocabulary.Vocabulary, vocabulary.Vocabulary]:
  """Returns SCAN's vocabularies of words and of actions, with extra ones."""
  kind = 'direction' if split == 'around_right' else 'primitive'
  numbers = range(1, num_extra + 1)
  return (
      vocabulary.Vocabulary(scan.WORDS + tuple(f'{kind}{i}' for i in numbers)),
      vocabulary.Vocabulary(
          scan.ACTIONS + tuple(f'I_{kind.upper()}{i}' for i in numbers)
      ),
  )


def symbols(split: str, num_extra: int) -> Symbols:
  """Returns which tokens of these vocabularies have their meaning drawn."""
  words, actions = vocabularies(split, num_extra)
  drawn = scan.DIRECTIONS if split == 'around_right' else scan.PRIMITIVES
  extra = np.arange(num_extra)
  return Symbols(
      np.array(words.numbers(drawn)),
      np.array(actions.numbers(scan.MEANINGS[word] for word in drawn)),
      len(scan.WORDS) + extra,
      len(scan.ACTIONS) + extra,
  )


def make_permuted(split: str) -> Draw:
  """Every word has another's action, or its own; not all have their own."""
  drawn = symbols(split, 0)
  fill = _filler(split, 0)
  orders = np.array(list(itertools.permutations(range(len(drawn.words))))[1:])

  def draw(key):
    order = jax.random.choice(key, orders)
    return fill(drawn.words, jnp.asarray(drawn.actions)[order])

  return draw


def make_extended(split: str, num_extra: int) -> Draw:
  """Some words out of all, extra ones too, and an action of all for each.

  Not allowed is what is tested: 'jump' as I_JUMP, 'right' as I_TURN_RIGHT; in
  'length', where nothing but length is tested, all of SCAN's meanings at once.
  """
  drawn = symbols(split, num_extra)
  fill = _filler(split, num_extra)
  num_drawn = len(drawn.words)
  all_words = jnp.concatenate([drawn.words, drawn.extra_words])
  all_actions = jnp.concatenate([drawn.actions, drawn.extra_actions])

  def draw_indices(key):
    keys = jax.random.split(key)
    size = num_drawn + num_extra
    return [jax.random.permutation(k, size)[:num_drawn] for k in keys]

  def is_allowed(indices):
    words, actions = indices
    if split == 'length':
      return ~((words == actions) & (words < num_drawn)).all()
    tested = num_drawn - 1  # The last of PRIMITIVES, and of DIRECTIONS.
    return ~((words == tested) & (actions == tested)).any()

  def draw(key):
    words, actions = episodes.until(draw_indices, is_allowed, key)
    return fill(all_words[words], all_actions[actions])

  return draw


def make_aligned(split: str, num_extra: int) -> Draw:
  """Some words, each with its own action; the last, tested one is not drawn."""
  drawn = symbols(split, num_extra)
  fill = _filler(split, num_extra)
  words = jnp.concatenate([drawn.words[:-1], drawn.extra_words])
  actions = jnp.concatenate([drawn.actions[:-1], drawn.extra_actions])

  def draw(key):
    chosen = jax.random.permutation(key, len(words))[: len(drawn.words)]
    return fill(words[chosen], actions[chosen])

  return draw


def _filler(split, num_extra):
  """Returns `fill(words, actions)`, the tables that put these in place."""
  inputs, outputs = vocabularies(split, num_extra)
  drawn = symbols(split, num_extra)

  def fill(words, actions):
    return Tables(
        jnp.arange(inputs.size).at[drawn.words].set(words),
        jnp.arange(outputs.size).at[drawn.actions].set(actions),
    )

  return fill


def replace(pairs: vocabulary.Pairs, tables: Tables) -> vocabulary.Pairs:
  """Returns pairs with the meanings of these tables."""
  return vocabulary.Pairs(
      vocabulary.relabel(pairs.inputs, tables.words),
      vocabulary.relabel(pairs.outputs, tables.actions),
  )
