"""A keyed permutation of the integers below n, without a table.

A balanced Feistel network permutes the smallest set of 4^h integers that holds
n; whatever falls outside of [0, n) is fed back until it lands inside, which
keeps it a permutation ("cycle walking", Black & Rogaway 2002). Fewer than four
walks are expected. Time and memory do not depend on n.
"""

import jax
from jax import lax
import jax.numpy as jnp

from modular_hyperteacher.tasks import base

_NUM_ROUNDS = 8


def draw_round_keys(key: base.Key) -> base.Array:
  """Returns the round keys that name one permutation, `[8]` uint32."""
  return jax.random.bits(key, (_NUM_ROUNDS,), jnp.uint32)


def apply(round_keys: base.Array, value: base.Array, size: int) -> base.Array:
  """Returns where `value`, an integer below `size`, is sent to (uint32)."""
  return _walk(round_keys, value, size, _encrypt)


def invert(round_keys: base.Array, value: base.Array, size: int) -> base.Array:
  """Returns the integer below `size` that `apply` sends to `value`."""
  return _walk(round_keys, value, size, _decrypt)


def _walk(round_keys, value, size, step):
  half_bits = max((size - 1).bit_length() + 1, 2) // 2

  def walk(value):
    return step(round_keys, value, half_bits)

  value = jnp.asarray(value).astype(jnp.uint32)
  return lax.while_loop(lambda v: v >= jnp.uint32(size), walk, walk(value))


def _encrypt(round_keys, value, half_bits):
  mask = jnp.uint32(2**half_bits - 1)
  left, right = value >> half_bits, value & mask
  for round_key in round_keys:
    left, right = right, left ^ (_mix(right, round_key) & mask)
  return (left << half_bits) | right


def _decrypt(round_keys, value, half_bits):
  mask = jnp.uint32(2**half_bits - 1)
  left, right = value >> half_bits, value & mask
  for round_key in round_keys[::-1]:
    left, right = right ^ (_mix(left, round_key) & mask), left
  return (left << half_bits) | right


def _mix(value, round_key):
  """Scrambles the bits of `value` with a key (MurmurHash3's finaliser)."""
  value = value * jnp.uint32(0x9E3779B1) + round_key
  value = (value ^ (value >> 16)) * jnp.uint32(0x85EBCA6B)
  value = (value ^ (value >> 13)) * jnp.uint32(0xC2B2AE35)
  return value ^ (value >> 16)
