"""Episodes as lists of pairs in words; shared by tests."""

from typing import Any

import jax
import numpy as np

from modular_hyperteacher.studies.meta_seq2seq import scan
from modular_hyperteacher.studies.meta_seq2seq import vocabulary


def draw(
    world: Any, number: int, seed: int = 0
) -> list[tuple[list[scan.Pair], list[scan.Pair]]]:
  """Returns episodes in words: a list of (support, query), lists of pairs."""
  params = world.init(jax.random.key(1))
  keys = jax.random.split(jax.random.key(seed), number)
  drawn = jax.jit(jax.vmap(world.sample, (None, 0)))(params, keys)
  return in_words(world, drawn)


def in_words(
    world: Any, drawn: Any
) -> list[tuple[list[scan.Pair], list[scan.Pair]]]:
  drawn = jax.tree.map(np.asarray, drawn)

  def sequences(
      side: vocabulary.Sequences, vocab: vocabulary.Vocabulary, i: int
  ) -> list[tuple[str, ...]]:
    rows = []
    for tokens, length in zip(side.tokens[i], side.lengths[i]):
      row = vocab.decode(tokens.tolist())
      assert length == len(row) + 1
      assert (tokens[length:] == vocab.sos).all()
      rows.append(row)
    return rows

  def pairs(side: vocabulary.Pairs, i: int) -> list[scan.Pair]:
    return [
        scan.Pair(*both)
        for both in zip(
            sequences(side.inputs, world.input_vocab, i),
            sequences(side.outputs, world.output_vocab, i),
        )
    ]

  number = len(drawn.query.inputs.tokens)
  return [
      (pairs(drawn.support, i), pairs(drawn.query, i)) for i in range(number)
  ]
