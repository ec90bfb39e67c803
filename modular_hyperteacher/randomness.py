"""Random number policy: one root key per seed, one named stream per consumer.

Each consumer folds its name into the root key, and each step folds in its
number. A new consumer therefore changes no other stream, and resuming needs no
stored key.
"""

import zlib

import jax

# JAX's other generators draw all numbers of a `vmap` from its first key: a task
# would depend on the tasks beside it, and rejection sampling might never end.
GENERATOR = 'threefry2x32'


def root_key(seed: int) -> jax.Array:
  """Returns the key from which all randomness of a seed derives."""
  return jax.random.key(seed, impl=GENERATOR)


def stream(key: jax.Array, name: str) -> jax.Array:
  """Returns the key of the consumer called `name`."""
  return jax.random.fold_in(key, zlib.crc32(name.encode()))
