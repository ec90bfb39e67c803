"""Symbols as integer tokens, and sequences as padded arrays.

Tokens of a vocabulary's symbols start at 0; SOS and EOS follow. EOS is part of
every sequence and counts towards its length. Padding repeats SOS; only the
lengths tell it apart.
"""

from collections.abc import Iterable, Sequence
import dataclasses
from typing import cast, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np


class Sequences(NamedTuple):
  """Rows of tokens, padded at the end."""

  tokens: jax.Array  # [..., N, T] int32
  lengths: jax.Array  # [..., N] int32, EOS included

  @property
  def mask(self) -> jax.Array:
    """[..., N, T] bool, False for padding."""
    shape = self.tokens.shape
    positions = lax.broadcasted_iota(jnp.int32, shape, len(shape) - 1)
    return positions < self.lengths[..., None]


class Pairs(NamedTuple):
  """Input sequences and their target outputs."""

  inputs: Sequences
  outputs: Sequences


@dataclasses.dataclass(frozen=True)
class Vocabulary:
  """Symbols, in the order of their tokens."""

  symbols: tuple[str, ...]

  @property
  def sos(self) -> int:
    """The decoder's first input, and padding."""
    return len(self.symbols)

  @property
  def eos(self) -> int:
    """The last token of every sequence."""
    return len(self.symbols) + 1

  @property
  def size(self) -> int:
    """V, SOS and EOS included."""
    return len(self.symbols) + 2

  def numbers(self, symbols: Iterable[str]) -> list[int]:
    """Returns the tokens of symbols."""
    return [self.symbols.index(symbol) for symbol in symbols]

  def encode(self, rows: Sequence[Sequence[str]], length: int) -> Sequences:
    """Returns N rows of symbols as sequences of `length` T, in NumPy arrays.

    The longest row and its EOS must fit.
    """
    token_of = {symbol: i for i, symbol in enumerate(self.symbols)}
    tokens = np.full((len(rows), length), self.sos, np.int32)
    for index, row in enumerate(rows):
      tokens[index, : len(row)] = [token_of[symbol] for symbol in row]
      tokens[index, len(row)] = self.eos
    lengths = np.array([len(row) + 1 for row in rows], np.int32)
    # JAX accepts NumPy arrays, and indexing them on the host compiles nothing.
    return Sequences(cast(jax.Array, tokens), cast(jax.Array, lengths))

  def decode(self, tokens: Iterable[int]) -> tuple[str, ...]:
    """Returns the symbols before the first EOS."""
    symbols = []
    for token in tokens:
      if token == self.eos:
        break
      symbols.append('SOS' if token == self.sos else self.symbols[token])
    return tuple(symbols)


def relabel(sequences: Sequences, table: jax.Array) -> Sequences:
  """Returns sequences with every token t replaced by `table[t]`; table: [V]."""
  return sequences._replace(tokens=table[sequences.tokens])


def concatenate(first: Sequences, second: Sequences) -> Sequences:
  """Returns the rows of both, those of the first padded or cut to fit.

  No row of the first may be longer than T of the second.
  """
  num_tokens = second.tokens.shape[-1]
  fitted = first.tokens[:, :num_tokens]
  # Any padding value will do, since lengths define the padding.
  fitted = jnp.pad(fitted, ((0, 0), (0, num_tokens - fitted.shape[-1])))
  return Sequences(
      jnp.concatenate([fitted, second.tokens]),
      jnp.concatenate([first.lengths, second.lengths]),
  )
