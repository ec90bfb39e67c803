"""Digests of what was drawn, to notice if it is drawn otherwise later.

A digest is stored with whatever depends on drawn tasks: runs, trained
parameters and exported tasks. Shapes, whole numbers and which numbers are zero
must be equal. Of other numbers, whose last digits depend on the processor, the
digest holds a few from every array, which must be close.
"""

from collections.abc import Iterator, Mapping
import hashlib
from typing import Any, TypedDict

import jax
import jax.numpy as jnp
import numpy as np

# So many numbers of an array are kept; another stream changes all of them.
_NUM_KEPT = 3
_DIGITS = 6
# The relative tolerance, and one relative to the largest kept number.
_TOLERANCE = 1e-3


class Digest(TypedDict):
  """What is known of arrays that were drawn."""

  exact: str  # hash of names, shapes, whole numbers, and what is zero
  close: list[float]  # numbers of the other arrays
  jax: str  # version


def digest(tree: Any) -> Digest:
  """Returns the digest of a tree of arrays."""
  exact = hashlib.sha256()
  close: list[float] = []
  for name, array in _arrays(tree):
    exact.update(f'{name} {array.shape} {array.dtype.kind}\n'.encode())
    if array.dtype.kind == 'f':
      close += [float(f'{x:.{_DIGITS}g}') for x in _some(array)]
      array = array != 0
    exact.update(array.astype(np.int64).tobytes())
  return {
      'exact': exact.hexdigest()[:16],
      'close': close,
      'jax': jax.__version__,
  }


def compare(stored: Mapping[str, Any] | None, now: Digest) -> str | None:
  """Returns what to tell a user if digests differ, or else None.

  `stored` is an earlier digest of the same arrays; earlier versions have none.
  """
  if stored is None or _agree(stored, now):
    return None
  cause = (
      'JAX_ENABLE_X64 or JAX_THREEFRY_PARTITIONABLE was set for an earlier'
      ' version of this package, or the code of the task has changed'
  )
  if stored['jax'] != now['jax']:
    cause = f'JAX was {stored["jax"]} and is {now["jax"]}'
  return f'the same seed draws other tasks here than it drew then: {cause}'


def _agree(stored: Mapping[str, Any], now: Digest) -> bool:
  before, after = np.array(stored['close']), np.array(now['close'])
  if stored['exact'] != now['exact'] or before.shape != after.shape:
    return False
  least = _TOLERANCE * max(np.abs(after), default=0.0)
  return bool(np.allclose(before, after, rtol=_TOLERANCE, atol=least))


def _arrays(tree: Any) -> Iterator[tuple[str, np.ndarray]]:
  """Yields the name and the content of every array of a tree."""
  for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
    if isinstance(leaf, jax.Array) and jnp.issubdtype(
        leaf.dtype, jax.dtypes.prng_key
    ):
      leaf = jax.random.key_data(leaf)
    yield jax.tree_util.keystr(path), np.asarray(leaf)


def _some(array: np.ndarray) -> np.ndarray:
  """Returns evenly spaced numbers of an array."""
  rows = np.linspace(0, array.size - 1, min(_NUM_KEPT, array.size)).astype(int)
  return np.nan_to_num(array.ravel()[rows], posinf=0.0, neginf=0.0)
