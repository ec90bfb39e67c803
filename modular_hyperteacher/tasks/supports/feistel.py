"""A keyed permutation of the integers below n, without a table.

A balanced Feistel network permutes the integers below 4^h, the smallest such
power that is at least n. A result outside of [0, n) is permuted again until it
falls inside, which keeps the map a permutation ("cycle walking", Black &
Rogaway 2002); fewer than four passes are expected. Time and memory do not
depend on n.
"""

import jax
from jax import lax
import jax.numpy as jnp

_NUM_ROUNDS = 8


def draw_round_keys(key: jax.Array) -> jax.Array:
  """Returns the round keys of a random permutation, [8] uint32."""
  return jax.random.bits(key, (_NUM_ROUNDS,), jnp.uint32)


def apply(
    round_keys: jax.Array,
    value: jax.typing.ArrayLike,
    size: int,
    inverse: bool = False,
) -> jax.Array:
  """Returns the image (uint32) of `value`, an integer below `size`.

  With `inverse`, returns the integer below `size` whose image is `value`.
  """
  half_bits = max((size - 1).bit_length() + 1, 2) // 2
  mask = jnp.uint32(2**half_bits - 1)

  def walk(value: jax.Array) -> jax.Array:
    left, right = value >> half_bits, value & mask
    for round_key in round_keys[::-1] if inverse else round_keys:
      if inverse:
        left, right = right ^ (_mix(left, round_key) & mask), left
      else:
        left, right = right, left ^ (_mix(right, round_key) & mask)
    return (left << half_bits) | right

  value = jnp.asarray(value).astype(jnp.uint32)
  return lax.while_loop(lambda v: v >= jnp.uint32(size), walk, walk(value))


def _mix(value: jax.Array, round_key: jax.Array) -> jax.Array:
  """Scrambles the bits of `value` with a key (MurmurHash3's finaliser)."""
  value = value * jnp.uint32(0x9E3779B1) + round_key
  value = (value ^ (value >> 16)) * jnp.uint32(0x85EBCA6B)
  value = (value ^ (value >> 13)) * jnp.uint32(0xC2B2AE35)
  return value ^ (value >> 16)
