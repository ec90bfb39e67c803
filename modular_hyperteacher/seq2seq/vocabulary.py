"""Symbols as numbers, and sequences as padded arrays.

The symbols of a vocabulary are numbered from 0; SOS and EOS follow. EOS is
part of every sequence and of its length. Padding has SOS's number, but is told
by lengths alone.
"""

import dataclasses
from typing import Iterable, NamedTuple, Sequence

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np


class Sequences(NamedTuple):
  """Rows of tokens, padded at their ends."""

  tokens: jax.Array  # [..., N, T] int32
  lengths: jax.Array  # [..., N] int32, EOS included

  @property
  def mask(self) -> jax.Array:
    """[..., N, T] bool, False where there is padding."""
    shape = self.tokens.shape
    places = lax.broadcasted_iota(jnp.int32, shape, len(shape) - 1)
    return places < self.lengths[..., None]


class Pairs(NamedTuple):
  """Input sequences and what they are to be turned into."""

  inputs: Sequences
  outputs: Sequences


@dataclasses.dataclass(frozen=True)
class Vocabulary:
  """Symbols, in the order of their numbers."""

  symbols: tuple[str, ...]

  @property
  def sos(self) -> int:
    """Starts the decoder; and padding."""
    return len(self.symbols)

  @property
  def eos(self) -> int:
    """Ends every sequence."""
    return len(self.symbols) + 1

  @property
  def size(self) -> int:
    """V, with SOS and EOS."""
    return len(self.symbols) + 2

  def numbers(self, symbols: Iterable[str]) -> list[int]:
    """Returns the numbers of symbols."""
    return [self.symbols.index(symbol) for symbol in symbols]

  def encode(
      self, rows: Sequence[Sequence[str]], length: int
  ) -> Sequences:
    """Returns rows of symbols as padded NumPy arrays with EOS.

    Args:
      rows: N sequences of symbols.
      length: T; the longest row and its EOS must fit.
    """
    number = {symbol: i for i, symbol in enumerate(self.symbols)}
    tokens = np.full((len(rows), length), self.sos, np.int32)
    for place, row in enumerate(rows):
      tokens[place, : len(row)] = [number[symbol] for symbol in row]
      tokens[place, len(row)] = self.eos
    lengths = np.array([len(row) + 1 for row in rows], np.int32)
    return Sequences(tokens, lengths)

  def decode(self, tokens: Iterable[int]) -> tuple[str, ...]:
    """Returns the symbols before the first EOS."""
    symbols = []
    for token in tokens:
      if token == self.eos:
        break
      symbols.append('SOS' if token == self.sos else self.symbols[token])
    return tuple(symbols)


def take(sequences: Sequences, rows: jax.Array) -> Sequences:
  """Returns these rows."""
  return jax.tree.map(lambda x: x[rows], sequences)


def relabel(sequences: Sequences, table: jax.Array) -> Sequences:
  """Returns sequences with every token replaced, by `table` [V] of tokens."""
  return sequences._replace(tokens=table[sequences.tokens])


def concatenate(first: Sequences, second: Sequences) -> Sequences:
  """Returns the rows of both, those of the first padded or cut to fit.

  No row of the first may be longer than the second has tokens.
  """
  return Sequences(
      jnp.concatenate([_fit(first.tokens, second.tokens), second.tokens]),
      jnp.concatenate([first.lengths, second.lengths]),
  )


def _fit(tokens, like):
  missing = like.shape[-1] - tokens.shape[-1]
  # Whatever the padding is made of, it is told by lengths.
  return jnp.pad(tokens[:, : like.shape[-1]], ((0, 0), (0, max(missing, 0))))
